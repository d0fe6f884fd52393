"""A real MinIO server with the bucket of pipelines, and what Argo's executor does with it."""

import io
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from minio import Minio
from minio.error import S3Error

import servers
from servers import PASSWORD, USER

BUCKET = "runs"


class NotThereError(Exception):
    """No object has this key, and none lies below it."""


@dataclass
class Store:
    """The server at `endpoint`, host and port."""

    endpoint: str

    def client(self) -> Minio:
        """A client of one's own: one thread each."""
        return Minio(self.endpoint, USER, PASSWORD, secure=False)

    def load(self, bucket: str, key: str, target: Path) -> None:
        """One object into a file, or all below a key into a folder."""
        client = self.client()
        try:
            client.fget_object(bucket, key, str(target))
        except S3Error as error:
            if error.code != "NoSuchKey":
                raise
            below = self.keys(key + "/", bucket)
            if not below:
                raise NotThereError(f"{key}: {error.message}") from None
            for one in below:
                client.fget_object(bucket, one, str(target / one.removeprefix(key + "/")))

    def save(self, source: Path, key: str, *, archived: bool) -> None:
        """A file as one object, a folder as one object for each file, or either as one archive."""
        client = self.client()
        if archived:
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w:gz") as archive:
                archive.add(source, source.name)
            client.put_object(BUCKET, key, io.BytesIO(packed.getvalue()), len(packed.getvalue()))
            return
        for file in [source] if source.is_file() else sorted(path for path in source.rglob("*") if path.is_file()):
            client.fput_object(BUCKET, key if file == source else f"{key}/{file.relative_to(source)}", str(file))

    def keys(self, prefix: str, bucket: str = BUCKET) -> list[str]:
        """All keys that begin so."""
        return [found.object_name for found in self.client().list_objects(bucket, prefix, recursive=True)]

    def read(self, key: str) -> bytes:
        """One object's content."""
        return self.client().get_object(BUCKET, key).data

    def delete(self, prefix: str) -> int:
        """Removes every object whose key begins so; how many there were."""
        keys = self.keys(prefix)
        for key in keys:
            self.client().remove_object(BUCKET, key)
        return len(keys)


@contextmanager
def running(folder: Path) -> Iterator[Store]:
    """Runs the server for the time of the body."""
    process, server = servers.start(folder / "data", folder / "none")
    try:
        server.admin.make_bucket(BUCKET)
        yield Store(server.root.host)
    finally:
        process.stop()
