"""Training steps against the real API server: rights of the pipelines' account, the platform's rules on jobs, adoption
after an attempt that ended half way, refusals, stopping. What operators would write is written by the tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard.pipelines.steps import cluster
from trainyard.pipelines.steps.request import Request
from trainyard.pipelines.steps.run import Run
from trainyard_agent.api import Api
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package

TEAM = "vision"
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


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """The chart's rules and rights on a real API server."""
    os.environ["KUBECONFIG"] = "/dev/null"  # helm must not find the cluster of whoever runs the tests
    objects = package.render("kind", values=[Path(__file__).parent / "teams.yaml"])
    with running() as found:
        install(found, objects)
        yield found


@pytest.fixture(scope="module")
def account(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that kubelet would mount into a step: token, authority, namespace."""
    folder = tmp_path_factory.mktemp("account")
    path = f"/api/v1/namespaces/{TEAM}/serviceaccounts/pipeline/token"
    answer = server.call("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    assert answer.ok, answer.message
    (folder / "token").write_text(answer.body["status"]["token"])
    (folder / "ca.crt").write_bytes((server.folder / "pki" / "ca.crt").read_bytes())
    (folder / "namespace").write_text(TEAM)
    return folder


@pytest.fixture
def api(server: ApiServer, account: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    """What a step calls the server by."""
    host, port = server._host.split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr(signal, "signal", lambda *_: signal.SIG_DFL)  # steps run in threads here
    return Api(account)


def environment(uid: str) -> dict[str, str]:
    return {
        "TRAINYARD_RUN": "digits-x1", "TRAINYARD_RUN_UID": uid, "TRAINYARD_TEAM": TEAM, "TRAINYARD_NAMESPACE": TEAM,
        "TRAINYARD_QUEUE": TEAM, "TRAINYARD_PRIORITY": "training-normal", "TRAINYARD_BUCKET": "runs",
        "TRAINYARD_STEP": json.dumps({"task": "train"}),
    }  # fmt: skip


def request_of(uid: str, framework: str = "pytorch", **given: Any) -> Request:
    return Request.of(framework, {**GIVEN, **given}, Run.of(environment(uid)))


class Step(threading.Thread):
    """A training step that runs beside the test."""

    def __init__(self, request: Request, api: Api) -> None:
        super().__init__(daemon=True)
        self.request, self.api, self.error, self.began = request, api, None, time.monotonic()
        self.start()

    def run(self) -> None:
        try:
            cluster.run(self.request, environment(self.request.run.uid), self.api)
        except TrainyardError as error:
            self.error = str(error)

    def ended(self, seconds: float = 20.0) -> str:
        self.join(seconds)
        assert not self.is_alive(), "the step goes on"
        return self.error or ""


@pytest.fixture
def jobs(server: ApiServer) -> SimpleNamespace:
    """The test's view of jobs, and what their operators would write."""
    own = server.connection()

    def path(request: Request) -> str:
        kind = KINDS[request.framework]
        group = "batch.volcano.sh/v1alpha1" if kind == "Job" else "kubeflow.org/v1"
        return f"/apis/{group}/namespaces/{TEAM}/{PLURALS[kind]}/{request.job}"

    def find(request: Request) -> dict[str, Any] | None:
        answer = own.call("GET", path(request))
        return answer.body if answer.ok else None

    def say(request: Request, status: dict[str, Any]) -> None:
        found = wait(lambda: find(request), "the job")
        answer = own.call("PUT", f"{path(request)}/status", {**found, "status": status})
        assert answer.ok, answer.message

    def condition(request: Request, kind: str, message: str = "") -> None:
        entry = {"type": kind, "status": "True", "message": message, "reason": kind}
        say(request, {"conditions": [entry], "replicaStatuses": {}})

    def warn(request: Request, reason: str, message: str) -> None:
        job = wait(lambda: find(request), "the job")
        about = {"kind": job["kind"], "apiVersion": job["apiVersion"], "name": request.job, "namespace": TEAM}
        event = {"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message}
        event["metadata"] = {"generateName": "refused-", "namespace": TEAM}
        event["involvedObject"] = about | {"uid": job["metadata"]["uid"]}
        assert own.call("POST", f"/api/v1/namespaces/{TEAM}/events", event).ok

    def collect_garbage(request: Request) -> None:
        """What the garbage collector does at the end of a foreground deletion."""
        found = wait(
            lambda: (one := find(request)) and one["metadata"].get("deletionTimestamp") and one, "the deletion"
        )
        found["metadata"]["finalizers"] = []
        assert own.call("PUT", path(request), found).ok

    return SimpleNamespace(
        find=find, say=say, condition=condition, warn=warn, collect_garbage=collect_garbage, path=path, own=own
    )


def wait(look: Callable[[], Any], what: str, seconds: float = 20.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come")


@pytest.mark.parametrize("framework", sorted(KINDS))
def test_admitted_by_all_rules_and_followed_to_success(
    framework: str, api: Api, jobs: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    request = request_of(f"uid-{framework}", framework)
    step = Step(request, api)
    job = wait(lambda: jobs.find(request), "the job")
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Workflow", "digits-x1", f"uid-{framework}")
    text = json.dumps(job["spec"])
    assert '"training-normal"' in text and f'"queue": "{TEAM}"' in text
    assert f"--out=s3://runs/{TEAM}/pipelines/jobs/{request.job}/results" in text and "--lr=0.1" in text
    if framework == "volcano":
        jobs.say(request, {"state": {"phase": "Completed"}, "minAvailable": 2})
    else:
        jobs.condition(request, "Succeeded")
    assert step.ended() == ""
    assert f"{job['kind']} {request.job} succeeded" in capsys.readouterr().out


def test_second_attempt_adopts_a_running_and_a_finished_job(
    api: Api, jobs: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    request = request_of("uid-adopt")
    first = Step(request, api)
    uid = wait(lambda: jobs.find(request), "the job")["metadata"]["uid"]
    second = Step(request, api)
    wait(lambda: "has not ended: adopted" in capsys.readouterr().out, "the adoption")
    jobs.condition(request, "Succeeded")
    assert first.ended() == second.ended() == ""
    third = Step(request, api)
    assert third.ended(5) == ""
    assert "has succeeded: adopted" in capsys.readouterr().out
    assert jobs.find(request)["metadata"]["uid"] == uid  # trained once


def test_failed_job_is_made_anew_by_the_next_attempt(api: Api, jobs: SimpleNamespace) -> None:
    request = request_of("uid-again")
    first = Step(request, api)
    uid = wait(lambda: jobs.find(request), "the job")["metadata"]["uid"]
    jobs.condition(request, "Failed", "PyTorchJob digits is failed because 1 Master replica(s) failed.")
    assert "failed: PyTorchJob digits is failed because 1 Master replica(s) failed" in first.ended()
    second = Step(request, api)
    jobs.collect_garbage(request)
    made = wait(lambda: (one := jobs.find(request)) and one["metadata"]["uid"] != uid and one, "the new job")
    assert not made.get("status", {}).get("conditions")
    jobs.condition(request, "Succeeded")
    assert second.ended() == ""


def test_refused_pods_fail_the_step_within_seconds_with_the_events_words(api: Api, jobs: SimpleNamespace) -> None:
    request = request_of("uid-refused")
    step = Step(request, api)
    began = time.monotonic()
    jobs.warn(request, "FailedCreatePod", SECURITY)
    jobs.collect_garbage(request)  # the step takes the job away: its operator would try for ever
    error = step.ended()
    assert time.monotonic() - began < 10
    assert "are refused: " in error and "violates PodSecurity" in error and "allowPrivilegeEscalation" in error


def test_full_quota_is_waited_for(api: Api, jobs: SimpleNamespace, capsys: pytest.CaptureFixture[str]) -> None:
    request = request_of("uid-quota")
    step = Step(request, api)
    jobs.warn(request, "FailedCreatePod", QUOTA)
    said = ""

    def heard() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return "waits: " in said

    wait(heard, "the reason")
    assert "exceeded quota: team-training-normal" in said and step.is_alive()
    jobs.condition(request, "Succeeded")
    assert step.ended() == ""


def test_job_that_somebody_deletes_ends_the_step(api: Api, jobs: SimpleNamespace) -> None:
    request = request_of("uid-deleted")
    step = Step(request, api)
    wait(lambda: jobs.find(request), "the job")
    assert jobs.own.call("DELETE", jobs.path(request)).ok
    assert f"PyTorchJob {request.job} was deleted while it ran" in step.ended()


def test_another_teams_queue_and_too_many_gpus_are_refused_before_anything_is_made(
    api: Api, jobs: SimpleNamespace
) -> None:
    for given, words in (
        ({"queue": "speech"}, "queue speech is not for team vision"),
        ({"gpus": 8, "nodes": 9}, "GPUs over all nodes"),
        ({"pool": "moon"}, "no node pool moon"),
    ):
        request = request_of("uid-wrong", **given)
        assert words in Step(request, api).ended()
        assert jobs.find(request) is None


def test_another_runs_job_of_this_name_is_not_adopted(api: Api, jobs: SimpleNamespace) -> None:
    request = request_of("uid-mine")
    step = Step(request, api)
    job = wait(lambda: jobs.find(request), "the job")
    job["metadata"]["ownerReferences"][0]["uid"] = "uid-other"
    assert jobs.own.call("PUT", jobs.path(request), job).ok
    jobs.condition(request, "Succeeded")
    step.ended()
    assert "belongs to another run" in Step(request, api).ended()


def test_stopped_step_takes_its_job_along(
    server: ApiServer, account: Path, api: Api, jobs: SimpleNamespace, tmp_path: Path
) -> None:
    request = request_of("uid-stopped")
    program = (
        "import json, os, sys; from pathlib import Path; from trainyard_agent.api import Api;"
        "from trainyard.pipelines.steps import cluster; from trainyard.pipelines.steps.request import Request;"
        "from trainyard.pipelines.steps.run import Run;"
        "request = Request.of('pytorch', json.loads(sys.argv[1]), Run.of(os.environ));"
        "cluster.run(request, os.environ, Api(Path(sys.argv[2])))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, json.dumps(GIVEN), str(account)],
        env={**os.environ, **environment("uid-stopped"), "PYTHONPATH": str(ROOT / "scripts")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
    )  # fmt: skip
    wait(lambda: jobs.find(request), "the job")
    time.sleep(1.5)  # it follows now
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM, output
    assert f"the step is stopped: PyTorchJob {request.job} goes with it" in output
    assert jobs.find(request)["metadata"]["deletionTimestamp"]
