"""Restores a backup, or lists backups. Archives are checked against their manifest before anything is changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import archive, backup, connect, targets, unpack
from trainyard_agent.store.targets import Target

if TYPE_CHECKING:
    from minio import Minio

BLOCK = 1 << 20  # bytes
SHOWN = 20  # names of files that were kept, printed at most


@dataclass(frozen=True)
class RestoreRequest:
    """What to restore: `stamp` "" only lists; `only` empty means all; `into` "" means in place."""

    stamp: str = ""
    only: tuple[str, ...] = ()
    path: str = ""
    into: str = ""
    overwrite: bool = False

    @classmethod
    def read(cls, env: Any) -> RestoreRequest:
        """From RESTORE_FROM, _ONLY, _PATH, _INTO and _OVERWRITE. Raises PlatformError."""
        overwrite = env.get("RESTORE_OVERWRITE", "").strip().lower()
        if overwrite not in ("", "true", "false"):
            raise PlatformError(f"RESTORE_OVERWRITE is {overwrite!r}; it can be true or false")
        into = env.get("RESTORE_INTO", "").strip()
        if into and (into.startswith(".") or "/" in into):
            raise PlatformError(
                f"RESTORE_INTO is {into!r}; it must be a plain name, without a slash or a dot before it"
            )
        only = tuple(env.get("RESTORE_ONLY", "").replace(",", " ").split())
        path = env.get("RESTORE_PATH", "").strip().strip("/")
        return cls(env.get("RESTORE_FROM", "").strip(), only, path, into, overwrite == "true")


def show(target: Target) -> None:
    """Print one line for each backup and each of its archives."""
    for stamp in target.stamps():
        held = target.manifest(stamp)
        say(f"backup {stamp}{'' if not held['failed'] else ', without ' + ', '.join(held['failed'])}")
        for name, entry in held["archives"].items():
            say(f"  {name}: {entry['entries']} entries, {entry['bytes']} bytes")
    say("set RESTORE_FROM to one of these, or to latest" if target.stamps() else "there is no backup yet")


def check(target: Target, stamp: str, name: str, entry: dict[str, Any]) -> None:
    """Read a complete archive and compare it with its manifest. Raises PlatformError."""
    found, size = hashlib.sha256(), 0
    with target.read(stamp, entry["file"]) as source:
        while block := source.read(BLOCK):
            found.update(block)
            size += len(block)
    if (size, found.hexdigest()) != (entry["archiveBytes"], entry["sha256"]):
        raise PlatformError(f"{entry['file']} of backup {stamp} is not what was written ({name}); nothing was restored")


def restore(
    wish: RestoreRequest, target: Target, contract: dict[str, Any], export: Path | None, client: Callable[[], Minio]
) -> dict[str, unpack.Outcome]:
    """Restore what is requested; returns the outcome by source. Raises PlatformError."""
    stamp = targets.find(target, wish.stamp)
    manifest = target.manifest(stamp)
    if manifest["format"] != backup.FORMAT:
        raise PlatformError(f"backup {stamp} was written by another version: its format is {manifest['format']}")
    held = manifest["archives"]
    names = list(wish.only or held)
    if missing := [name for name in names if name not in held]:
        raise PlatformError(f"backup {stamp} has no {', '.join(missing)}; it has {', '.join(held)}")
    folders = {source.name: source.folder for source in backup.sources(contract, [], export)}
    for name in names:
        if not held[name]["bucket"] and name not in folders:
            where = "the file server is not mounted" if export is None else "its team is not in the values"
            raise PlatformError(f"{name} can't be restored: {where}")
        check(target, stamp, name, held[name])
        say(f"{name}: the archive is whole")
    done = {}
    for name in names:
        with target.read(stamp, held[name]["file"]) as source:
            bucket = held[name]["bucket"]
            done[name] = (
                _bucket(wish, contract, bucket, source, client) if bucket else _folder(wish, folders[name], source)
            )
        _tell(name, done[name])
    return done


def _folder(wish: RestoreRequest, folder: Path, source: IO[bytes]) -> unpack.Outcome:
    root = folder / wish.into if wish.into else folder
    if wish.into and os.path.lexists(root):
        raise PlatformError(f"{wish.into} is in {folder} already; choose another RESTORE_INTO")
    with archive.reading(source) as tar:
        return unpack.Folder(root, overwrite=wish.overwrite, subtree=wish.path).restore(tar)


def _bucket(
    wish: RestoreRequest, contract: dict[str, Any], bucket: str, source: IO[bytes], client: Callable[[], Minio]
) -> unpack.Outcome:
    per_team = any(known["name"] == bucket and known.get("teams") == "own" for known in contract["storage"]["buckets"])
    with archive.reading(source) as tar:
        return unpack.restore_bucket(
            client(),
            bucket,
            tar,
            overwrite=wish.overwrite,
            place=lambda key: unpack.beside(key, wish.into, per_team=per_team),
            subtree=wish.path,
        )


def _tell(name: str, outcome: unpack.Outcome) -> None:
    say(f"{name}: {outcome.restored} restored, {outcome.same} the same, {len(outcome.kept)} kept as they are")
    for path in outcome.kept[:SHOWN]:
        say(f"  kept, being newer or of another kind: {path}")
    if len(outcome.kept) > SHOWN:
        say(f"  and {len(outcome.kept) - SHOWN} more; RESTORE_OVERWRITE=true replaces newer ones")


def run(contract_file: str, export: str, target: Target, env: Any) -> int:
    """List or restore, depending on the environment. Raises PlatformError."""
    wish = RestoreRequest.read(env)
    contract = json.loads(Path(contract_file).read_text())
    if not wish.stamp:
        show(target)
        return 0
    # The platform's user may only read some buckets: MinIO's root user writes to them.
    root = contract["storage"]["s3"]["mode"] == "inCluster"
    restore(wish, target, contract, Path(export) if export else None, lambda: connect.client(connect.access(root=root)))
    return 0
