"""The team's registered models: `models/NAME/VERSION/` below its folder of the bucket, each with files and a card.

`models/NAME/newest.json` names the version that was registered last. A version never changes: the same name and version
with different content is rejected.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from model_server import contract as server
from model_server.errors import CardError
from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds.team_config import BUCKET
from trainyard.serving import cards
from trainyard.serving.cards import Card

if TYPE_CHECKING:
    from trainyard.contract import Contract
    from trainyard.kube import Kube

FOLDER, NEWEST = "models", "newest.json"
Say = Callable[[str], None]


class Store(Protocol):
    """Required operations of a store: a member's, through a pod, or a step's own."""

    def cards(self, place: str) -> list[dict[str, Any]]:
        """All cards below a place: `place` below it, `changed` and `card`. Raises TrainyardError."""

    def put(self, source: Path, place: str) -> bool:
        """Copies a file there unless it exists unchanged; returns whether it was copied. Raises TrainyardError."""


def root(team: str, bucket: str = BUCKET) -> str:
    """Location of a team's models, as `bucket/prefix`."""
    return f"{bucket}/{team}/{FOLDER}"


def bucket_of(known: Contract) -> str:
    """Bucket of registered models: from the contract, else the one that the example pipelines use."""
    return str((known.raw.get("serving") or {}).get("bucket") or BUCKET)


