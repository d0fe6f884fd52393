"""Connections to object stores: address, keys and certificate authority, from the pod's environment."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from trainyard_agent.say import PlatformError

if TYPE_CHECKING:
    import urllib3
    from minio import Minio, MinioAdmin
    from urllib3 import BaseHTTPResponse

ROOT = ("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD")


@dataclass(frozen=True)
class Access:
    """A store's address and credentials. `ca` is the PEM of the only trusted authority; "" means the system's."""

    endpoint: str
    user: str
    password: str
    region: str = ""
    ca: str = ""

    @property
    def host(self) -> str:
        """The endpoint's host and port, as `host:port`."""
        return urlparse(self.endpoint).netloc

    @property
    def secure(self) -> bool:
        """Whether the endpoint uses https."""
        return urlparse(self.endpoint).scheme == "https"


def access(prefix: str = "S3", *, root: bool = False, env: Mapping[str, str] | None = None) -> Access:
    """Access from the variables PREFIX_ENDPOINT, …_ACCESS_KEY, …_SECRET_KEY, …_REGION and …_CA. Raises PlatformError.

    Args:
        root: use MinIO's root user instead.
    """
    env = os.environ if env is None else env
    names = ROOT if root else (f"{prefix}_ACCESS_KEY", f"{prefix}_SECRET_KEY")
    missing = [name for name in (f"{prefix}_ENDPOINT", *names) if not env.get(name)]
    if missing:
        raise PlatformError(f"{', '.join(missing)} not set: the Secret of the object store lacks it")
    url = urlparse(env[f"{prefix}_ENDPOINT"])
    if url.scheme not in ("http", "https") or not url.netloc:
        raise PlatformError(f"the object store's endpoint {env[f'{prefix}_ENDPOINT']!r} is not a URL")
    region, ca = env.get(f"{prefix}_REGION", ""), env.get(f"{prefix}_CA", "")
    return Access(env[f"{prefix}_ENDPOINT"], env[names[0]], env[names[1]], region, ca)


def pool(to: Access, patient: bool = True) -> urllib3.PoolManager:
    """A connection pool that checks the server's certificate. `patient`: retry for some seconds."""
    import urllib3

    settings: dict[str, Any] = {}
    if to.secure:
        try:
            settings["ssl_context"] = ssl.create_default_context(cadata=to.ca or None)
        except ssl.SSLError as error:
            raise PlatformError(f"ca.crt of the object store at {to.endpoint} is not a certificate: {error}") from error
    return urllib3.PoolManager(
        maxsize=8,
        timeout=urllib3.Timeout(connect=3, read=60),
        retries=urllib3.Retry(
            total=5 if patient else 0, backoff_factor=0.2, status_forcelist=(500, 502, 503, 504) if patient else ()
        ),
        **settings,
    )


def client(to: Access, *, patient: bool = True) -> Minio:
    """A client for buckets and objects."""
    from minio import Minio

    return Minio(
        to.host,
        access_key=to.user,
        secret_key=to.password,
        secure=to.secure,
        region=to.region or None,
        http_client=pool(to, patient),
    )


@contextmanager
def opened(client: Minio, bucket: str, key: str, offset: int = 0, length: int = 0) -> Iterator[BaseHTTPResponse]:
    """The response with an object's bytes; `length` 0: all from `offset` on."""
    answer = client.get_object(bucket, key, offset=offset, length=length)
    try:
        yield answer
    finally:
        answer.close()
        answer.release_conn()


def admin(to: Access) -> MinioAdmin:
    """A client for MinIO's users and policies."""
    from minio import MinioAdmin
    from minio.credentials import StaticProvider

    return MinioAdmin(
        endpoint=to.host,
        credentials=StaticProvider(to.user, to.password),
        secure=to.secure,
        region=to.region,
        http_client=pool(to, True),
    )
