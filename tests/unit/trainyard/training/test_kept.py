"""Logs of deleted pods: which pods belonged to a run, and each of their lines once and in order."""

import json
from typing import Any

import pytest
from kept_store import NOON, Kept, batch, record

from trainyard.errors import TrainyardError, UsageError
from trainyard.training import kept
from trainyard.training.kept import names, objects

ROOT = "logs/vision"


def texts(*contents: bytes) -> list[str]:
    return [one.text for one in objects.whole(line for content in contents for line in objects.lines(content, "x"))]


def test_lines_that_were_sent_twice_are_one_and_equal_ones_stay() -> None:
    first = batch(record("epoch 1", 1, 0), record("same", 2, 40), record("same", 2, 80))
    again = batch(record("same", 2, 80), record("epoch 2", 3, 120))
    assert texts(first, again, first) == ["epoch 1", "same", "same", "epoch 2"]


def test_order_is_that_of_writing_whatever_object_came_first() -> None:
    later, earlier = batch(record("b", 5, 0), record("c", 6, 9)), batch(record("a", 4, 700))
    assert texts(later, earlier) == ["a", "b", "c"]  # the file was rotated between the two: offsets begin again
    assert texts(batch(record("new", 1, 0), restart=1), batch(record("old", 9, 0))) == ["old", "new"]


def test_a_line_of_another_container_or_start_is_no_double() -> None:
    one = [record("x", 1, 0)]
    assert texts(batch(*one), batch(*one, restart=1), batch(*one, uid="v"), batch(*one, container="d")) == ["x"] * 4
    assert texts(batch(record("x", 1, 0)), batch(record("x", 1, 0, stream="stderr"))) == ["x", "x"]


def test_a_site_s_collector_need_not_compress_nor_say_offsets() -> None:
    plain = (
        b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"observedTimeUnixNano":"7","body":{"stringValue":"a"}}]}]}]}'
    )
    assert texts(plain + b"\n" + plain) == ["a", "a"]
    [line] = objects.lines(plain, "x")
    assert (line.time, line.offset, line.restart) == (7, -1, 0)
    assert list(objects.lines(b'{"resourceLogs":[]}\n', "x")) == []


@pytest.mark.parametrize("content", [b"\x1f\x8bbroken", b"<html>", b"[]", b'{"resourceLogs":[{"scopeLogs":3}]}'])
def test_an_object_of_something_else_is_named(content: bytes) -> None:
    said = "s3://logs/x: the object is not a log: .*see charts/logs/README.md for"
    with pytest.raises(TrainyardError, match=said):
        list(objects.lines(content, "logs/x"))


@pytest.mark.parametrize(
    ("run", "there", "found"),
    [
        ("digits", ["digits-worker-10", "digits-worker-2", "digits-master-0", "digits2-master-0"],
         ["digits-master-0", "digits-worker-2", "digits-worker-10"]),
        # A job whose name only begins the same is another one.
        ("digits", ["digits-old-worker-0", "digits-worker-0"], ["digits-worker-0"]),
        ("digits", ["digits-old-worker-0"], []),
        ("mpi", ["mpi-launcher", "mpi-worker-0"], ["mpi-launcher", "mpi-worker-0"]),
        ("mnist-1", ["mnist-1-train-123", "mnist-1-load-77"], ["mnist-1-load-77", "mnist-1-train-123"]),
        ("plain", ["plain-x2k4d", "plain-more-x2k4d"], ["plain-x2k4d"]),
        ("plain", ["plain-10-x2k4d"], ["plain-10-x2k4d"]),
        ("digits-worker-0", ["digits-worker-0"], ["digits-worker-0"]),
    ],
)  # fmt: skip
def test_pods_of_a_run_by_name(run: str, there: list[str], found: list[str]) -> None:
    assert names.pods(run, there) == found


def test_containers_beside_the_run_s_own_are_left_out() -> None:
    assert names.containers(["trainyard-upload", "pytorch", "trainyard-fetch"]) == ["pytorch"]
    assert names.containers(["main", "init", "wait"]) == ["main"]
    assert names.containers(["wait"]) == ["wait"]


def store(**more: bytes) -> Kept:
    at = {
        "vision/digits-master-0/u1/pytorch/1-a.json.gz": batch(record("first time", 1, 0), uid="u1"),
        "vision/digits-master-0/u2/pytorch/3-b.json.gz": batch(record("loss 2", 4, 9), uid="u2"),
        "vision/digits-master-0/u2/pytorch/2-c.json.gz": batch(record("loss 1", 3, 0), uid="u2"),
        "vision/digits-master-0/u2/trainyard-upload/2-d.json.gz": batch(record("copied", 3, 0), uid="u2"),
        "vision/digits-worker-0/u3/pytorch/2-e.json.gz": batch(record("beside", 3, 0), uid="u3"),
        "speech/digits-master-0/u4/pytorch/2-f.json.gz": batch(record("theirs", 3, 0), uid="u4"),
    }
    return Kept({**at, **{key.replace("__", "/"): content for key, content in more.items()}})


def read(run: str, step: str = "", **more: Any) -> list[tuple[str, str, list[str]]]:
    found = kept.logs(store(), ROOT, run, step, **more)  # type: ignore[arg-type]
    return [(log.short, log.container, [line.text for line in log.lines]) for log in found]


def test_the_rank_that_speaks_of_the_last_pod_of_its_name() -> None:
    said: list[str] = []
    assert read("digits", say=said.append) == [("master-0", "pytorch", ["loss 1", "loss 2"])]
    assert said == ["this is the log of master-0; others: worker-0"]
    assert read("digits", attempt=1) == [("master-0", "pytorch", ["first time"])]
    assert read("digits", "worker-0") == [("worker-0", "pytorch", ["beside"])]
    assert read("digits-worker-0") == [("digits-worker-0", "pytorch", ["beside"])]


def test_what_is_not_there_is_said_with_what_is() -> None:
    with pytest.raises(kept.NoLogError, match="no logs of other are kept in s3://logs/vision/"):
        read("other")
    with pytest.raises(UsageError, match="run digits has no kept log of worker-7; available: master-0, worker-0"):
        read("digits", "worker-7")
    with pytest.raises(TrainyardError, match="digits-master-0 has 2 tries, not 3"):
        read("digits", attempt=3)


def test_steps_of_a_pipeline_by_step_and_by_pod() -> None:
    pods = {
        f"vision__mnist-1-{step}__u__main__1-a.json.gz": batch(record(step, 1, 0)) for step in ("load-1", "train-2")
    }
    there = store(**pods)
    every = [log.short for log in kept.logs(there, ROOT, "mnist-1")]  # type: ignore[arg-type]
    assert every == ["load-1", "train-2"]
    for step in ("train", "train-2", "mnist-1-train-2"):
        [log] = kept.logs(there, ROOT, "mnist-1", step)  # type: ignore[arg-type]
        assert log.lines[0].text == "train-2" and log.lines[0].time == NOON + 1
    assert json.dumps(there.asked).count("speech") == 0
