"""Training steps against the real API server: rights of the pipelines' account, the platform's rules on jobs, adoption
after an attempt that ended half way, refusals, stopping. What operators would write is written by the tests."""

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
from stepping import TEAM, Made, Step

from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard.pipelines.steps import cluster
from trainyard.pipelines.steps.request import Request
from trainyard.pipelines.steps.run import Run
from trainyard_agent.api import Api
from trainyard_dev.apiserver import ApiServer

Start = Callable[..., tuple[Step, Made]]
Heard = Callable[[str], str]
KINDS = {kind.framework: kind.kind for kind in registry.with_gang()}
PLURALS = {kind.kind: kind.plural for kind in registry.with_gang()}
GIVEN: dict[str, Any] = {
    "command": ["python3", "train.py", "--out={out}"],
    "name": "digits",
    "arguments": "--lr=0.1",
    "nodes": 2,
    "gpus": 1,
    "env": {},
}
# Word for word what the API server says and the operator passes on.
SECURITY = (
    'Error creating: pods "digits-master-0" is forbidden: violates PodSecurity "restricted:latest": '
    "allowPrivilegeEscalation != false"
)
QUOTA = 'Error creating: pods "digits-master-0" is forbidden: exceeded quota: team-training-normal, requested: pods=1'


def environment(uid: str) -> dict[str, str]:
    return {
        "TRAINYARD_RUN": "digits-x1", "TRAINYARD_RUN_UID": uid, "TRAINYARD_TEAM": TEAM, "TRAINYARD_NAMESPACE": TEAM,
        "TRAINYARD_QUEUE": TEAM, "TRAINYARD_PRIORITY": "training-normal", "TRAINYARD_BUCKET": "runs",
        "TRAINYARD_STEP": json.dumps({"task": "train"}),
    }  # fmt: skip


def job_of(server: ApiServer, framework: str, request: Request) -> Made:
    kind = KINDS[framework]
    version = "batch.volcano.sh/v1alpha1" if kind == "Job" else "kubeflow.org/v1"
    return Made(server, f"{kind} {request.job}", version, PLURALS[kind])


@pytest.fixture
def start(server: ApiServer, api: Api) -> Start:
    """`start(uid, framework, **given)`: a training step of a run with that uid, and its job."""

    def go(uid: str, framework: str = "pytorch", **given: Any) -> tuple[Step, Made]:
        request = Request.of(framework, {**GIVEN, **given}, Run.of(environment(uid)))
        return Step(lambda: cluster.run(request, environment(uid), api)), job_of(server, framework, request)

    return go


def condition(job: Made, kind: str, message: str = "") -> None:
    entry = {"type": kind, "status": "True", "message": message, "reason": kind}
    job.say({"conditions": [entry], "replicaStatuses": {}})


@pytest.mark.parametrize("framework", sorted(KINDS))
def test_admitted_by_all_rules_and_followed_to_success(
    framework: str, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    step, made = start(f"uid-{framework}", framework)
    job = made.wait()
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Workflow", "digits-x1", f"uid-{framework}")
    text = json.dumps(job["spec"])
    assert '"training-normal"' in text and f'"queue": "{TEAM}"' in text
    name = job["metadata"]["name"]
    assert f"--out=s3://runs/{TEAM}/pipelines/jobs/{name}/results" in text and "--lr=0.1" in text
    if framework == "volcano":
        made.say({"state": {"phase": "Completed"}, "minAvailable": 2})
    else:
        condition(made, "Succeeded")
    assert step.ended() == ""
    assert f"{job['kind']} {name} succeeded" in capsys.readouterr().out


def test_second_attempt_adopts_a_running_and_a_finished_job(start: Start, heard: Heard) -> None:
    first, job = start("uid-adopt")
    uid = job.wait()["metadata"]["uid"]
    second, _ = start("uid-adopt")
    heard("has not ended: adopted")
    condition(job, "Succeeded")
    assert first.ended() == second.ended() == ""
    third, _ = start("uid-adopt")
    assert third.ended(5) == ""
    heard("has succeeded: adopted")
    assert job.wait()["metadata"]["uid"] == uid  # trained once


def test_failed_job_is_made_anew_by_the_next_attempt(start: Start) -> None:
    first, job = start("uid-again")
    uid = job.wait()["metadata"]["uid"]
    condition(job, "Failed", "PyTorchJob digits is failed because 1 Master replica(s) failed.")
    assert "failed: PyTorchJob digits is failed because 1 Master replica(s) failed" in first.ended()
    second, _ = start("uid-again")
    job.collect_garbage()
    assert not job.anew(uid).get("status", {}).get("conditions")
    condition(job, "Succeeded")
    assert second.ended() == ""


def test_refused_pods_fail_the_step_within_seconds_with_the_events_words(start: Start) -> None:
    step, job = start("uid-refused")
    began = time.monotonic()
    job.warn("FailedCreatePod", SECURITY)
    job.collect_garbage()  # the step takes the job away: its operator would try forever
    error = step.ended()
    assert time.monotonic() - began < 10
    assert "are refused: " in error and "violates PodSecurity" in error and "allowPrivilegeEscalation" in error


def test_full_quota_is_waited_for(start: Start, heard: Heard) -> None:
    step, job = start("uid-quota")
    job.warn("FailedCreatePod", QUOTA)
    assert "exceeded quota: team-training-normal" in heard("waits: ") and step.is_alive()
    condition(job, "Succeeded")
    assert step.ended() == ""


def test_job_that_somebody_deletes_ends_the_step(start: Start) -> None:
    step, job = start("uid-deleted")
    job.wait()
    assert job.own.call("DELETE", job.path).ok
    assert f"{job.title} was deleted while it ran" in step.ended()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queue": "speech"}, "queue speech is not for team vision"),
        ({"gpus": 8, "nodes": 9}, "GPUs over all nodes"),
        ({"pool": "moon"}, "no node pool moon"),
    ],
)
def test_another_teams_queue_and_too_many_gpus_are_refused_before_anything_is_made(
    start: Start, given: dict[str, Any], words: str
) -> None:
    step, job = start("uid-wrong", **given)
    assert words in step.ended()
    assert job.find() is None


def test_another_runs_job_of_this_name_is_not_adopted(start: Start) -> None:
    step, made = start("uid-mine")
    job = made.wait()
    job["metadata"]["ownerReferences"][0]["uid"] = "uid-other"
    assert made.own.call("PUT", made.path, job).ok
    condition(made, "Succeeded")
    step.ended()
    assert "belongs to another run" in start("uid-mine")[0].ended()


def test_stopped_step_takes_its_job_along(server: ApiServer, account: Path, api: Api, tmp_path: Path) -> None:
    env = environment("uid-stopped")
    job = job_of(server, "pytorch", Request.of("pytorch", GIVEN, Run.of(env)))
    program = (
        "import json, os, sys; from pathlib import Path; from trainyard_agent.api import Api;"
        "from trainyard.pipelines.steps import cluster; from trainyard.pipelines.steps.request import Request;"
        "from trainyard.pipelines.steps.run import Run;"
        "request = Request.of('pytorch', json.loads(sys.argv[1]), Run.of(os.environ));"
        "cluster.run(request, os.environ, Api(Path(sys.argv[2])))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(GIVEN), str(account)],
        env={**os.environ, **env, "PYTHONPATH": str(ROOT / "scripts")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
    )  # fmt: skip
    job.wait()
    assert process.stdout and f"created {job.title} in {TEAM}" in process.stdout.readline()  # it follows now
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM, output
    assert f"the step is being stopped, and {job.title} with it" in output
    assert job.wait()["metadata"]["deletionTimestamp"]
