"""Which claims the janitor removes, and which it leaves."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from trainyard_agent.api import ApiError
from trainyard_agent.runs import janitor
from trainyard_agent.say import PlatformError

KINDS = (
    "argoproj.io/v1alpha1/workflows",
    "kubeflow.org/v1/pytorchjobs",
    "batch.volcano.sh/v1alpha1/jobs",
    "batch/v1/jobs",
)
NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


def ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def condition(kind: str, seconds: int) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": "True", "lastTransitionTime": ago(seconds)}]}}


class Cluster:
    """An API with one namespace; `deleted` is what went, `notes` what was written on claims."""

    def __init__(self, **annotations: str) -> None:
        notes = {janitor.TTL: "60"} | {
            janitor.ENDED if key == "ended" else key: text for key, text in annotations.items()
        }
        self.claim: dict[str, Any] = {
            "metadata": {"name": "scratch", "uid": "u", "resourceVersion": "7", "labels": {janitor.RUN: "job"}}
        }
        self.claim["metadata"]["annotations"] = notes
        self.jobs: dict[str, dict[str, Any]] = {}
        self.pods: list[dict[str, Any]] = []
        self.deleted: list[tuple[str, Any]] = []
        self.notes: list[Any] = []

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        parts = path.split("/")
        if parts[1] == "apis" and "/".join(parts[2:4]) in self.jobs:
            return self.jobs["/".join(parts[2:4])]
        if parts[-1] == "persistentvolumeclaims":
            assert query == {"labelSelector": janitor.RUN}
            return {"items": [self.claim]}
        if parts[-1] == "pods":
            return {"items": self.pods}
        raise ApiError(404, "not found")

    def merge(self, path: str, patch: dict[str, Any], *, manager: str) -> None:
        assert patch["metadata"]["resourceVersion"] == "7"
        self.notes.append(patch["metadata"]["annotations"][janitor.ENDED])

    def call(self, method: str, path: str, body: dict[str, Any]) -> None:
        self.deleted.append((method + " " + path, body["preconditions"]))

    def look(self) -> None:
        janitor.Janitor(self, KINDS, lambda: NOW).look("vision")  # type: ignore[arg-type]

    def pod(self, phase: str) -> None:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "scratch"}}]
        self.pods.append({"spec": {"volumes": volumes}, "status": {"phase": phase}})


ENDS = {
    "kubeflow.org/v1": condition("Succeeded", 100),
    "batch/v1": condition("Complete", 100),
    "batch.volcano.sh/v1alpha1": {"status": {"state": {"phase": "Aborted", "lastTransitionTime": ago(100)}}},
    "argoproj.io/v1alpha1": {"status": {"phase": "Failed", "finishedAt": ago(100)}},
}


@pytest.mark.parametrize("group", ENDS)
def test_claim_of_a_finished_run_goes(group: str) -> None:
    cluster = Cluster()
    cluster.jobs[group] = ENDS[group]
    cluster.look()
    only = {"uid": "u", "resourceVersion": "7"}
    assert cluster.deleted == [("DELETE /api/v1/namespaces/vision/persistentvolumeclaims/scratch", only)]


def test_it_waits_for_the_time_to_live() -> None:
    cluster = Cluster()
    cluster.jobs["batch/v1"] = condition("Failed", 59)
    cluster.look()
    assert not cluster.deleted


@pytest.mark.parametrize(("phase", "goes"), [("Running", False), ("Pending", False), ("Succeeded", True)])
def test_claim_in_use_stays(phase: str, goes: bool) -> None:
    cluster = Cluster()
    cluster.jobs["batch/v1"] = condition("Complete", 100)
    cluster.pod(phase)
    cluster.look()
    assert bool(cluster.deleted) == goes


def test_running_job_of_another_kind_keeps_it() -> None:
    cluster = Cluster()
    cluster.jobs |= {"kubeflow.org/v1": condition("Succeeded", 100), "batch/v1": {"status": {"active": 1}}}
    cluster.look()
    assert not cluster.deleted


def test_run_that_is_gone_counts_from_the_first_look() -> None:
    cluster = Cluster()
    cluster.look()
    assert cluster.notes == [NOW.isoformat()] and not cluster.deleted
    cluster = Cluster(ended=ago(61))
    cluster.look()
    assert cluster.deleted


def test_run_that_comes_back_takes_the_note_away() -> None:
    cluster = Cluster(ended=ago(1000))
    cluster.jobs["kubeflow.org/v1"] = condition("Running", 5)
    cluster.look()
    assert cluster.notes == [None] and not cluster.deleted


def test_without_a_number_of_seconds_it_stays(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(**{janitor.TTL: "-1"})
    cluster.jobs["batch/v1"] = condition("Complete", 100)
    cluster.look()
    assert not cluster.deleted
    assert "is '-1', not a number of seconds" in capsys.readouterr().out
    del cluster.claim["metadata"]["annotations"][janitor.TTL]
    cluster.look()
    assert not cluster.deleted


def test_team_that_refuses_is_named_and_others_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []

    def look(self: janitor.Janitor, namespace: str) -> None:
        looked.append(namespace)
        if namespace == "vision":
            raise ApiError(403, "forbidden")

    monkeypatch.setattr(janitor, "Api", lambda: None)
    monkeypatch.setattr(janitor.Janitor, "look", look)
    contract = tmp_path / "contract.json"
    contract.write_text(json.dumps({"teams": [{"name": "vision"}, {"name": "speech"}]}))
    with pytest.raises(PlatformError, match=r"not looked at in vision \(forbidden\)"):
        janitor.run(str(contract), ",".join(KINDS))
    assert looked == ["vision", "speech"]


@pytest.mark.parametrize("notes", [{janitor.TTL: "9" * 5000}, {"ended": "yesterday"}, {"ended": "2026-05-04T11:00:00"}])
def test_notes_that_nobody_can_read_stop_nothing_else(
    notes: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(**notes, **({} if "ended" in notes else {"ended": ago(90)}))
    janitor.Janitor(cluster, KINDS, lambda: NOW).look("vision")  # type: ignore[arg-type]
    assert not cluster.deleted
    assert "claim vision/scratch stays, it or its run can't be read" in capsys.readouterr().out


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Failed", "finishedAt": 7},
        {"phase": "Failed", "finishedAt": "2026-05-04T11:00:00"},
        {"phase": "Failed", "finishedAt": ["2026"]},
        {"phase": ["Failed"]},
        {"state": {"phase": "Failed", "lastTransitionTime": {"at": 1}}},
        {"conditions": ["Failed"]},
        {"conditions": 7},
        7,
    ],
    ids=str,
)
def test_a_run_that_nobody_can_read_stops_nothing_else(status: Any, capsys: pytest.CaptureFixture[str]) -> None:
    class Two(Cluster):
        def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
            if path.endswith("persistentvolumeclaims"):
                other = {**self.claim["metadata"], "name": "other", "uid": "o", "labels": {janitor.RUN: "ended"}}
                return {"items": [self.claim, {"metadata": other}]}
            if path.endswith("/workflows/ended"):
                return ENDS["argoproj.io/v1alpha1"]
            if path.endswith("/workflows/job"):
                return {"status": status}
            return super().get(path, query)

    cluster = Two()
    cluster.look()
    assert [what.rsplit("/", 1)[1] for what, _ in cluster.deleted] == ["other"]
    assert "claim vision/scratch stays, it or its run can't be read" in capsys.readouterr().out
