"""Compressed archives of folders and buckets: written in one pass, and read back entry by entry.

Folders are walked through open directories and never through symbolic links, so that their owner can't lead the
backup out of the folder while it runs.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from minio import Minio

LEVEL = 3  # of gzip: three times as fast as the usual 6, a few per cent larger
OURS = "TRAINYARD."
KEY, ETAG, TYPE, META = f"{OURS}key", f"{OURS}etag", f"{OURS}type", f"{OURS}meta."
NAMED = 100
GONE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE, errno.ENXIO}  # removed or replaced meanwhile
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
# Bytes of holes: a file's size minus what is stored. Terabytes of them cost nothing, and would keep everybody's backup
# busy until its deadline. NFS doesn't show a client where the holes are.
HOLES = 1 << 30
BLOCK = 512  # the unit of st_blocks, on every file system


@dataclass
class Counts:
    """Counts of an archive. `changed` files were written to while they were read; `left_out` are special files.

    Files with more than HOLES bytes of holes are left out, too. The first few of both kinds are named.
    """

    entries: int = 0
    bytes: int = 0
    changed: int = 0
    left_out: int = 0
    names: list[str] = field(default_factory=list)

    def note(self, path: str) -> int:
        """Name one path; returns 1, to be added to a count."""
        if len(self.names) < NAMED:
            self.names.append(path)
        return 1


class Sums:
    """A stream that counts and hashes the bytes that it passes to another."""

    def __init__(self, target: IO[bytes]) -> None:
        self.target, self.size, self._hash = target, 0, hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Pass the data on."""
        self.target.write(data)
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: the stream has no buffer."""

    @property
    def sha256(self) -> str:
        """The digest of all that was written."""
        return self._hash.hexdigest()


class ExactReader:
    """Reads exactly `size` bytes of a file that may shrink meanwhile: pads it with zeros, and sets `short`."""

    def __init__(self, source: Any, size: int) -> None:
        self.source, self.left, self.short = source, size, False

    def read(self, size: int) -> bytes:
        """The next bytes."""
        size = min(size, self.left)
        data = b"" if self.short else self.source.read(size)
        if len(data) < size:
            self.short = True
            data = data.ljust(size, b"\0")
        self.left -= size
        return bytes(data)


@contextmanager
def writing(target: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """A compressed tar archive, written to a stream that can't be rewound."""
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=target, compresslevel=LEVEL, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield tar


@contextmanager
def reading(source: IO[bytes]) -> Iterator[tarfile.TarFile]:
    """A compressed tar archive, read from a stream."""
    with tarfile.open(fileobj=source, mode="r|gz") as tar:
        yield tar


@contextmanager
def ignore_gone() -> Iterator[None]:
    """Ignore errors because an entry was removed or replaced since it was listed."""
    try:
        yield
    except OSError as error:
        if error.errno not in GONE:
            raise


def _walk(root: int) -> Iterator[tuple[int, str, str, os.stat_result]]:
    """Every entry below an open directory: its directory, name, path, status. Parents come first."""
    stack = [(os.dup(root), "", iter(sorted(os.listdir(root))))]
    try:
        while stack:
            folder, prefix, names = stack[-1]
            name = next(names, None)
            if name is None:
                os.close(folder)
                stack.pop()
                continue
            with ignore_gone():
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    inner = os.open(name, FOLDER, dir_fd=folder)
                    stack.append((inner, f"{prefix}{name}/", iter(sorted(os.listdir(inner)))))
                yield folder, name, prefix + name, status
    finally:
        for folder, _, _ in stack:
            os.close(folder)


def _info(path: str, status: os.stat_result) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.mode, info.uid, info.gid = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
    info.mtime = status.st_mtime  # type: ignore[assignment]  # fractions go into the extended header
    return info


def pack_folder(root: Path, tar: tarfile.TarFile) -> Counts:
    """Add everything in a folder with owner, mode and times: files, folders, links. Raises OSError."""
    counts, linked = Counts(), dict[tuple[int, int], str]()
    top = os.open(root, FOLDER)
    try:
        info = _info(".", os.fstat(top))
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
        for folder, name, path, status in _walk(top):
            _add(tar, counts, linked, folder, name, path, status)
    finally:
        os.close(top)
    return counts


def _add(
    tar: tarfile.TarFile,
    counts: Counts,
    linked: dict[tuple[int, int], str],
    folder: int,
    name: str,
    path: str,
    status: os.stat_result,
) -> None:
    """Add one entry; `linked` maps files with several names (device, inode) to their first."""
    info, mode, file = _info(path, status), status.st_mode, (status.st_dev, status.st_ino)
    if stat.S_ISDIR(mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(mode):
        info.type = tarfile.SYMTYPE
        with ignore_gone():
            info.linkname = os.readlink(name, dir_fd=folder)
        if not info.linkname:
            return
    elif not stat.S_ISREG(mode):
        counts.left_out += counts.note(path)
        return
    elif status.st_nlink > 1 and file in linked:
        info.type, info.linkname = tarfile.LNKTYPE, linked[file]
    else:
        _add_file(tar, counts, path, folder, name)
        if status.st_nlink > 1:
            linked[file] = path
        return
    tar.addfile(info)
    counts.entries += 1


def _add_file(tar: tarfile.TarFile, counts: Counts, path: str, folder: int, name: str) -> None:
    descriptor = -1
    with ignore_gone():
        descriptor = os.open(name, FILE, dir_fd=folder)
    if descriptor < 0:
        return
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size - status.st_blocks * BLOCK > HOLES:
            counts.left_out += counts.note(path)
            return
        info = _info(path, status)
        info.size = status.st_size
        source = ExactReader(file, info.size)
        tar.addfile(info, cast(IO[bytes], source))
        if source.short or os.fstat(file.fileno()).st_mtime != status.st_mtime:
            counts.changed += counts.note(path)
    counts.entries += 1
    counts.bytes += info.size


def pack_bucket(client: Minio, bucket: str, tar: tarfile.TarFile) -> Counts:
    """Add every current object of a bucket, with type and metadata. Older versions are left out."""
    from minio.error import S3Error

    counts = Counts()
    for item in client.list_objects(bucket, recursive=True):
        key = str(item.object_name)
        try:
            answer = client.get_object(bucket, key)
        except S3Error as error:
            if error.code == "NoSuchKey":  # removed meanwhile
                continue
            raise
        try:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            info = tarfile.TarInfo(key)
            info.size = int(headers["content-length"])
            info.mtime = item.last_modified.timestamp() if item.last_modified else 0
            info.pax_headers = {KEY: key, ETAG: headers.get("etag", "").strip('"')}
            info.pax_headers[TYPE] = headers.get("content-type", "application/octet-stream")
            for name, value in headers.items():
                if name.startswith("x-amz-meta-"):
                    info.pax_headers[META + name.removeprefix("x-amz-meta-")] = value
            source = ExactReader(answer, info.size)
            tar.addfile(info, cast(IO[bytes], source))
            if source.short:
                raise OSError(f"s3://{bucket}/{key} ended early")
        finally:
            answer.close()
            answer.release_conn()
        counts.entries += 1
        counts.bytes += info.size
    return counts
