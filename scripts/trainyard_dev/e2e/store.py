"""The cluster's object store, accessed from this machine through a port-forward."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from minio import Minio
from minio.error import S3Error
from urllib3.exceptions import HTTPError

from trainyard.errors import TrainyardError
from trainyard.kube.kubectl import Kubectl
from trainyard_agent.store.connect import Access, client
from trainyard_agent.store.objects import cause
from trainyard_agent.store.s3_keys import SECRET

SERVICE = "trainyard-minio"


def credentials(kubectl: Kubectl, namespace: str) -> dict[str, str]:
    """The generated S3 user that training uses: endpoint, access-key, secret-key, region."""
    secret = kubectl.find("secret", SECRET, "-n", namespace)
    if secret is None:
        raise TrainyardError(f"the chart's setup job created no Secret {SECRET}", where=f"namespace {namespace}")
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


@contextmanager
def connect(
    kubectl: Kubectl,
    namespace: str,
    of: str = "",
    keys: tuple[str, str] | None = None,
    user: dict[str, str] | None = None,
) -> Iterator[Store]:
    """Opens a port-forward to the store in `namespace` for a block; its silence raises TrainyardError.

    Args:
        of: namespace of the credentials: a team's, or "" for the platform's own.
        keys: access key and secret key to use instead.
        user: credentials that were read earlier.
    """
    user = user or credentials(kubectl, of or namespace)
    scheme = user["endpoint"].partition("://")[0]
    access, secret = keys or (user["access-key"], user["secret-key"])
    with kubectl.forward(f"service/{SERVICE}", 9000, namespace) as port:
        to = Access(f"{scheme}://127.0.0.1:{port}", access, secret, user["region"], user.get("ca.crt", ""))
        try:
            yield Store(client(to))
        except HTTPError as error:
            raise TrainyardError(f"the object store does not answer: {cause(error)}", where=to.endpoint) from None


class Store:
    """Reads and writes objects with a training job's permissions."""

    def __init__(self, client: Minio) -> None:
        self.client = client

    def names(self, bucket: str, prefix: str) -> list[str]:
        """Names of all objects below a prefix."""
        return [entry.object_name or "" for entry in self.client.list_objects(bucket, prefix, recursive=True)]

    def read(self, bucket: str, name: str) -> bytes:
        """The object's bytes.

        Raises:
            TrainyardError: it is missing, or may not be read.
        """
        try:
            answer = self.client.get_object(bucket, name)
        except S3Error as error:
            raise TrainyardError(f"s3://{bucket}/{name} can't be read: {error.code}") from None
        try:
            return answer.read()
        finally:
            answer.close()
            answer.release_conn()

    def read_json(self, bucket: str, name: str) -> dict[str, Any]:
        """A JSON object."""
        return json.loads(self.read(bucket, name))
