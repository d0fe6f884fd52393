"""Places for backups: a folder or a bucket. A backup is complete once its manifest is there, which is written last."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect

if TYPE_CHECKING:
    from minio import Minio

MANIFEST = "manifest.json"
PART = ".part-"
STAMP = re.compile(r"\d{8}T\d{6}Z")
PART_SIZE = 64 << 20  # bytes that an upload holds in memory; ten thousand parts make an archive of 640 GB


class Target(Protocol):
    """A place for backups, each named by the time it began."""

    def stamps(self) -> list[str]:
        """Finished backups, the oldest first."""

    def unfinished(self) -> list[str]:
        """Backups that began and never finished."""

    def write(self, stamp: str, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open a new archive of an unfinished backup."""

    def finish(self, stamp: str, manifest: dict[str, Any]) -> None:
        """Mark the backup as complete."""

    def manifest(self, stamp: str) -> dict[str, Any]:
        """The manifest of a finished backup."""

    def read(self, stamp: str, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open an archive of a finished backup."""

    def remove(self, stamp: str) -> None:
        """Remove a backup, finished or not."""


class FolderTarget:
    """Backups as folders; an unfinished one has a different name."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def stamps(self) -> list[str]:
        return sorted(entry.name for entry in self.root.iterdir() if STAMP.fullmatch(entry.name))

    def unfinished(self) -> list[str]:
        names = (entry.name.removeprefix(PART) for entry in self.root.iterdir() if entry.name.startswith(PART))
        return sorted(name for name in names if STAMP.fullmatch(name))

    @contextmanager
    def write(self, stamp: str, name: str) -> Iterator[IO[bytes]]:
        folder = self.root / f"{PART}{stamp}"
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            with open(folder / name, "xb") as file:
                os.fchmod(file.fileno(), 0o600)
                yield file
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            (folder / name).unlink(missing_ok=True)
            raise

    def finish(self, stamp: str, manifest: dict[str, Any]) -> None:
        with self.write(stamp, MANIFEST) as file:
            file.write(json.dumps(manifest, indent=1).encode())
        (self.root / f"{PART}{stamp}").rename(self.root / stamp)

    def manifest(self, stamp: str) -> dict[str, Any]:
        return json.loads((self.root / stamp / MANIFEST).read_text())

    @contextmanager
    def read(self, stamp: str, name: str) -> Iterator[IO[bytes]]:
        with open(self.root / stamp / name, "rb") as file:
            yield file

    def remove(self, stamp: str) -> None:
        doomed = self.root / f"{PART}{stamp}"
        if (self.root / stamp).exists():
            (self.root / stamp).rename(doomed)  # half of it must not look like a backup
        if doomed.exists():
            shutil.rmtree(doomed)


class _Pipe(io.RawIOBase):
    """The reading end of an upload: at its end it fails if the writer did, so that no incomplete object is kept."""

    def __init__(self, descriptor: int) -> None:
        self.source, self.broken = os.fdopen(descriptor, "rb"), False

    def read(self, size: int = -1) -> bytes:
        data = self.source.read(size)
        if self.broken and len(data) < size:
            raise OSError("the archive was not finished")
        return data


class BucketTarget:
    """Backups as objects below a prefix; one without a manifest is unfinished."""

    def __init__(self, client: Minio, bucket: str, prefix: str) -> None:
        self.client, self.bucket, self.prefix = client, bucket, f"{prefix}/" if prefix else ""

    def _key(self, stamp: str, name: str) -> str:
        return f"{self.prefix}{stamp}/{name}"

    def _all(self) -> dict[str, set[str]]:
        """Names of objects, by backup."""
        found: dict[str, set[str]] = {}
        for item in self.client.list_objects(self.bucket, self.prefix, recursive=True):
            stamp, _, name = str(item.object_name).removeprefix(self.prefix).partition("/")
            if STAMP.fullmatch(stamp):
                found.setdefault(stamp, set()).add(name)
        return found

    def stamps(self) -> list[str]:
        return sorted(stamp for stamp, names in self._all().items() if MANIFEST in names)

    def unfinished(self) -> list[str]:
        return sorted(stamp for stamp, names in self._all().items() if MANIFEST not in names)

    @contextmanager
    def write(self, stamp: str, name: str) -> Iterator[IO[bytes]]:
        out, into = os.pipe()
        source, failure = _Pipe(out), list[BaseException]()

        def upload() -> None:
            try:
                key, data = self._key(stamp, name), cast(Any, source)
                self.client.put_object(self.bucket, key, data, -1, part_size=PART_SIZE, num_parallel_uploads=1)
            except BaseException as error:
                failure.append(error)
            finally:
                source.source.close()  # the writer gets EPIPE instead of waiting forever

        thread = threading.Thread(target=upload, name=f"upload {name}")
        thread.start()
        try:
            with os.fdopen(into, "wb") as sink:
                try:
                    yield sink
                except BaseException:
                    source.broken = True
                    raise
        except BrokenPipeError:
            thread.join()
            if not failure:
                raise
        finally:
            thread.join()
        if failure:
            raise OSError(f"s3://{self.bucket}/{self._key(stamp, name)} was not written: {failure[0]}") from failure[0]

    def finish(self, stamp: str, manifest: dict[str, Any]) -> None:
        text = json.dumps(manifest, indent=1).encode()
        self.client.put_object(self.bucket, self._key(stamp, MANIFEST), io.BytesIO(text), len(text))

    def manifest(self, stamp: str) -> dict[str, Any]:
        with self.read(stamp, MANIFEST) as file:
            return json.loads(file.read())

    @contextmanager
    def read(self, stamp: str, name: str) -> Iterator[IO[bytes]]:
        with connect.opened(self.client, self.bucket, self._key(stamp, name)) as answer:
            yield cast(IO[bytes], answer)

    def remove(self, stamp: str) -> None:
        names = sorted(self._all().get(stamp, ()), key=lambda name: name != MANIFEST)
        for name in names:  # the manifest first: half of it must not look like a backup
            self.client.remove_object(self.bucket, self._key(stamp, name))


def find(target: Target, wanted: str) -> str:
    """The backup of that name, or the newest for "latest". Raises PlatformError."""
    stamps = target.stamps()
    if not stamps:
        raise PlatformError("there is no backup")
    if wanted == "latest":
        return stamps[-1]
    if wanted not in stamps:
        raise PlatformError(f"no backup {wanted}; there are {', '.join(stamps)}")
    return wanted
