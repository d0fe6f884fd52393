"""Event files come beside TensorBoard, on a real MinIO: what is added is appended, and no file is replaced."""

import os
from pathlib import Path
from typing import Any

import pytest
from acts import put

from trainyard_agent.runs.event_files import Mirror
from trainyard_agent.say import PlatformError

BUCKET, RUN = "runs", "vision/jobs/seen"
NAME = "events/events.out.tfevents.1.host.1.0"


def test_files_grow_in_place_and_others_stay_away(runs: Any, tmp_path: Path) -> None:
    first, second = os.urandom(300_000), os.urandom(1_500_000)
    put("runs", f"{RUN}/{NAME}", first)(runs)
    put("runs", f"{RUN}/model.bin", b"x" * 100)(runs)
    mirror = Mirror(runs, [f"{BUCKET}/{RUN}=digits"], tmp_path)
    assert mirror.round() == len(first)
    file = tmp_path / "digits" / NAME
    node, [only] = file.stat().st_ino, [path for path in tmp_path.rglob("*") if path.is_file()]
    assert only == file and file.read_bytes() == first
    put("runs", f"{RUN}/{NAME}", first + second)(runs)
    with open(file, "rb") as reader:  # as TensorBoard holds it
        reader.seek(len(first))
        assert mirror.round() == len(second) and reader.read() == second
    assert file.stat().st_ino == node and mirror.round() == 0 and len(mirror.files) == 1


def test_runs_side_by_side_and_one_without_files(runs: Any, tmp_path: Path) -> None:
    put("runs", f"{RUN}/{NAME}", b"one")(runs)
    mirror = Mirror(runs, [f"{BUCKET}/{RUN}=a", f"{BUCKET}/vision/jobs/none=b"], tmp_path)
    mirror.round()
    assert [path.relative_to(tmp_path).parts[0] for path in mirror.files] == ["a"]


def test_a_bucket_that_is_not_there_is_said(runs: Any, tmp_path: Path) -> None:
    with pytest.raises(PlatformError, match="the object store refuses s3://nowhere/x: NoSuchBucket"):
        Mirror(runs, ["nowhere/x=a"], tmp_path).round()
