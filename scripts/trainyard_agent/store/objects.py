"""Bytes between a stream and the store: the operations of the short-lived pod that `trainyard` starts for a member.

Each operation is a separate process in the pod; `idle` is the pod's main process and ends when none has come for a
while. Data go over standard input and output. The last line of standard error is a JSON object with the result.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trainyard_agent.say import PlatformError
from trainyard_agent.store import connect
from trainyard_agent.store.archive import Sums
from trainyard_agent.store.cache import listing

if TYPE_CHECKING:
    import urllib3
    from minio import Minio

BLOCK = 1 << 20  # bytes
FINAL = ("AccessDenied", "InvalidAccessKeyId", "NoSuchBucket", "NoSuchKey", "SignatureDoesNotMatch")
SHA256 = "sha256"  # of the object, in its metadata
POLL_INTERVAL_S = 2.0


class DamagedError(PlatformError):
    """The data differ from those that were announced."""


class RefusedError(PlatformError):
    """The store refuses the request, and retrying doesn't help."""


class UnavailableError(PlatformError):
    """The store doesn't answer, or reports a temporary failure."""

    exit_code = 75  # EX_TEMPFAIL: the same may succeed a moment later


class Checked:
    """A stream of exactly `size` bytes with this digest; otherwise its end fails, before an upload is complete."""

    def __init__(self, source: IO[bytes], size: int, sha256: str) -> None:
        self._source, self._left, self._sha256, self._hash = source, size, sha256, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes. Raises DamagedError at the end if size or digest is wrong."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._source.read(wanted)
        if len(data) < wanted:
            raise DamagedError(f"the data ended {self._left - len(data)} bytes too early")
        self._hash.update(data)
        self._left -= len(data)
        if not self._left and self._hash.hexdigest() != self._sha256:
            raise DamagedError("the data were damaged on their way: their digest differs")
        return data


def cause(error: urllib3.exceptions.HTTPError) -> str:
    """The reason why the store didn't answer, without the client's own objects."""
    return str(getattr(error, "reason", None) or error).rpartition(">: ")[2]


@contextmanager
def store_errors(place: str) -> Iterator[None]:
    """Turn a store's refusal or silence into an error of one sentence."""
    import urllib3
    from minio.error import InvalidResponseError, S3Error, ServerError

    try:
        yield
    except S3Error as error:
        kind = RefusedError if error.code in FINAL else UnavailableError
        raise kind(f"the object store refuses {place}: {error.code}, {error.message}") from None
    except urllib3.exceptions.HTTPError as error:
        raise UnavailableError(f"the object store does not answer for {place}: {cause(error)}") from None
    except (ServerError, InvalidResponseError) as error:
        raise UnavailableError(f"{place}: {error}") from None
    except (OSError, ValueError) as error:
        raise PlatformError(f"{place}: {error}") from None


def put(client: Minio, bucket: str, key: str, source: IO[bytes], size: int, sha256: str) -> None:
    """Store a stream; the object exists only if all bytes arrived undamaged. Raises PlatformError."""
    with store_errors(f"s3://{bucket}/{key}"):
        stream: Any = Checked(source, size, sha256)
        if not size:
            stream.read()
        client.put_object(bucket, key, stream, size, metadata={SHA256: sha256})


def stat(client: Minio, bucket: str, key: str) -> dict[str, Any] | None:
    """Size and digest of an object; None if it is missing. Raises PlatformError."""
    from minio.error import S3Error

    with store_errors(f"s3://{bucket}/{key}"):
        try:
            found = client.stat_object(bucket, key)
        except S3Error as error:
            if error.code in ("NoSuchKey", "NoSuchObject"):
                return None
            raise
        return {"size": found.size, SHA256: (found.metadata or {}).get(f"x-amz-meta-{SHA256}", "")}


def get(client: Minio, bucket: str, key: str, target: IO[bytes]) -> None:
    """Write an object to a stream. Raises PlatformError."""
    with store_errors(f"s3://{bucket}/{key}"), connect.opened(client, bucket, key) as answer:
        answer.decode_content = False  # the stored bytes, even if their metadata says that they are compressed
        while block := answer.read(BLOCK):
            target.write(block)


def tree(client: Minio, bucket: str, prefix: str, target: IO[bytes]) -> int:
    """Write all objects below a prefix as a tar archive to a stream; returns how many. Raises PlatformError."""
    with store_errors(f"s3://{bucket}/{prefix}"):
        entries = listing(client, bucket, prefix)
        with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for entry in entries:
                info = tarfile.TarInfo(entry.key)
                info.size, info.mtime, info.mode = entry.size, 0, 0o644
                with connect.opened(client, bucket, f"{prefix.rstrip('/')}/{entry.key}") as answer:
                    answer.decode_content = False
                    tar.addfile(info, answer)
        return len(entries)


def folders(client: Minio, bucket: str, begun: str) -> list[str]:
    """Parts of keys with this prefix, up to the next slash: `team/run` finds `team/run-worker-0`.

    Raises PlatformError.
    """
    with store_errors(f"s3://{bucket}/{begun}"):
        found = client.list_objects(bucket, begun)
        return sorted(str(item.object_name).rstrip("/") for item in found if item.is_dir)


def idle(patience: float) -> int:
    """Wait as long as other processes run in the pod, and `patience` seconds longer."""
    last = time.monotonic()
    while time.monotonic() - last < patience:
        time.sleep(POLL_INTERVAL_S)
        if any(name.isdigit() and int(name) != os.getpid() and _lives(name) for name in os.listdir("/proc")):
            last = time.monotonic()
    return 0


def run(operation: str, bucket: str, key: str, size: int, sha256: str) -> int:
    """Run one operation with the keys of the pod's environment. Raises PlatformError."""
    client = connect.client(connect.access())
    report: dict[str, Any] = {}
    if operation == "put":
        put(client, bucket, key, sys.stdin.buffer, size, sha256)
    elif operation == "stat":
        report["found"] = stat(client, bucket, key)
    elif operation == "list":
        with store_errors(f"s3://{bucket}/{key}"):
            report["keys"] = [[entry.key, entry.size] for entry in listing(client, bucket, key)]
    elif operation == "folders":
        report["folders"] = folders(client, bucket, key)
    else:
        out = Sums(sys.stdout.buffer)
        if operation == "get":
            get(client, bucket, key, out)  # type: ignore[arg-type]
        else:
            report["files"] = tree(client, bucket, key, out)  # type: ignore[arg-type]
        sys.stdout.buffer.flush()
        report |= {"size": out.size, SHA256: out.sha256}
    return tell(report)


def tell(report: dict[str, Any]) -> int:
    """Print the report as the last line of standard error."""
    print(json.dumps(report), file=sys.stderr, flush=True)
    return 0


def _lives(process: str) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
