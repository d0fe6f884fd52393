"""Folders of files sent from a user's machine: lists what is missing, stores, lists and removes them.

They are below a prefix of a bucket or in a folder of a mounted volume. Names and digests travel as lines of JSON,
files as one tar stream, so neither many files nor large ones need memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect, objects
from trainyard_agent.store.archive import Sums

if TYPE_CHECKING:
    from minio import Minio

SHA256 = "TRAINYARD.sha256"  # of a file, in its header of the tar stream
PART = ".trainyard-part"
SMALL = 1 << 20  # bytes: files up to this size are held in memory and written side by side
AT_ONCE = 8
BLOCK = 1 << 20  # bytes


@dataclass(frozen=True)
class File:
    """One file: its name below the place, with slashes; its size in bytes; its modification time, in Unix seconds."""

    name: str
    size: int
    changed: float


@dataclass
class Set:
    """A data set: everything below one name of a place. `changed`: the newest file's."""

    name: str
    files: int = 0
    bytes: int = 0
    changed: float = 0.0


class Place(Protocol):
    """The location of a data set."""

    def lacks(self, name: str, size: int, sha256: str, changed: float) -> bool:
        """Whether this file is missing or differs from its description."""

    def write(self, name: str, source: IO[bytes], size: int, sha256: str, changed: float) -> None:
        """Store the file, complete and undamaged, or not at all. Raises PlatformError."""

    def files(self) -> Iterator[File]:
        """All files in the place."""

    def remove(self) -> int:
        """Remove all files; returns how many there were. Raises PlatformError."""


class Bucket:
    """A place below a prefix of a bucket."""

    def __init__(self, client: Minio, bucket: str, prefix: str) -> None:
        self.client, self.bucket, self.prefix = client, bucket, prefix.strip("/")
        self.below = f"{self.prefix}/" if self.prefix else ""

    def lacks(self, name: str, size: int, sha256: str, changed: float) -> bool:
        """Compare the digest that `write` stores with the object. An object that may not be read counts as missing."""
        try:
            found = objects.stat(self.client, self.bucket, f"{self.below}{name}")
        except objects.RefusedError:
            return True
        return found != {"size": size, objects.SHA256: sha256}

    def write(self, name: str, source: IO[bytes], size: int, sha256: str, changed: float) -> None:
        """Store an object, which appears only when it is complete."""
        objects.put(self.client, self.bucket, f"{self.below}{name}", source, size, sha256)

    def files(self) -> Iterator[File]:
        """All files, sorted by name."""
        with objects.store_errors(f"s3://{self.bucket}/{self.prefix}"):
            for item in self.client.list_objects(self.bucket, self.below, recursive=True):
                name = str(item.object_name)[len(self.below) :]
                if name and not name.endswith("/"):  # the marker of an empty folder
                    changed = item.last_modified.timestamp() if item.last_modified else 0.0
                    yield File(name, int(item.size or 0), changed)

    def remove(self) -> int:
        """Remove all objects. Older versions stay as long as the bucket keeps them."""
        from minio.deleteobjects import DeleteObject

        names = [file.name for file in self.files()]
        with objects.store_errors(f"s3://{self.bucket}/{self.prefix}"):
            doomed = (DeleteObject(f"{self.below}{name}") for name in names)
            for error in self.client.remove_objects(self.bucket, doomed):
                raise objects.RefusedError(
                    f"the object store refuses to delete s3://{self.bucket}/{error.name}: {error.code}, {error.message}"
                )
        return len(names)


