"""Parts of the upgrade and uninstallation checks that need no cluster."""

from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from trainyard.paths import ROOT
from trainyard_dev.chart import previous
from trainyard_dev.e2e import probe_job, releases
from trainyard_dev.e2e.checks import upgrade
from trainyard_dev.e2e.recorder import CheckError, Recorder

LOG = "rank 0\nstep 5 at 100.0 loss 0.1\nstep 10 at 101.5 loss 0.1\nstep 15 at 109.0 loss 0.1\n"


class Cluster:
    """A probe job's pods and log."""

    def __init__(self) -> None:
        self.logs = [LOG]
        self.pod = {"metadata": {"name": "probe-job-master-0", "uid": "1"},
                    "status": {"phase": "Running", "containerStatuses": [{"restartCount": 0}]}}  # fmt: skip

    def get(self, *args: str) -> list[dict[str, Any]]:
        return [self.pod]

    def __call__(self, *args: str, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(stdout=self.logs.pop(0) if len(self.logs) > 1 else self.logs[0])


@pytest.fixture
def job() -> probe_job.ProbeJob:
    manifest = yaml.safe_load((ROOT / "manifests" / "jobs" / "pytorchjob.yaml").read_text())
    made = probe_job.ProbeJob(SimpleNamespace(kubectl=Cluster()), manifest, "n", "r/trainer:1")  # type: ignore[arg-type]
    made.pods = {"probe-job-master-0": "1"}
    return made


def test_the_example_becomes_a_gang_of_two_that_trains_until_it_is_told(job: probe_job.ProbeJob) -> None:
    spec = job.job["spec"]
    assert spec["runPolicy"]["schedulingPolicy"]["minAvailable"] == 2
    replicas = spec["pytorchReplicaSpecs"]
    assert (replicas["Master"]["replicas"], replicas["Worker"]["replicas"]) == (1, 1)
    container = replicas["Worker"]["template"]["spec"]["containers"][0]
    assert container["image"] == "r/trainer:1" and "args" not in container
    assert container["env"].count({"name": "OUT", "value": "s3://runs/n/probe-job"}) == 1
    compile(probe_job.SCRIPT, "script", "exec")


def test_steps_are_read_from_the_log(job: probe_job.ProbeJob) -> None:
    assert job.steps() == [(5, 100.0), (10, 101.5), (15, 109.0)]


def test_a_job_that_goes_on_is_alive(job: probe_job.ProbeJob) -> None:
    job.context.kubectl.logs = [LOG, LOG + "step 20 at 110.0 loss 0.1\n"]  # type: ignore[attr-defined]
    job.require_alive()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"metadata": {"name": "probe-job-master-0", "uid": "2"}}, "they were {'probe-job-master-0': '1'}"),
        ({"status": {"phase": "Running", "containerStatuses": [{"restartCount": 1}]}}, "was restarted 1 times"),
        ({"status": {"phase": "Failed", "containerStatuses": [{"restartCount": 0}]}}, "is Failed"),
    ],
)
def test_a_job_that_was_touched_is_reported(job: probe_job.ProbeJob, change: dict[str, Any], error: str) -> None:
    job.context.kubectl.pod |= change  # type: ignore[attr-defined]
    with pytest.raises(CheckError, match=error):
        job.require_alive()


def test_what_is_gone_or_another_one_is_named() -> None:
    assert releases.lost({"claim a": "1", "claim b": "1", "c": "1"}, {"claim b": "2", "c": "1", "d": "1"}) == (
        "claim a is gone; claim b is another one"
    )
    assert releases.lost({"a": "1"}, {"a": "1"}) == ""
    assert releases.lost({"claim a": "1"}, {"claim a": "1", "volume of claim a": "v"}) == ""  # it was bound meanwhile


def test_values_are_profile_gpus_and_teams_in_this_order() -> None:
    for gpu, due in (("mock", ["kind", "stand-ins", "teams"]), ("real", ["kind", "real-gpus", "stand-ins", "teams"])):
        with releases.values(SimpleNamespace(gpu=gpu)) as files:  # type: ignore[arg-type]
            assert [file.stem for file in files] == due
            held = yaml.safe_load(files[-1].read_text())["global"]["contract"]["teams"]
            assert [team["name"] for team in held] == ["vision", "speech"]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[dict[str, Any]], str]]:
    """Of each upgrade: the values of layers that are files, and what it sets."""
    found: list[tuple[list[dict[str, Any]], str]] = []

    def helm(context: Any, *args: str) -> float:
        assert "--reset-values" in args
        files = [Path(word) for before, word in pairwise(args) if before == "-f"]
        layers = [yaml.safe_load(file.read_text()) for file in files if file.parent.name.startswith("layers-")]
        found.append((layers, args[args.index("--set") + 1] if "--set" in args else ""))
        return 1.5

    monkeypatch.setattr(releases, "_timed", helm)
    monkeypatch.setattr(releases, "this_chart", lambda: Path("trainyard.tgz"))
    monkeypatch.setattr(releases, "read_contract", lambda kubectl: {"after": len(found)})
    return found


def upgraded() -> Any:
    return SimpleNamespace(kubectl=None, contract={}, layers=[], gpu="mock", helm=RLock())


@pytest.mark.parametrize("broken", [False, True])
def test_what_is_changed_is_taken_back_whatever_fails(broken: bool, said: list[Any]) -> None:
    context = upgraded()
    fails = pytest.raises(CheckError) if broken else nullcontext()
    with fails, releases.changed(context, "a=on") as seconds:
        assert (seconds, said, context.contract) == (1.5, [([], "a=on")], {"after": 1})
        if broken:
            raise CheckError("the block failed")
    assert said[1:] == [([], "")] and context.contract == {"after": 2}


def test_an_upgrade_that_fails_is_taken_back(said: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    context = upgraded()
    monkeypatch.setattr(releases, "read_contract", lambda kubectl: {}[""] if len(said) == 1 else {"after": "again"})
    with pytest.raises(KeyError), releases.changed(context, "a=on"):
        raise AssertionError("the block must not run")
    assert said == [([], "a=on"), ([], "")] and context.layers == []


def test_layers_lie_on_each_other_and_go_alone(said: list[Any]) -> None:
    context = upgraded()
    with releases.layer(context) as first:
        assert said == []
        assert first.set({"login": {"enabled": True}}) == 1.5
        with releases.changed(context, "serving.enabled=true"):
            first.set({"login": {"enabled": True, "people": []}})
    assert said == [
        ([{"login": {"enabled": True}}], ""),
        ([{"login": {"enabled": True}}], "serving.enabled=true"),
        ([{"login": {"enabled": True, "people": []}}], "serving.enabled=true"),
        ([{"login": {"enabled": True, "people": []}}], ""),
        ([], ""),
    ]


def test_without_history_all_upgrade_checks_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previous, "missing", lambda root=Path(): "no history")
    recorder = Recorder()
    upgrade.from_previous(SimpleNamespace(recorder=recorder))  # type: ignore[arg-type]
    assert {check.id for check in recorder.checks} == set(upgrade.TITLES)
    assert {(check.status, check.reason) for check in recorder.checks} == {("skipped", "no history")}
