"""`trainyard submit` and `trainyard runs`, as a member of a team types them, against the real controller."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline_harness import PipelineHarness, Run

from trainyard.kube import Access, gangs
from trainyard.paths import ROOT
from trainyard.pipelines.runs import nodes, snapshot
from trainyard_dev.e2e.runs import FLOWS
from waiting import wait

SAMPLES = Path(__file__).with_name("samples.py")
HEAD = "import sys\nsys.path.insert(0, {folder!r})\nfrom kfp import dsl\nfrom samples import *\n"
LINE = """
@dsl.pipeline(name="line")
def line(word: str, often: int = 1) -> str:
    first = write(text=word)
    second = upper(taken=first.outputs["made"])
    return read(taken=second.outputs["made"]).outputs["text"]
"""
FAILS = """
@dsl.pipeline(name="fails")
def fails():
    first = shell(script="echo fine")
    shell(script="echo no such file >&2; exit 3").set_retry(1).after(first)
"""
SLOW = """
@dsl.pipeline(name="slow")
def slow():
    first = shell(script="trap 'echo going; exit 143' TERM; while true; do sleep 0.1; done")
    shell(script="true").after(first)
"""
HERA = """
from hera.workflows import Container, Resources, Workflow

with Workflow(generate_name="hello-", entrypoint="say") as w:
    Container(
        name="say", image="site.invalid/trainyard/pipeline:0.2.0", command=["sh", "-c", "echo hello"],
        resources=Resources(cpu_request="10m", memory_request="16Mi", memory_limit="16Mi"),
    )
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "pipeline.py"
        path.write_text(text if "hera" in text else HEAD.format(folder=str(SAMPLES.parent)) + text)
        return path

    return write


def _name(text: str) -> str:
    """The run that a command has created, from what it said."""
    return next(line.split()[1] for line in text.splitlines() if line.startswith("run ") and " created in " in line)


def _run(harness: PipelineHarness, name: str) -> Run:
    return Run(harness, "vision", name, {}).refresh()


def test_a_pipeline_runs_and_its_result_is_shown(harness: PipelineHarness, call: Any, file: Any) -> None:
    code, out, err = call("submit", file(LINE), "--param", "word=hello", "--queue", "training", "-e", "first")
    assert code == 0, err
    name = _name(err)
    assert f"run {name} succeeded in " in out
    assert "= HELLO" in out
    assert "upper: done" in out
    run = _run(harness, name)
    assert run.body["metadata"]["annotations"]["trainyard.io/submitted-by"] == "ada"
    assert run.body["spec"]["podMetadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "training"

    code, out, _ = call("runs", "list", "-e", "first", "-o", "wide")
    assert code == 0
    (row,) = [line.split() for line in out.splitlines() if line.startswith(name)]
    assert row[1:4] == ["pipeline", "succeeded", "3/3"] and "line" in row
    assert row[-2:] == ["training", "ada"]

    code, out, _ = call("runs", "show", name, "-o", "json")
    shown = json.loads(out)
    assert shown["state"] == "succeeded"
    assert {step["name"]: step["state"] for step in shown["steps"]} == dict.fromkeys(("write", "upper", "read"), "done")

    code, out, _ = call("runs", "artifacts", name)
    rows = sorted(line.split()[:2] for line in out.splitlines()[1:])  # steps of one second have no order
    assert rows == [["upper", "made"], ["write", "made"]]
    assert f"s3://runs/vision/pipelines/{name}/" in out

    code, out, _ = call("runs", "delete", name)
    assert (code, out) == (0, f"run {name} deleted\n")
    code, _, err = call("runs", "show", name)
    assert (code, err) == (
        1, f"error: no run or job {name} in vision\nhint: list all runs with `trainyard runs list`\n"
    )  # fmt: skip


def test_a_failed_run_says_why_and_can_be_tried_again(harness: PipelineHarness, call: Any, file: Any) -> None:
    code, out, err = call("submit", file(FAILS), "--no-cache")
    assert code == 1
    name = _name(err)
    assert "step shell-2 failed after 2 tries: no such file (exit code 3)" in err
    assert f"run {name} failed after " in err
    assert "shell-2: failed" in out
    before = len(_run(harness, name).pods())
    code, out, err = call("runs", "retry", name)
    assert code == 1, out
    assert f"retrying run {name}" in err
    again = _run(harness, name)
    assert len(again.pods("shell")) == 1, "what succeeded is not run again"
    assert len(harness.kubelet.of(name)) > before


def test_stopping_ends_the_step_and_the_run(harness: PipelineHarness, member: Any, call: Any, file: Any) -> None:
    code, out, err = call("submit", file(SLOW), "--detach", "-o", "name")
    assert code == 0, err
    name = out.strip()
    assert f"follow: `trainyard runs show {name} -n vision --follow`" in err
    _run(harness, name).wait(
        lambda run: any(node["phase"] == "Running" and node["type"] == "Pod" for node in run.nodes)
    )
    code, _, err = call("runs", "delete", name)
    assert (code, err) == (2, f"error: run {name} is running\nhint: stop the run first, or add --force\n")
    code, out, _ = call("runs", "stop", name)
    assert (code, out) == (0, f"run {name} is stopping\n")
    assert _run(harness, name).wait().phase == "Failed"
    assert call("runs", "stop", name)[1] == f"run {name} has already ended\n"
    code, out, _ = call("runs", "show", name)
    assert f"{name} in vision: stopped" in out


def test_leaving_does_not_end_the_run(harness: PipelineHarness, member: Any, call: Any, file: Any) -> None:
    process = member("submit", file(SLOW))
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "running" in line and "shell" in line:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    name = _name(err)
    assert process.returncode == 130
    assert f"the run goes on. follow: `trainyard runs show {name} -n vision --follow`" in err
    assert _run(harness, name).phase == "Running"
    assert call("runs", "delete", name, "--force")[0] == 0


def test_a_run_can_wait_for_its_turn(harness: PipelineHarness, member: Any, file: Any) -> None:
    kube = Access(str(harness.server.kubeconfig), namespace="vision").connect()
    group = {"apiVersion": gangs.PODGROUPS, "kind": "PodGroup", "metadata": {"name": "earlier", "namespace": "vision"}}
    kube.create(group | {"spec": {"queue": "vision", "minMember": 1}})
    process = member("submit", file(LINE), "-p", "word=turn", "--after-started", "--detach", "-e", "turn")
    try:
        said = iter(process.stderr.readline, "")
        assert any("waiting until PodGroup earlier has started in queue vision" in line for line in said)
        chosen = {"labelSelector": "trainyard.io/experiment=turn"}
        assert not kube.list(kube.path("argoproj.io/v1alpha1", "workflows"), **chosen)
        kube.delete(kube.path(gangs.PODGROUPS, "podgroups", "earlier"))
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert len(kube.list(kube.path("argoproj.io/v1alpha1", "workflows"), **chosen)) == 1
    finally:
        process.kill()


def test_a_hera_workflow(harness: PipelineHarness, call: Any, file: Any) -> None:
    code, out, err = call("submit", file(HERA), "--wait")
    assert code == 0, err
    assert "say:" not in out
    assert f"run {_name(err)} succeeded in " in out


def test_a_dry_run_sends_nothing(harness: PipelineHarness, call: Any, file: Any) -> None:
    code, out, err = call("submit", file(LINE), "-p", "word=no", "--dry-run", "-o", "json")
    assert code == 0, err
    assert json.loads(out)["metadata"]["generateName"] == "line-"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-p", "word=a", "--queue", "speech"], "speech is not for team vision\nhint: use one of vision, training\n"),
        (["-p", "word=a", "--priority", "system-node-critical"], "priority class system-node-critical is not for team"),
        ([], "the pipeline needs a value for word"),
        (["-p", "word=a", "-p", "often=often"], "--param often: expected a whole number, got 'often'"),
    ],
)
def test_what_is_refused_before_it_is_sent(call: Any, file: Any, words: list[str], error: str) -> None:
    code, _, err = call("submit", file(LINE), *words)
    assert code == 2
    assert error in err