class Folder:
    """A place in a folder of a volume, which the team may use at the same time."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def lacks(self, name: str, size: int, sha256: str, changed: float) -> bool:
        """Compare size and time: a digest would require reading everything over the network."""
        try:
            found = (self.root / name).stat()
        except OSError:
            return True
        return (found.st_size, int(found.st_mtime)) != (size, int(changed))

    def write(self, name: str, source: IO[bytes], size: int, sha256: str, changed: float) -> None:
        """Write under a temporary name first; the group may write files made here."""
        target = self.root / name
        mark = hashlib.sha256(target.name.encode(errors="surrogateescape")).hexdigest()[:16]
        part = target.with_name(f".{mark}{PART}")  # unique, and short enough, whatever the name is
        checked = objects.Checked(source, size, sha256)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(part, "wb") as file:
                    while block := checked.read(BLOCK):
                        file.write(block)
                os.utime(part, (changed, changed))
                os.replace(part, target)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise PlatformError(f"{target}: {error.strerror or error}") from None

    def files(self) -> Iterator[File]:
        """All files; links are neither counted nor followed."""
        for where, folders, names in os.walk(self.root):
            folders.sort()
            for name in sorted(names):
                path = Path(where) / name
                with suppress(OSError):
                    found = path.lstat()
                    if path.is_file() and not path.is_symlink():
                        yield File(path.relative_to(self.root).as_posix(), found.st_size, found.st_mtime)

    def remove(self) -> int:
        """Remove files and links first, then the folders, the innermost first."""
        count = 0
        try:
            for where, folders, names in os.walk(self.root, topdown=False):
                links = [name for name in folders if (Path(where) / name).is_symlink()]
                for name in (*names, *links):
                    (Path(where) / name).unlink()
                    count += 1
                os.rmdir(where)
        except OSError as error:
            raise PlatformError(f"{error.filename or self.root}: {error.strerror or error}") from None
        return count


def compare(place: Place, source: Iterable[bytes], out: IO[bytes]) -> int:
    """Read `[name, size, sha256, changed]` line by line up to an empty one; write the names of missing files.

    Returns how many those are. An empty place is not queried for any name.
    """
    empty, lacking = next(iter(place.files()), None) is None, 0
    lines = takewhile(bytes.strip, source)

    def lacks(row: list[Any]) -> bool:
        return empty or place.lacks(*row)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        while rows := [json.loads(line) for line in islice(lines, AT_ONCE * 32)]:
            for row, is_lacking in zip(rows, pool.map(lacks, rows), strict=True):
                if is_lacking:
                    out.write(json.dumps(row[0]).encode() + b"\n")
                    lacking += 1
    return lacking


def fill(place: Place, source: IO[bytes]) -> int:
    """Write every file of a tar stream; returns how many. Files before an early end stay. Raises PlatformError."""
    count, waiting = 0, deque[Future[None]]()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            with tarfile.open(fileobj=source, mode="r|") as tar:
                for member in tar:
                    digest, data = _announced(member), cast(IO[bytes], tar.extractfile(member))
                    if member.size > SMALL:
                        place.write(member.name, data, member.size, digest, member.mtime)
                    else:
                        held = io.BytesIO(data.read())
                        waiting.append(pool.submit(place.write, member.name, held, member.size, digest, member.mtime))
                    while len(waiting) > 2 * AT_ONCE:
                        waiting.popleft().result()
                    count += 1
        except (tarfile.TarError, EOFError) as error:
            raise objects.DamagedError(f"the files ended too early: {error}") from None
        for future in waiting:
            future.result()
    return count


def _announced(member: tarfile.TarInfo) -> str:
    """The digest of a regular file whose name stays below the place. Raises PlatformError."""
    if not member.isfile() or any(part in ("", ".", "..") for part in member.name.split("/")):
        raise PlatformError(f"{member.name!r} is not a file, or leads out of the folder")
    digest = member.pax_headers.get(SHA256, "")
    if len(digest) != hashlib.sha256().digest_size * 2:
        raise PlatformError(f"{member.name!r} comes without its digest")
    return digest


def sets(place: Place) -> list[Set]:
    """The data sets of the place, by the first part of their names; files by themselves."""
    found: dict[str, Set] = {}
    for file in place.files():
        one = found.setdefault(file.name.partition("/")[0], Set(file.name.partition("/")[0]))
        one.files, one.bytes, one.changed = one.files + 1, one.bytes + file.size, max(one.changed, file.changed)
    return sorted(found.values(), key=lambda one: one.name)


def place_of(text: str) -> Place:
    """`bucket/prefix`, with keys from the pod's environment, or a folder's absolute path. Raises PlatformError."""
    if text.startswith("/"):
        os.umask(0o002)  # the team shares its volumes through its group
        return Folder(Path(text))
    bucket, _, prefix = text.partition("/")
    return Bucket(connect.client(connect.access()), bucket, prefix)


def run(operation: str, text: str) -> int:
    """Run one operation; the last line of standard error is its result as a JSON object. Raises PlatformError."""
    place, out, report = place_of(text), Sums(sys.stdout.buffer), dict[str, Any]()
    sink = cast(IO[bytes], out)
    if operation == "compare":
        report["lacking"] = compare(place, sys.stdin.buffer, sink)
    elif operation == "fill":
        report["files"] = fill(place, sys.stdin.buffer)
    elif operation == "remove":
        report["files"] = place.remove()
    else:
        found: Iterable[Set | File] = sets(place) if operation == "sets" else place.files()
        for one in found:
            sink.write(json.dumps(asdict(one)).encode() + b"\n")
    sys.stdout.buffer.flush()
    return objects.tell(report | {"size": out.size, objects.SHA256: out.sha256})
