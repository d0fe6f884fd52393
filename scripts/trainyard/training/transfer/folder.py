"""Uploads a folder to the store: only missing files, as one stream that is restarted if it breaks."""

import hashlib
import io
import json
import os
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from trainyard.errors import TrainyardError, UsageError
from trainyard.training.ignore import Ignore
from trainyard.training.pack import ignored, leads_out, walk
from trainyard.training.transfer.store import AGAIN, PAUSE_S, Progress, Store, again, is_retryable
from trainyard_agent.store.data_sets import SHA256

BLOCK = 1 << 20  # bytes
LONGEST = 900  # bytes of a name: S3 allows 1,024 including the prefix
LARGEST = 100 << 30  # bytes of a file, limited by the pod's memory
UNKNOWN = "invalid choice"  # answer of an older release's pod


@dataclass(frozen=True)
class File:
    """One file to send. `name` is relative to the place, with slashes; `changed` is in seconds since 1970."""

    name: str
    path: Path
    size: int
    changed: int
    sha256: str


@dataclass(frozen=True)
class FolderFiles:
    """Content of a folder: (name, path, size in bytes) of its files, and entries omitted without a rule.

    `outside`: links to files outside the folder, which are sent.
    """

    files: list[tuple[str, Path, int]]
    left_out: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Total size in bytes."""
        return sum(size for _, _, size in self.files)


def scan(folder: Path) -> FolderFiles:
    """Lists the files of a folder, or a single file. Links to files count as files. Raises UsageError."""
    if folder.is_file():
        return FolderFiles([(folder.name, folder, _size(folder, folder.name))])
    if not folder.is_dir():
        raise UsageError("no such file or folder", where=str(folder), hint="correct the path")
    files, left_out, outside = [], [], []
    for where, name, entry in walk(folder, "", Ignore(ignored(folder).splitlines())):
        path = Path(entry.path)
        if path.is_file():
            files.append((where + name, path, _size(path, where + name)))
            outside += [where + name] if leads_out(folder, entry) else []
        else:
            left_out.append(where + name)
    if not files:
        raise UsageError("the folder contains no files", where=str(folder), hint="choose the folder that has the data")
    return FolderFiles(sorted(files), sorted(left_out), sorted(outside))


def digest(found: FolderFiles, progress: Progress) -> list[File]:
    """Computes the digest of every file. Raises UsageError for an unreadable file."""
    files = []
    for name, path, _ in found.files:
        sums, size = hashlib.sha256(), 0
        try:
            with open(path, "rb") as file:
                changed = int(os.fstat(file.fileno()).st_mtime)
                while block := file.read(BLOCK):
                    sums.update(block)
                    size += len(block)
                    progress(len(block))
        except OSError as error:
            raise UsageError(f"the file can't be read: {error.strerror}", where=str(path)) from None
        files.append(File(name, path, size, max(0, changed), sums.hexdigest()))
    return files


def lacking(store: Store, place: str, files: Sequence[File]) -> list[File]:
    """The files that are missing or different at the place. Raises TrainyardError."""
    lines = (json.dumps([one.name, one.size, one.sha256, one.changed]).encode() + b"\n" for one in files)
    names = set(_rows(store, "compare", place, stdin=cast(IO[bytes], io.BytesIO(b"".join(lines) + b"\n"))))
    return [one for one in files if one.name in names]


def send(store: Store, place: str, files: Sequence[File], progress: Progress) -> None:
    """Uploads the files to the place; restarts a broken stream with the files still missing.

    Raises:
        TrainyardError: several streams in a row made no progress, the store refuses, or a file changed meanwhile.
    """
    failures = 0
    while files:
        try:
            store.run("fill", place, stdin=cast(IO[bytes], Stream(files, progress)))
            return
        except TrainyardError as error:
            failures += 1
            if not is_retryable(error) or failures >= AGAIN:
                raise
        time.sleep(PAUSE_S)
        left = lacking(store, place, files)
        failures, files = (0 if len(left) < len(files) else failures), left


def listed(store: Store, operation: str, place: str) -> list[dict[str, Any]]:
    """Output of the operation `sets` or `files` on a place, as data. Raises TrainyardError."""
    return _rows(store, operation, place)


def remove(store: Store, place: str) -> int:
    """Removes all files of a place; returns their number. Raises TrainyardError."""
    return int(_known(lambda: store.run("remove", place))["files"])


class Stream:
    """Files as a tar stream, created while reading. Reading fails if a file no longer has its expected size."""

    def __init__(self, files: Sequence[File], progress: Progress) -> None:
        self._blocks, self._rest = _tar(files, progress), b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`. Raises UsageError."""
        if size < 0:
            return self._rest + b"".join(self._blocks)
        while not self._rest:
            try:
                self._rest = next(self._blocks)
            except StopIteration:
                return b""
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def _tar(files: Sequence[File], progress: Progress) -> Iterator[bytes]:
    for one in files:
        info = tarfile.TarInfo(one.name)
        info.size, info.mtime, info.mode = one.size, one.changed, 0o644
        info.pax_headers = {SHA256: one.sha256}
        yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
        left = one.size
        try:
            with open(one.path, "rb") as file:
                while block := file.read(BLOCK):
                    left -= len(block)
                    if left < 0:
                        break
                    progress(len(block))
                    yield block
        except OSError as error:
            raise UsageError(f"the file can't be read: {error.strerror}", where=str(one.path)) from None
        if left:
            hint = "run the command again when nothing writes to it; what was sent stays"
            raise UsageError("the file changed while it was sent", where=str(one.path), hint=hint)
        yield b"\0" * (-one.size % tarfile.BLOCKSIZE)
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _rows(store: Store, operation: str, place: str, *, stdin: IO[bytes] | None = None) -> list[Any]:
    """The operation's output, which is lines of JSON."""

    def read() -> list[Any]:
        out = io.BytesIO()
        if stdin:
            stdin.seek(0)
        _known(lambda: store.stream(operation, place, out, stdin=stdin))
        return [json.loads(line) for line in out.getvalue().splitlines()]

    return again(read)


def _known(operation: Any) -> Any:
    """The operation's result. Raises TrainyardError, also if the pod's release does not support it yet."""
    try:
        return operation()
    except TrainyardError as error:
        if UNKNOWN in error.what:
            hint = "ask your platform engineer for an upgrade, or use the `trainyard` of the platform's release"
            raise TrainyardError("the platform's release doesn't support this yet", hint=hint) from None
        raise


def _size(path: Path, name: str) -> int:
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode(errors="backslashreplace").decode()
        raise UsageError(f"the name {shown!r} is not UTF-8", hint="rename the file") from None
    if len(name.encode()) > LONGEST:
        raise UsageError(f"the name has {len(name.encode())} bytes, but the limit is {LONGEST}", where=str(path))
    size = path.stat().st_size
    if size > LARGEST:
        what = f"the file has {size / 2**30:.0f} GiB, but the limit is {LARGEST >> 30} GiB"
        raise UsageError(what, where=str(path), hint="split it: `split -b 50G`")
    return size