def test_another_team_s_runs_are_not_ours(harness: PipelineHarness, call: Any) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "trainyard_dev", "runs", "list", "--kubeconfig", harness.server.kubeconfig,
         "-n", "speech", "--as", "ada", "--as-group", "vision-members"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")}, capture_output=True, text=True,
    )  # fmt: skip
    assert process.returncode == 1
    assert 'User "ada" cannot list resource "workflows"' in process.stderr
    assert "choose your own team with -n" in process.stderr


def test_why_a_pod_waits_is_shown(harness: PipelineHarness, call: Any, file: Any) -> None:
    """The kubelet of the tests places pods at once; a condition that a scheduler would set is set by hand."""
    kube = Access(str(harness.server.kubeconfig), namespace="vision").connect()
    code, out, err = call("submit", file(SLOW), "--detach", "-o", "name")
    assert code == 0, err
    name = out.strip()
    try:
        _run(harness, name).wait(lambda run: any(node["type"] == "Pod" for node in run.nodes))
        observer = snapshot.Observer(kube, name)
        (pod,) = wait(lambda: observer.poll().pods, "a pod", 30).values()
        event = {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{pod}.1", "namespace": "vision"},
            "involvedObject": {"kind": "Pod", "name": pod, "namespace": "vision"}, "type": "Warning",
            "reason": "FailedMount", "message": "claim data is not there", "source": {"component": "kubelet"},
            "lastTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }  # fmt: skip
        kube.create(event)
        seen = observer.poll()
        step = next(one for one in seen.run.steps if one.nodes)
        assert seen.note(step) == "FailedMount: claim data is not there"
        assert nodes.run(snapshot.fetch(kube, name)).find(step.name).id == step.id
    finally:
        call("runs", "delete", name, "--force")


def test_components_run_as_kfp_writes_them(harness: PipelineHarness, call: Any) -> None:
    """On the Python of this machine; on a cluster they run on that of the stand-in."""
    code, out, err = call("submit", FLOWS / "as_written.py", "-p", "recipient=Ada", "--wait")
    assert code == 0, out + err
    run = _run(harness, _name(err))
    assert run.value("count", "Output") == str(len("Hello, Ada!")) and run.pods("shell"), run.summary()
