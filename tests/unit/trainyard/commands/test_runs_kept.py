"""`trainyard runs logs` of deleted pods: from the store where the site keeps logs, else as before."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kept_store import Kept, batch, record
from runs_cluster import Team, job, of_job, workflow

from trainyard import contract
from trainyard.kinds import TeamConfig
from trainyard.kube import Access
from trainyard.pipelines.runs import stored
from trainyard.training import transfer

STORE = {
    "vision/digits-master-0/u/pytorch/1.json.gz": batch(record("epoch 1", 1, 0), record("epoch 2", 2, 9)),
    "vision/digits-worker-0/u/pytorch/1.json.gz": batch(record("beside", 1, 0)),
    "vision/mnist-1-train-44/u/main/1.json.gz": batch(record("loss 3", 1, 0)),
    "vision/mnist-1-load-55/u/main/1.json.gz": batch(record("10 files", 1, 0)),
}


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, trainyard: Callable[..., Any]) -> Callable[..., Any]:
    """`on(team)("digits")` runs `trainyard runs logs digits`; `bucket=""`: the site keeps no logs."""
    opened: list[int] = []

    @contextmanager
    def reached(kube: Any) -> Iterator[Kept]:
        opened.append(1)
        yield Kept(STORE)

    def use(team: Team, bucket: str = "logs") -> Callable[..., Any]:
        monkeypatch.setattr(Access, "connect", lambda self: team)
        monkeypatch.setattr(stored, "reached", reached)
        monkeypatch.setattr(
            contract,
            "live",
            lambda kube: SimpleNamespace(log_bucket=bucket, teams=["vision"], namespace="trainyard-system"),
        )
        return lambda *words: trainyard("runs", "logs", *words)

    use.opened = opened  # type: ignore[attr-defined]
    return use


def test_a_deleted_job_s_log_is_found(on: Any) -> None:
    run = on(Team())
    done = run("digits")
    assert (done.code, done.out) == (0, "epoch 1\nepoch 2\n"), done.err
    assert "no run or job digits in vision; searching the store" in done.err
    assert "others: worker-0" in done.err
    assert run("digits", "worker-0").out == "beside\n"
    assert run("digits", "--tail", "1").out == "epoch 2\n"
    assert run("job/digits").out == "epoch 1\nepoch 2\n"


def test_of_a_deleted_pipeline_each_line_has_its_pod(on: Any) -> None:
    assert on(Team())("mnist-1").out == "load-55: 10 files\ntrain-44: loss 3\n"
    assert on(Team())("mnist-1", "train").out == "loss 3\n"


def test_a_job_whose_pods_are_gone(on: Any) -> None:
    done = on(Team(job("digits", Succeeded="done")))("digits")
    assert (done.code, done.out) == (0, "epoch 1\nepoch 2\n")
    assert "job digits has no log: its pods are gone; searching" in done.err


def test_what_runs_is_read_where_it_runs(on: Any) -> None:
    made = job("digits")
    team = Team(made, pods=[of_job(made, "master", 0, "Running")], logs={"digits-master-0": ["live"]})
    assert on(team)("digits").out == "live\n" and not on.opened


def test_a_step_whose_pod_went_without_a_log(on: Any) -> None:
    failed = workflow("mnist-1", "Failed", templateName="train", message="pod deleted")
    failed["status"]["nodes"] = {"mnist-1": failed["status"]["nodes"]["mnist-1"],
                                 "mnist-1-44": {**failed["status"]["nodes"]["n"], "id": "mnist-1-44"}}  # fmt: skip
    objects: Any = {"workflows.argoproj.io": [failed]}
    team = Team(**objects)
    team.get = lambda path: failed  # type: ignore[method-assign]
    done = on(team)("mnist-1", "train")
    assert (done.code, done.out) == (0, "loss 3\n"), done.err
    assert on(team)("mnist-1").out == "train: loss 3\n"


def test_a_pod_of_the_platform_is_read_with_the_platform_s_key(on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    @contextmanager
    def opened(kube: Any, config: str) -> Iterator[Kept]:
        asked.append(f"{kube.namespace} {config}")
        yield Kept(STORE)

    monkeypatch.setattr(transfer, "open_store", opened)
    monkeypatch.setattr(TeamConfig, "of_platform", lambda contract: "as the platform")
    team = Team()
    team.namespace = "kube-system"  # type: ignore[misc]
    done = on(team)("coredns-x2k4d")
    assert done.code == 1 and "AccessDenied" in done.err  # the played store has vision's logs only
    assert asked == ["trainyard-system as the platform"] and team.namespace == "kube-system"


def test_where_no_logs_are_kept_the_reason_is_as_before(on: Any) -> None:
    done = on(Team(), bucket="")("digits")
    assert done.code == 1 and "no run or job digits in vision" in done.err and not on.opened
    done = on(Team(job("digits", Succeeded="done")), bucket="")("digits")
    assert done.code == 1 and "job digits has no log: its pods are gone" in done.err
    assert on(Team(), bucket="")("job/digits").code == 2
    assert on(Team())("digits", "--follow").code == 1 and not on.opened


def test_nothing_kept_is_said(on: Any) -> None:
    done = on(Team())("other")
    assert done.code == 1 and "no logs of other are kept in s3://logs/vision/" in done.err
