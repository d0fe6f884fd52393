"""Buckets of the contract, and in the cluster's own store the user that training jobs read and write them with."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

from trainyard.platform.say import PlatformError, say

if TYPE_CHECKING:
    from minio import Minio

    from trainyard.platform.setup import Clock

POLICY = "trainyard"
READ = ["s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation"]
WRITE = [*READ, "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]


def policy(wanted: list[dict[str, str]]) -> dict[str, Any]:
    """An S3 policy: for each bucket the rights of its access, nothing else."""
    statements = []
    for bucket in wanted:
        actions = WRITE if bucket["access"] == "write" else READ
        arn = f"arn:aws:s3:::{bucket['name']}"
        statements.append({"Effect": "Allow", "Action": actions, "Resource": [arn, f"{arn}/*"]})
    return {"Version": "2012-10-17", "Statement": statements}


def client(user: str, password: str, *, patient: bool = True) -> Minio:
    """A client for the store named by the environment; `patient` keeps the library's own retries."""
    import urllib3
    from minio import Minio

    endpoint = urlparse(os.environ["S3_ENDPOINT"])
    if endpoint.scheme not in ("http", "https") or not endpoint.netloc:
        raise PlatformError(f"the object store's endpoint {os.environ['S3_ENDPOINT']!r} is not a URL")
    pool = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=3, read=30),
        retries=urllib3.Retry(total=5 if patient else 0, backoff_factor=0.2),
    )
    return Minio(
        endpoint.netloc,
        access_key=os.environ[user],
        secret_key=os.environ[password],
        secure=endpoint.scheme == "https",
        region=os.environ.get("S3_REGION") or None,
        http_client=pool,
    )


def _reason(store: Minio, bucket: str) -> str:
    """ "" once the store answers a question about a bucket."""
    from minio.error import S3Error

    try:
        store.bucket_exists(bucket)
    except S3Error as error:
        return f"{error.code}: {error.message}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:160]}"
    return ""


def _user(contract: dict[str, Any]) -> None:
    """Make the generated user in MinIO, with the policy of the contract's buckets."""
    from minio import MinioAdmin
    from minio.credentials import StaticProvider

    endpoint = urlparse(os.environ["S3_ENDPOINT"])
    admin = MinioAdmin(
        endpoint=endpoint.netloc,
        credentials=StaticProvider(os.environ["MINIO_ROOT_USER"], os.environ["MINIO_ROOT_PASSWORD"]),
        secure=endpoint.scheme == "https",
    )
    user = os.environ["S3_ACCESS_KEY"]
    admin.policy_add(POLICY, policy=policy(contract["storage"]["buckets"]))
    admin.user_add(user, os.environ["S3_SECRET_KEY"])
    held = json.loads(admin.user_info(user)).get("policyName", "")
    if POLICY not in str(held).split(","):
        admin.policy_set(POLICY, user=user)
    say(f"user {user} may use the buckets as the contract says")


def ensure(contract: dict[str, Any], clock: Clock) -> None:
    """Wait for the store, make missing buckets, and the user where the store is ours. Raises PlatformError."""
    wanted = contract["storage"]["buckets"]
    s3 = contract["storage"]["s3"]
    if not wanted:
        return
    ours = s3["mode"] == "inCluster"
    names = ("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD") if ours else ("S3_ACCESS_KEY", "S3_SECRET_KEY")
    quick = client(*names, patient=False)
    clock.wait(f"the object store at {os.environ['S3_ENDPOINT']}", lambda: _reason(quick, wanted[0]["name"]))
    store = client(*names)
    try:
        for bucket in wanted:
            if store.bucket_exists(bucket["name"]):
                continue
            if not ours and not s3.get("createBuckets"):
                raise PlatformError(f"bucket {bucket['name']} does not exist, and storage.s3.createBuckets is false")
            store.make_bucket(bucket["name"])
            say(f"bucket {bucket['name']} made")
        if ours:
            _user(contract)
    except PlatformError:
        raise
    except Exception as error:
        raise PlatformError(f"the object store refused: {type(error).__name__}: {error}") from error
