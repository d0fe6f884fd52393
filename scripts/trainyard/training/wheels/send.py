"""Uploads wheels to the store, at `<sha256>/<file>`: a wheel must be removed before another of its name is uploaded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from trainyard import contract
from trainyard.errors import UsageError
from trainyard.kinds import TeamConfig
from trainyard.kinds.packages import WHEELS
from trainyard.kube import Kube
from trainyard.training.transfer import Store, folder, open_store
from trainyard.training.wheels import tags
from trainyard.training.wheels.collect import LocalWheel
from trainyard_agent.runs.requirements import canonical


@dataclass(frozen=True)
class Stored:
    """A wheel in the store. `size` is in bytes."""

    wheel: tags.Wheel
    sha256: str
    size: int


@contextmanager
def store(kube: Kube, known: contract.Contract) -> Iterator[Store]:
    """The store with the platform's own keys: in the release's namespace, where platform engineers may create pods."""
    with open_store(kube, TeamConfig.of_platform(known)) as found:
        yield found


def listed(found: Store) -> list[Stored]:
    """All wheels in the store, by name and version."""
    stored = []
    for key, size in found.list(WHEELS).items():
        digest, _, file = key.partition("/")
        if wheel := tags.of(file):
            stored.append(Stored(wheel, digest, size))
    return sorted(stored, key=lambda one: (one.wheel.name, one.wheel.version, one.wheel.file))


def publish(kube: Kube, found: Store) -> list[Stored]:
    """Publishes the list of wheels in the contract's ConfigMap, for members' programs, and returns it."""
    there = listed(found)
    path = kube.path("v1", "configmaps", contract.CONFIG_MAP, namespace=kube.namespace)
    kube.patch(path, {"data": {contract.WHEELS: "\n".join(one.wheel.file for one in there)}})
    return there


def chosen(there: Sequence[Stored], words: Sequence[str]) -> list[Stored]:
    """The wheels that match the words, each once: a file's name, `NAME==VERSION`, or all versions of NAME.

    Raises:
        UsageError: a word matches no wheel.
    """
    doomed: dict[Stored, None] = {}
    for word in words:
        name, _, version = word.partition("==")
        of_name = [one for one in there if one.wheel.name == canonical(name)]
        meant = [one for one in there if one.wheel.file == word]
        meant = meant or [one for one in of_name if version in ("", one.wheel.version)]
        if not meant:
            versions = ", ".join(dict.fromkeys(one.wheel.version for one in of_name))
            hint = f"the store has {canonical(name)} {versions}" if versions else "see `trainyard wheels list`"
            raise UsageError(f"the store has no wheel {word}", hint=hint)
        doomed |= dict.fromkeys(meant)
    return list(doomed)


def remove(found: Store, wheels: Sequence[Stored]) -> None:
    """Removes wheels; older versions remain as long as the bucket keeps them. Raises TrainyardError."""
    for one in wheels:
        folder.remove(found, f"{WHEELS}/{one.sha256}")


def put(found: Store, wheels: Sequence[LocalWheel], say: Callable[[str], None]) -> int:
    """Uploads missing wheels; returns their number.

    Raises:
        UsageError: a file with the same name and different content exists; nothing was sent then.
    """
    there = {one.wheel.file: one.sha256 for one in listed(found)}
    for one in wheels:
        if there.get(one.wheel.file, one.sha256) != one.sha256:
            what = f"the store has another file of this name: sha256 {there[one.wheel.file]}, this one has {one.sha256}"
            hint = f"use another version of the package, or run first: trainyard wheels remove {one.wheel.file}"
            raise UsageError(what, where=str(one.path), hint=hint)
    new = [one for one in wheels if one.wheel.file not in there]
    for one in new:
        found.put(one.path, f"{WHEELS}/{one.sha256}/{one.wheel.file}")
        say(f"sent {one.wheel.file}, {one.size / 2**20:.1f} MiB")
    return len(new)
