"""Registered models: their cards in the store, and how one version gets into the pod that serves it.

A version is a folder `models/NAME/VERSION/` of the team's place. Its card, model.json, is written last, so a card
means that the version is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard_agent.runs import run_files
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import connect, objects

if TYPE_CHECKING:
    from minio import Minio

CARD = "model.json"
STORE = "s3://"
BLOCK = 1 << 20  # bytes
LARGEST_CARD = 1 << 20


def digest_of(path: Path) -> str:
    """`sha256:…` of a file's bytes; for a folder, of its files' names and digests in order, as the server counts."""
    if path.is_dir():
        files = (file for file in path.rglob("*") if file.is_file())
        lines = sorted(f"{file.relative_to(path).as_posix()} {digest_of(file)}\n" for file in files)
        return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def cards(client: Minio, bucket: str, prefix: str) -> list[dict[str, Any]]:
    """Every card below a prefix: `place` below it, `changed` in seconds since 1970, `card` (None if no JSON object).

    Raises PlatformError.
    """
    below = f"{prefix.rstrip('/')}/"
    found = []
    with objects.store_errors(f"{STORE}{bucket}/{prefix}"):
        for item in client.list_objects(bucket, below, recursive=True):
            key = str(item.object_name)
            if key.rpartition("/")[2] != CARD or int(item.size or 0) > LARGEST_CARD:
                continue
            try:
                with connect.opened(client, bucket, key) as answer:
                    card = json.loads(answer.read())
            except ValueError:
                card = None
            changed = int(item.last_modified.timestamp()) if item.last_modified else 0
            place = key[len(below) :].rpartition("/")[0]
            found.append({"place": place, "changed": changed, "card": card if isinstance(card, dict) else None})
    return found


def listed(place: str) -> int:
    """Prints the cards below `bucket/prefix` with the keys of the pod's environment."""
    bucket, _, prefix = place.partition("/")
    return objects.tell({"cards": cards(connect.client(connect.access()), bucket, prefix)})


def bring(source: str, into: Path, name: str, version: str, digest: str = "") -> None:
    """Brings one version into a folder, completely or not at all.

    Args:
        source: `s3://bucket/prefix`, or a folder.
        digest: expected digest of the model's file; empty: the one in its card.

    Raises:
        PlatformError: it is missing, is another model or version, or has another digest.
    """
    part = into / ".part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if source.startswith(STORE):
            bucket, _, prefix = source.removeprefix(STORE).partition("/")
            run_files.bring(connect.client(connect.access()), bucket, prefix.rstrip("/"), part)
        else:
            _copy(Path(source), part)
        card = _checked(part, source, name, version, digest)
        for path in sorted(part.iterdir()):
            target = into / path.name
            shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
            os.replace(path, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    say(f"{name} {version} from {source}: {card['file']}, {card['digest'][:23]}…")


def run(source: str, into: str, name: str, version: str, digest: str) -> int:
    """The init container of a serving pod. Raises PlatformError."""
    bring(source, Path(into), name, version, digest)
    return 0


def _copy(source: Path, into: Path) -> None:
    """Copies a folder's files. Links that lead out of it are left out: they would be another's file."""
    if not source.is_dir():
        raise PlatformError(f"no folder {source}: correct the path on the claim")
    root = source.resolve()
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.resolve().is_relative_to(root):
            target = into / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def _checked(folder: Path, source: str, name: str, version: str, digest: str) -> dict[str, Any]:
    """The card of the fetched version. Raises PlatformError if it is not the requested one."""
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlatformError(f"{source} has no {CARD}: `trainyard models list` shows what is registered") from None
    except ValueError:
        card = None
    if not isinstance(card, dict):
        raise PlatformError(f"{CARD} of {source} is not a JSON object: register the model again")
    for key, due in (("name", name), ("version", version)):
        if str(card.get(key)) != due:
            raise PlatformError(f"{source} is {key} {card.get(key)}, not {due}: correct which model is served")
    file = str(card.get("file") or "")
    said = str(card.get("digest") or _listed(card, file))
    path = folder / file
    if not file or not _within(folder, path) or not path.exists():
        raise PlatformError(
            f"{source} has no file {file or '(none)'}, which its {CARD} names: register the model again"
        )
    real = digest_of(path)
    for due, whose in ((said, f"its {CARD}"), (digest, "its server")):
        if due and due != real:
            raise _changed(f"{file} of {source} has the digest {real}, and {whose} says {due}")
    files = card.get("files")
    for beside in sorted(files) if isinstance(files, dict) else ():
        due = _listed(card, beside)
        if due and due != (real if beside == file else _digest_within(folder, beside)):
            raise _changed(f"{beside} of {source} is not the file that its {CARD} names")
    return card | {"digest": real}


def _changed(what: str) -> PlatformError:
    return PlatformError(f"{what}: it was changed after it was registered, so serve another version")


def _within(folder: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _digest_within(folder: Path, name: str) -> str:
    """The digest of a file of the folder; "" if it is not in the folder."""
    path = folder / name
    return digest_of(path) if path.is_file() and _within(folder, path) else ""


def _listed(card: dict[str, Any], file: str) -> str:
    """The digest of a file in the card's list of files, where older cards have it."""
    files = card.get("files")
    facts = files.get(file) if isinstance(files, dict) else None
    return f"sha256:{facts['sha256']}" if isinstance(facts, dict) and facts.get("sha256") else ""
