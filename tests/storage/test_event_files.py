"""Event files come beside TensorBoard, on a real MinIO: what is added is appended, and no file is replaced."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from servers import Server

from trainyard_agent.event_files import Mirror
from trainyard_agent.say import PlatformError

BUCKET, RUN = "runs", "vision/jobs/seen"
NAME = "events/events.out.tfevents.1.host.1.0"


@pytest.fixture
def client(server: Server) -> Any:
    found = server.admin
    if not found.bucket_exists(BUCKET):
        found.make_bucket(BUCKET)
    return found


def put(client: Any, name: str, data: bytes) -> None:
    client.put_object(BUCKET, f"{RUN}/{name}", io.BytesIO(data), len(data))


def test_files_grow_in_place_and_others_stay_away(client: Any, tmp_path: Path) -> None:
    first, second = os.urandom(300_000), os.urandom(1_500_000)
    put(client, NAME, first)
    put(client, "model.bin", b"x" * 100)
    mirror = Mirror(client, [f"{BUCKET}/{RUN}=digits"], tmp_path)
    assert mirror.round() == len(first)
    file = tmp_path / "digits" / NAME
    node, [only] = file.stat().st_ino, [path for path in tmp_path.rglob("*") if path.is_file()]
    assert only == file and file.read_bytes() == first
    put(client, NAME, first + second)
    with open(file, "rb") as reader:  # as TensorBoard holds it
        reader.seek(len(first))
        assert mirror.round() == len(second) and reader.read() == second
    assert file.stat().st_ino == node and mirror.round() == 0 and len(mirror.files) == 1


def test_runs_side_by_side_and_one_without_files(client: Any, tmp_path: Path) -> None:
    put(client, NAME, b"one")
    mirror = Mirror(client, [f"{BUCKET}/{RUN}=a", f"{BUCKET}/vision/jobs/none=b"], tmp_path)
    mirror.round()
    assert [path.relative_to(tmp_path).parts[0] for path in mirror.files] == ["a"]


def test_a_bucket_that_is_not_there_is_said(client: Any, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="the object store refuses s3://nowhere/x: NoSuchBucket"):
        Mirror(client, ["nowhere/x=a"], tmp_path).round()
