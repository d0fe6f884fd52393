"""Wheels to the store, at `<sha256>/<file>`: a file that is there is never replaced by another of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from trainyard.contract import Contract
from trainyard.errors import UsageError
from trainyard.kinds import TeamConfig
from trainyard.kinds.packages import WHEELS
from trainyard.kube import Kube
from trainyard.training.transfer import Store, open_store
from trainyard.training.wheels import tags
from trainyard.training.wheels.collect import Found


@dataclass(frozen=True)
class Stored:
    """A wheel of the store. `size` is in bytes."""

    wheel: tags.Wheel
    sha256: str
    size: int


@contextmanager
def store(kube: Kube, contract: Contract) -> Iterator[Store]:
    """The store by the platform's own keys: in the release's namespace, where the platform engineer may make pods."""
    with open_store(kube, TeamConfig.of_platform(contract)) as found:
        yield found


def listed(found: Store) -> list[Stored]:
    """Every wheel that is there, by name and version."""
    stored = []
    for key, size in found.list(WHEELS).items():
        digest, _, file = key.partition("/")
        if wheel := tags.of(file):
            stored.append(Stored(wheel, digest, size))
    return sorted(stored, key=lambda one: (one.wheel.name, one.wheel.version, one.wheel.file))


def put(found: Store, wheels: Sequence[Found], say: Callable[[str], None]) -> int:
    """Brings what is not there yet; returns how many.

    Raises:
        UsageError: a file of the same name and another content is there; nothing was sent then.
    """
    there = {one.wheel.file: one.sha256 for one in listed(found)}
    for one in wheels:
        if there.get(one.wheel.file, one.sha256) != one.sha256:
            what = f"the store has another file of that name: sha256 {there[one.wheel.file]}, this one has {one.sha256}"
            raise UsageError(what, where=str(one.path), hint="give the package another version: runs compare the hash")
    new = [one for one in wheels if one.wheel.file not in there]
    for one in new:
        found.put(one.path, f"{WHEELS}/{one.sha256}/{one.wheel.file}")
        say(f"sent {one.wheel.file}, {one.size / 2**20:.1f} MiB")
    return len(new)
