"""Whole folders of files that come from somebody's machine: what is lacking, what is there, and what goes.

They lie below a prefix of a bucket or in a folder of a mounted volume. Names and digests come and go as lines of JSON,
files as one tar stream, so that neither many files nor large ones need memory.
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
    """One file: its name below the place, with slashes; its size in bytes; when it was changed, in Unix seconds."""

    name: str
    size: int
    changed: float


@dataclass
class Set:
    """What lies below one name of a place. `changed`: the newest file's."""

    name: str
    files: int = 0
    bytes: int = 0
    changed: float = 0.0


class Place(Protocol):
    """Where a data set is."""

    def lacks(self, name: str, size: int, sha256: str, changed: float) -> bool:
        """Whether this file isn't there as it is described."""

    def write(self, name: str, source: IO[bytes], size: int, sha256: str, changed: float) -> None:
        """Have the file there, whole and undamaged, or not at all. Raises PlatformError."""

    def files(self) -> Iterator[File]:
        """All files that are there."""

    def remove(self) -> int:
        """Remove all of it; returns how many files that were. Raises PlatformError."""


class Bucket:
    """Below a prefix of a bucket."""

    def __init__(self, client: Minio, bucket: str, prefix: str) -> None:
        self.client, self.bucket, self.prefix = client, bucket, prefix.strip("/")
        self.below = f"{self.prefix}/" if self.prefix else ""

    def lacks(self, name: str, size: int, sha256: str, changed: float) -> bool:
        """The digest decides, which `write` leaves with the object. What can't be seen is written, or refused then."""
        try:
            found = objects.stat(self.client, self.bucket, f"{self.below}{name}")
        except objects.RefusedError:
            return True
        return found != {"size": size, objects.SHA256: sha256}

    def write(self, name: str, source: IO[bytes], size: int, sha256: str, changed: float) -> None:
        """An object comes to its name whole."""
        objects.put(self.client, self.bucket, f"{self.below}{name}", source, size, sha256)

    def files(self) -> Iterator[File]:
        """In the order of their names."""
        with objects.store_errors(f"s3://{self.bucket}/{self.prefix}"):
            for item in self.client.list_objects(self.bucket, self.below, recursive=True):
                name = str(item.object_name)[len(self.below) :]
                if name and not name.endswith("/"):  # the marker of an empty folder
                    changed = item.last_modified.timestamp() if item.last_modified else 0.0
                    yield File(name, int(item.size or 0), changed)

    def remove(self) -> int:
        """Older versions stay as long as the bucket keeps them."""
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
    """In a folder of a volume, which others of the team may use meanwhile."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def lacks(self, name: str, size: int, sha256: str, changed: float) -> bool:
        """Size and time decide: a digest would read everything over the network."""
        try:
            found = (self.root / name).stat()
        except OSError:
            return True
        return (found.st_size, int(found.st_mtime)) != (size, int(changed))

    def write(self, name: str, source: IO[bytes], size: int, sha256: str, changed: float) -> None:
        """Beside its name first; the group may write what is made here."""
        target = self.root / name
        mark = hashlib.sha256(target.name.encode(errors="surrogateescape")).hexdigest()[:16]
        part = target.with_name(f".{mark}{PART}")  # of its own, and short enough, whatever the name is
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
        """Links are neither counted nor followed."""
        for where, folders, names in os.walk(self.root):
            folders.sort()
            for name in sorted(names):
                path = Path(where) / name
                with suppress(OSError):
                    found = path.lstat()
                    if path.is_file() and not path.is_symlink():
                        yield File(path.relative_to(self.root).as_posix(), found.st_size, found.st_mtime)

    def remove(self) -> int:
        """Files and links first, then the folders, the innermost first."""
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
    """Read `[name, size, sha256, changed]` line by line, to an empty one; write the names that are lacking.

    Returns how many those are. A place that holds nothing is asked for no name.
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
    """Write every file of a tar stream; returns how many. Those before an early end stay. Raises PlatformError."""
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
    """The digest of a file that is really one, and stays below the place. Raises PlatformError."""
    if not member.isfile() or any(part in ("", ".", "..") for part in member.name.split("/")):
        raise PlatformError(f"{member.name!r} is not a file, or leads out of the folder")
    digest = member.pax_headers.get(SHA256, "")
    if len(digest) != hashlib.sha256().digest_size * 2:
        raise PlatformError(f"{member.name!r} comes without its digest")
    return digest


def sets(place: Place) -> list[Set]:
    """What lies there by the first part of its name, files by themselves."""
    found: dict[str, Set] = {}
    for file in place.files():
        one = found.setdefault(file.name.partition("/")[0], Set(file.name.partition("/")[0]))
        one.files, one.bytes, one.changed = one.files + 1, one.bytes + file.size, max(one.changed, file.changed)
    return sorted(found.values(), key=lambda one: one.name)


def place_of(text: str) -> Place:
    """`bucket/prefix` with the keys of the pod's environment, or a folder's absolute path. Raises PlatformError."""
    if text.startswith("/"):
        os.umask(0o002)  # the team shares its volumes by group
        return Folder(Path(text))
    bucket, _, prefix = text.partition("/")
    return Bucket(connect.client(connect.access()), bucket, prefix)


def run(operation: str, text: str) -> int:
    """One operation; the last line of standard error is a JSON object that says what was done. Raises PlatformError."""
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
