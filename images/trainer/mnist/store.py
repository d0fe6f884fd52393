"""Reads data sets and writes results: an S3 bucket (`s3://bucket/prefix`) or a directory.

S3 settings come from the environment: S3_ENDPOINT (`http://host:9000`, `https://…` or `host:9000`, which means https),
S3_ACCESS_KEY, S3_SECRET_KEY and, optionally, S3_REGION. S3_CA holds the PEM of the store's own certificate authority,
the only one that is then trusted; without it SSL_CERT_FILE or the usual ones are.
Where TRAINYARD_BUCKETS names a folder (a local run of a pipeline), buckets are its sub-folders and no store is used.
Every failure is a `TrainError`. Those that may pass (network, 5xx, throttling) are retried for ten minutes, as long as
Argo's executor waits for the store.
"""

from __future__ import annotations

import hashlib
import io
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from mnist.errors import TrainError

T = TypeVar("T")

PATIENCE_S, FIRST_WAIT_S, LONGEST_WAIT_S = 600.0, 0.5, 8.0
PERMANENT_CODES = frozenset(
    {
        "AccessDenied",
        "AuthorizationHeaderMalformed",
        "EntityTooLarge",
        "InvalidAccessKeyId",
        "InvalidBucketName",
        "NoSuchBucket",
        "NoSuchKey",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)


@dataclass(frozen=True)
class Location:
    """Where a URI points: an S3 bucket and key prefix, or (bucket empty) a directory path."""

    bucket: str
    path: str

    @property
    def is_s3(self) -> bool:
        return bool(self.bucket)

    def child(self, name: str) -> str:
        """Key or file path of `name` below this location."""
        return f"{self.path}/{name}" if self.path else name


def parse_uri(uri: str) -> Location:
    """Splits `s3://bucket/prefix`, `file:///dir` or a plain directory; raises TrainError for anything else."""
    if not uri.strip():
        raise TrainError("the URI is empty", hint="give s3://bucket/prefix or a directory")
    parts = urlsplit(uri)
    if parts.scheme == "s3":
        if not parts.netloc:
            raise TrainError("the bucket name is missing", where=uri, hint="write it as s3://bucket/prefix")
        return Location(parts.netloc, parts.path.strip("/"))
    if parts.scheme == "file":
        return Location("", parts.path.rstrip("/") or "/")
    if "://" in uri:
        raise TrainError(
            f"the scheme {parts.scheme!r} is not supported", where=uri, hint="use s3://, file:// or a path"
        )
    return Location("", uri.rstrip("/") or "/")


def parse_endpoint(endpoint: str) -> tuple[str, bool]:
    """Returns (host:port, secure) of an S3 endpoint; a bare host means https."""
    text = endpoint.strip().rstrip("/")
    if not text:
        raise TrainError("S3_ENDPOINT is not set", hint="set it from the Secret trainyard-s3, e.g. http://minio:9000")
    if "://" not in endpoint:
        return text, True
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path:
        raise TrainError("S3_ENDPOINT is not an http(s)://host:port address", where=endpoint)
    return parts.netloc, parts.scheme == "https"


def retry(action: Callable[[], T], what: str, may_pass: Callable[[Exception], bool], sleep: Any = time.sleep) -> T:
    """Runs `action`, again with doubling pauses while `may_pass(error)`, until the pauses add up to PATIENCE_S."""
    waited, wait = 0.0, FIRST_WAIT_S
    while True:
        try:
            return action()
        except TrainError:
            raise
        except Exception as error:
            if waited >= PATIENCE_S or not may_pass(error):
                raise
            reason = getattr(error, "code", "") or type(error).__name__
            print(f"{what}: the store does not answer ({reason}); again in {wait:.1f} s", flush=True)
            sleep(wait)
            waited, wait = waited + wait, min(wait * 2, LONGEST_WAIT_S)


class Store(Protocol):
    """A place with named blobs."""

    uri: str

    def get(self, name: str) -> bytes: ...

    def put(self, name: str, data: bytes) -> str: ...


class DirectoryStore:
    """Blobs as files of a directory; writing replaces a file atomically."""

    def __init__(self, uri: str, root: Path) -> None:
        self.uri, self.root = uri, root

    def get(self, name: str) -> bytes:
        path = self.root / name
        try:
            return path.read_bytes()
        except FileNotFoundError:
            hint = "check --data and the volume mount"
            raise TrainError("no such file", where=str(path), hint=hint, missing=True) from None
        except OSError as error:
            raise TrainError(f"can't be read ({error.strerror})", where=str(path)) from error

    def put(self, name: str, data: bytes) -> str:
        path = self.root / name
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
            os.replace(part, path)
        except OSError as error:
            raise TrainError(f"can't be written ({error.strerror})", where=str(path), hint="check --out") from error
        return str(path)


class S3Store:
    """Blobs as objects of one bucket below a key prefix."""

    def __init__(self, uri: str, location: Location, client: Any, sleep: Any = time.sleep) -> None:
        self.uri, self.location, self.client, self.sleep = uri, location, client, sleep

    def get(self, name: str) -> bytes:
        key = self.location.child(name)

        def read() -> bytes:
            answer = self.client.get_object(self.location.bucket, key)
            try:
                return bytes(answer.read())
            finally:
                answer.close()
                answer.release_conn()

        return self._call(read, f"s3://{self.location.bucket}/{key}", "read")

    def put(self, name: str, data: bytes) -> str:
        key = self.location.child(name)
        where = f"s3://{self.location.bucket}/{key}"
        self._call(
            lambda: self.client.put_object(self.location.bucket, key, io.BytesIO(data), len(data)), where, "written"
        )
        return where

    def _call(self, action: Callable[[], T], where: str, verb: str) -> T:
        def may_pass(error: Exception) -> bool:
            ours = isinstance(error, (TypeError, ValueError, LookupError, AttributeError))
            return not ours and getattr(error, "code", "") not in PERMANENT_CODES and not _untrusted(error)

        try:
            return retry(action, where, may_pass, self.sleep)
        except TrainError:
            raise
        except Exception as error:
            reason = getattr(error, "code", "") or type(error).__name__
            if _untrusted(error):
                reason = "the store's certificate is not trusted"
            hints = {
                "the store's certificate is not trusted": "give the pod S3_CA from the Secret trainyard-s3, key ca.crt",
                "NoSuchKey": "bring it by `trainyard data put`, MNIST by `trainyard data example`, or check --data",
                "NoSuchBucket": "check the bucket name",
                "AccessDenied": "check the rights of the S3 user",
            }
            hint = hints.get(reason, "check S3_ENDPOINT and the keys")
            missing = reason == "NoSuchKey"
            raise TrainError(f"can't be {verb} ({reason})", where=where, hint=hint, missing=missing) from error


def _untrusted(error: Exception) -> bool:
    """Whether the server's certificate was refused, which waiting does not fix."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)


def s3_client(env: Mapping[str, str]) -> Any:
    """A client for the endpoint that the environment names."""
    host, secure = parse_endpoint(env.get("S3_ENDPOINT", ""))
    missing = [name for name in ("S3_ACCESS_KEY", "S3_SECRET_KEY") if not env.get(name)]
    if missing:
        raise TrainError(f"{' and '.join(missing)} not set", hint="take them from the Secret trainyard-s3")
    try:
        import urllib3
        from minio import Minio
    except ImportError as error:
        raise TrainError(
            f"the S3 client is not installed ({error.name})", hint="use a directory or install minio"
        ) from None
    pool = None
    if env.get("S3_CA") or not secure:  # else the client's own pool verifies the certificate
        try:
            trust = ssl.create_default_context(cadata=env.get("S3_CA") or None) if secure else None
        except ssl.SSLError as error:
            raise TrainError("S3_CA is not a certificate", hint="take it from the Secret trainyard-s3") from error
        timeout = urllib3.Timeout(connect=5, read=60)
        pool = urllib3.PoolManager(timeout=timeout, retries=urllib3.Retry(total=0, redirect=3), ssl_context=trust)
    return Minio(
        host,
        access_key=env["S3_ACCESS_KEY"],
        secret_key=env["S3_SECRET_KEY"],
        secure=secure,
        region=env.get("S3_REGION") or "us-east-1",  # named, so that the client needs no right to query it
        http_client=pool,
    )


def open_store(uri: str, env: Mapping[str, str] | None = None) -> Store:
    """The store behind a URI; S3 is not contacted before the first read or write."""
    location, env = parse_uri(uri), os.environ if env is None else env
    if not location.is_s3:
        return DirectoryStore(uri, Path(location.path))
    if env.get("TRAINYARD_BUCKETS"):
        return DirectoryStore(uri, Path(env["TRAINYARD_BUCKETS"], location.bucket, location.path))
    return S3Store(uri, location, s3_client(env))


def put_checked(store: Store, name: str, data: bytes) -> dict[str, object]:
    """Writes a blob, reads it back and compares; returns its uri, bytes and sha256."""
    where = store.put(name, data)
    digest = hashlib.sha256(data).hexdigest()
    if hashlib.sha256(store.get(name)).hexdigest() != digest:
        raise TrainError("what was read back differs from what was written", where=where)
    return {"uri": where, "bytes": len(data), "sha256": digest}