class ModelRegistry:
    """The registered models of one team."""

    def __init__(self, store: Store, team: str, bucket: str = BUCKET) -> None:
        self._store, self.root = store, root(team, bucket)

    def listed(self, name: str = "") -> list[Card]:
        """All versions, by name, newest first. Raises TrainyardError."""
        below = f"{self.root}/{name}" if name else self.root
        found = [
            cards.read(one["card"], f"{below}/{one['place']}", int(one.get("changed") or 0))
            for one in self._store.cards(below)
            if one["card"] is not None
        ]
        return sorted(found, key=lambda card: (card.name, -card.changed, card.version))

    def find(self, wanted: str) -> Card:
        """The newest version for `digits`, or that of `digits@VERSION`; a prefix of the version is enough.

        Raises:
            TrainyardError: no version matches, or several do.
        """
        name, version = cards.split(wanted)
        known = self.listed(name)
        if not known:
            hint = "list the models with `trainyard models list`, or add one with `trainyard models register`"
            raise TrainyardError(f"no model {name} is registered", where=f"s3://{self.root}", hint=hint)
        if not version:
            return known[0]
        found = [card for card in known if card.version == version]
        found = found or [card for card in known if card.version.startswith(version)]
        if len(found) == 1:
            return found[0]
        there = ", ".join(card.version for card in (found or known)[:8])
        what = f"several versions of {name} begin with {version}" if found else f"{name} has no version {version}"
        raise TrainyardError(what, where=f"s3://{self.root}/{name}", hint=f"use one of {there}")

    def register(self, folder: Path, card: Mapping[str, Any], say: Say = lambda text: None) -> Card:
        """Uploads a folder's files and its card as a version; an existing version with the same content is unchanged.

        Args:
            card: result of `complete`.
            say: called with what was sent, and with parts of the card that are ignored because the version exists.

        Raises:
            TrainyardError: that version exists with different content, or the store refuses.
        """
        name, version = str(card["name"]), str(card["version"])
        place = f"{self.root}/{name}/{version}"
        there = next((one for one in self.listed(name) if one.version == version), None)
        if there is not None and there.digest != card["digest"]:
            what = f"{name} {version} is already registered with different content"
            raise TrainyardError(
                what, where=f"s3://{place}", hint="versions never change: omit --version, or use a new one"
            )
        if there is None:
            for file in _files(folder):
                self._store.put(file, f"{place}/{file.relative_to(folder).as_posix()}")
                say(f"sent {file.relative_to(folder).as_posix()}")
            self._put(f"{place}/{server.CARD}", card)  # last, since a card means that all files exist
        self._put(f"{self.root}/{name}/{NEWEST}", {"version": version})
        made = cards.read(card, place)
        if there is not None and (other := cards.told_anew(there, made)):
            say(f"{there.title} is already registered and keeps its card: the new {', '.join(other)} are ignored")
        return there or made

    def _put(self, place: str, document: Mapping[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "object"
            file.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
            self._store.put(file, place)


def complete(folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The card of a folder: its own model.json, overridden by `given`, with digest and version from the content.

    Args:
        given: keys of the card; empty ones are ignored. `metrics` is added to those of model.json and metrics.json.

    Raises:
        UsageError: the folder has no file, or the card is wrong or incomplete.
    """
    if not folder.is_dir():
        raise UsageError("no such folder", where=str(folder), hint="pass the folder that the model was saved in")
    own = _json(folder / server.CARD)
    said = {
        **own,
        **{key: value for key, value in given.items() if value not in (None, "", [], {}) and key != "metrics"},
    }
    measured = {key: value for key, value in _json(folder / "metrics.json").items() if cards.is_number(value)}
    noted = own.get("metrics") or {}
    if not isinstance(noted, dict):
        raise UsageError("metrics is not an object", where=str(folder / server.CARD), hint='write {"accuracy": 0.97}')
    said["metrics"] = {**measured, **noted, **(given.get("metrics") or {})}
    cards.split(str(said.get("name") or ""))
    files = _files(folder)
    if not said.get("file"):
        usual = [file.relative_to(folder).as_posix() for file in files if file.suffix != ".json"]
        if len(usual) != 1:
            what = f"no single model file: found {', '.join(usual[:8]) or 'none'}"
            raise UsageError(what, where=str(folder), hint="pass --file; for a SavedModel, the folder")
        said["file"] = usual[0]
    path = folder / str(said["file"])
    if not path.exists() or not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"no {said['file']} in it", where=str(folder), hint="correct --file")
    if path.resolve() == folder.resolve():
        what = "the model can't be the folder itself, which the card is written into"
        raise UsageError(what, where=str(folder), hint="pass a file or folder in it with --file")
    said["digest"] = server.digest_of(path)
    beside = [file for file in files if not file.is_relative_to(path)]
    said["files"] = {
        file.relative_to(folder).as_posix(): {
            "sha256": server.digest_of(file).removeprefix("sha256:"), "bytes": file.stat().st_size
        } for file in beside
    }  # fmt: skip
    if not said.get("version"):
        content = {
            key: said.get(key) for key in ("framework", "file", "digest", "inputs", "outputs", "files", "builder")
        }
        said["version"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    try:
        server.parse(said, server.CARD)
    except CardError as error:
        raise UsageError(str(error).rstrip("."), where=str(folder)) from None
    return said


@contextmanager
def opened(kube: Kube, known: Contract) -> Iterator[ModelRegistry]:
    """The team's models, through a pod that runs as long as the block. Raises TrainyardError."""
    from trainyard.kinds import TeamConfig  # not available in a pipeline step
    from trainyard.training.transfer import open_store

    with open_store(kube, TeamConfig.of(known, kube.namespace)) as store:
        yield ModelRegistry(ByPod(store), kube.namespace, bucket_of(known))


class ByPod:
    """Store through the pod of a member's command."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def cards(self, place: str) -> list[dict[str, Any]]:
        """See `Store.cards`."""
        return list(self._store.run("models", place)["cards"])

    def put(self, source: Path, place: str) -> bool:
        """See `Store.put`."""
        return bool(self._store.put(source, place))


class EnvironmentStore:
    """Store with the keys in a step's environment."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def cards(self, place: str) -> list[dict[str, Any]]:
        """See `Store.cards`."""
        from trainyard_agent.runs import models

        bucket, _, prefix = place.partition("/")
        with _as_errors():
            return models.cards(self._client, bucket, prefix)

    def put(self, source: Path, place: str) -> bool:
        """See `Store.put`."""
        from trainyard_agent.store import objects

        bucket, _, key = place.partition("/")
        size, digest = source.stat().st_size, server.digest_of(source).removeprefix("sha256:")
        with _as_errors():
            if objects.stat(self._client, bucket, key) == {"size": size, "sha256": digest}:
                return False
            with open(source, "rb") as file:
                objects.put(self._client, bucket, key, file, size, digest)
        return True


class Folder:
    """Store of a run on one machine, where buckets are folders."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def cards(self, place: str) -> list[dict[str, Any]]:
        """See `Store.cards`."""
        below, found = self._root / place, []
        for file in sorted(below.rglob(server.CARD)):
            where = file.parent.relative_to(below).as_posix()
            changed = int(file.stat().st_mtime)
            found.append({"place": "" if where == "." else where, "changed": changed, "card": _json(file)})
        return found

    def put(self, source: Path, place: str) -> bool:
        """See `Store.put`."""
        target = self._root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return True


@contextmanager
def _as_errors() -> Iterator[None]:
    from trainyard_agent.say import PlatformError

    try:
        yield
    except PlatformError as error:
        raise TrainyardError(str(error)) from None


def _files(folder: Path) -> list[Path]:
    """Files of a folder to register: all except hidden ones, caches and the card.

    Raises:
        UsageError: a file links outside its folder.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part == "__pycache__" for part in parts) or not path.is_file():
            continue
        if parts == (server.CARD,):
            continue
        if not path.resolve().is_relative_to(folder.resolve()):
            raise UsageError("links outside its folder", where=str(path), hint="replace it with the file")
        found.append(path)
    return found


def _json(file: Path) -> dict[str, Any]:
    """Object in a JSON file; {} if the file does not exist. Raises UsageError."""
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        raise UsageError("is not JSON", where=str(file), hint="correct or remove it") from None
    if not isinstance(found, dict):
        raise UsageError("not a JSON object", where=str(file), hint="write name, framework, inputs and outputs")
    return found
