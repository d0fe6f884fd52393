"""What clients of a store try, as tables of tests name it."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from minio import Minio
from minio.error import S3Error

Act = Callable[[Minio], Any]


def put(bucket: str, key: str, data: bytes = b"x") -> Act:
    return lambda client: client.put_object(bucket, key, io.BytesIO(data), len(data))


def listing(bucket: str, prefix: str, **more: Any) -> Act:
    return lambda client: [entry.object_name for entry in client.list_objects(bucket, prefix, **more)]


def fetch(bucket: str, key: str, **more: Any) -> Act:
    return lambda client: client.get_object(bucket, key, **more).read()


def remove(bucket: str, key: str) -> Act:
    return lambda client: client.remove_object(bucket, key)


def all_refused(attempts: dict[str, Act], client: Minio, subtests: pytest.Subtests) -> None:
    for attempt, act in attempts.items():
        with subtests.test(attempt), pytest.raises(S3Error) as refusal:
            act(client)
        assert refusal.value.code == "AccessDenied", attempt
