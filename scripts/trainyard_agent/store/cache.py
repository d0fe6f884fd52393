"""Copies data sets from buckets to the shared volume; data that has not changed is not copied again.

Each copy is in `.cache/<name>/<digest>`, named by its content; `datasets/<name>` is a link to the current one,
replaced atomically, so that a reader sees a complete copy, the old or the new. The previous copy stays for
jobs that still read it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import connect

if TYPE_CHECKING:
    from minio import Minio

MARKER = ".trainyard-cache.json"
PART = ".trainyard-part"
BLOCK = 4 << 20  # bytes
AT_ONCE = 4


@dataclass(frozen=True)
class Entry:
    """One object: its key below the prefix, and properties that change with its content. `size` is in bytes."""

    key: str
    etag: str
    size: int


def listing(client: Minio, bucket: str, prefix: str) -> list[Entry]:
    """All objects below a prefix, sorted. Raises PlatformError for keys that can't be file names."""
    below = f"{prefix.rstrip('/')}/" if prefix else ""
    found = []
    for item in client.list_objects(bucket, below, recursive=True):
        key = str(item.object_name)[len(below) :]
        if key and not key.endswith("/"):  # the marker of an empty folder
            found.append(Entry(key, str(item.etag or "").strip('"'), int(item.size or 0)))
    files, folders = {entry.key for entry in found}, set()
    for key in files:
        parts = key.split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in key or key == MARKER:
            raise PlatformError(f"s3://{bucket}/{below}{key} can't be used as a file name")
        folders |= {"/".join(parts[:depth]) for depth in range(1, len(parts))}
    if both := sorted(files & folders):
        raise PlatformError(f"s3://{bucket}/{below}{both[0]} is an object and a folder, which a file can't be")
    return sorted(found, key=lambda entry: entry.key)


def digest(bucket: str, prefix: str, entries: list[Entry]) -> str:
    """A digest that identifies exactly this content."""
    text = json.dumps([bucket, prefix, [asdict(entry) for entry in entries]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fetch(client: Minio, bucket: str, prefix: str, entry: Entry, target: Path) -> int:
    """Copy one object to a file, resuming an interrupted copy; returns the bytes that were copied."""
    part = target.with_name(f"{target.name}.{hashlib.sha256(entry.etag.encode()).hexdigest()[:8]}{PART}")
    key = f"{prefix.rstrip('/')}/{entry.key}" if prefix else entry.key
    done = part.stat().st_size if part.exists() else 0
    if done > entry.size:
        part.unlink()
        done = 0
    copied = 0
    with open(part, "ab") as file:
        if done < entry.size:
            with connect.opened(client, bucket, key, done, entry.size - done) as answer:
                if str(answer.headers.get("etag", "")).strip('"') != entry.etag:
                    raise PlatformError(f"s3://{bucket}/{key} changed while it was copied: run it again")
                while block := answer.read(BLOCK):
                    file.write(block)
                    copied += len(block)
        file.flush()
        os.fsync(file.fileno())
    if done + copied != entry.size:
        raise PlatformError(f"s3://{bucket}/{key} ended after {done + copied} of {entry.size} bytes: run it again")
    os.replace(part, target)
    return copied


def _held(folder: Path) -> dict[str, Entry]:
    """The entries of a complete copy, by key; {} without one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return {item["key"]: Entry(**item) for item in json.loads((folder / MARKER).read_text())["objects"]}
    return {}


def _place(
    client: Minio, cache: dict[str, str], entry: Entry, folder: Path, before: tuple[Path, dict[str, Entry]]
) -> int:
    """Place one file of a copy: keep it, take it from the previous copy, or fetch it; returns the bytes fetched."""
    target = folder / entry.key
    if target.exists() and target.stat().st_size == entry.size:
        return 0  # a file gets its name when it is complete
    target.parent.mkdir(parents=True, exist_ok=True)
    old, held = before
    if held.get(entry.key) == entry:
        with suppress(OSError):  # a file system without hard links
            os.link(old / entry.key, target)
            return 0
    return _fetch(client, cache["bucket"], cache["prefix"], entry, target)


def refresh(client: Minio, cache: dict[str, str], root: Path) -> str:
    """Update one data set below `root`; returns what was done, in words. Raises PlatformError."""
    name, link = cache["name"], root / "datasets" / cache["name"]
    entries = listing(client, cache["bucket"], cache["prefix"])
    if not entries:
        return f"s3://{cache['bucket']}/{cache['prefix']} is empty"
    copies = root / ".cache" / name
    folder = copies / digest(cache["bucket"], cache["prefix"], entries)
    present = link.resolve() if link.is_symlink() else None
    if link.exists() and not link.is_symlink():
        raise PlatformError(f"{link} is not a copy of this cache; move it away or rename the cache {name}")
    if present == folder.resolve() and _held(folder):
        return f"unchanged, {len(entries)} objects"
    before = (present, _held(present)) if present else (root, {})
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        fetched = sum(pool.map(lambda entry: _place(client, cache, entry, folder, before), entries))
    marker = {**cache, "objects": [asdict(entry) for entry in entries]}
    (folder / f"{MARKER}{PART}").write_text(json.dumps(marker))
    os.replace(folder / f"{MARKER}{PART}", folder / MARKER)
    link.parent.mkdir(exist_ok=True)
    fresh = link.with_name(f".{name}{PART}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    fresh.symlink_to(os.path.relpath(folder, link.parent))
    os.replace(fresh, link)
    for other in sorted(copies.iterdir()):
        if other.name != folder.name and other.resolve() != present:
            shutil.rmtree(other)
    return f"{len(entries)} objects, {fetched} bytes fetched"


def _gone(root: Path, wanted: set[str]) -> Iterator[str]:
    """Data sets that were copied here and are no longer wanted. Anything but our links is left alone."""
    copies = root / ".cache"
    for folder in sorted(copies.iterdir()) if copies.is_dir() else []:
        if folder.name not in wanted:
            link = root / "datasets" / folder.name
            if link.is_symlink():
                link.unlink()
            shutil.rmtree(folder)
            yield folder.name


def run(contract_file: str, root: str) -> int:
    """Update every data set of the contract below `root`. Raises PlatformError at the end if one failed."""
    os.umask(0o022)  # every team can read
    caches = json.loads(Path(contract_file).read_text())["storage"].get("caches") or []
    client = connect.client(connect.access())
    failed = []
    for cache in caches:
        try:
            say(f"data set {cache['name']}: {refresh(client, cache, Path(root))}")
        except Exception as error:
            failed.append(cache["name"])
            say(f"data set {cache['name']}: {error}")
    for name in _gone(Path(root), {cache["name"] for cache in caches}):
        say(f"data set {name}: removed, as it is gone from the values")
    if failed:
        raise PlatformError(f"not copied: {', '.join(failed)}")
    return 0
