"""Steps that make objects, against the real API server: rights of the pipelines' account, refusals, waiting, adoption.
What controllers would write is written by the tests."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import test_training_steps

from trainyard.errors import TrainyardError
from trainyard.pipelines.steps import objects
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.pipelines.steps.run import Run
from trainyard.pipelines.steps.wish import Wish
from trainyard_agent.api import Api
from trainyard_dev.apiserver import ApiServer

server, account, wait = test_training_steps.server, test_training_steps.account, test_training_steps.wait
TEAM = "vision"
CLOSED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = {
    "restartPolicy": "Never", "schedulerName": "volcano", "automountServiceAccountToken": False,
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [{
        "name": "main", "image": "docker.io/trainyard/pipeline:0.4.0", "command": ["true"], "securityContext": CLOSED,
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
    }],
}  # fmt: skip
JOB: dict[str, Any] = {
    "apiVersion": "batch/v1", "kind": "Job",
    "spec": {
        "backoffLimit": 0.0, "ttlSecondsAfterFinished": 600, "activeDeadlineSeconds": 600,
        "template": {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "{queue}"}}, "spec": POD},
    },
}  # fmt: skip
DONE = {"success_condition": "status.succeeded > 0", "failure_condition": "status.failed > 0"}


@pytest.fixture
def api(server: ApiServer, account: Path, monkeypatch: pytest.MonkeyPatch) -> Api:
    host, port = server._host.split(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setattr(signal, "signal", lambda *_: signal.SIG_DFL)  # steps run in threads here
    return Api(account)


def wish(uid: str, **given: Any) -> Wish:
    env = {
        "TRAINYARD_RUN": "made-x1", "TRAINYARD_RUN_UID": uid, "TRAINYARD_TEAM": TEAM,
        "TRAINYARD_STEP": json.dumps({"task": "make"}),
    }  # fmt: skip
    return Wish.of({"manifest": JOB, "settings": {"queue": TEAM}, **given}, Run.of(env))


class Step(threading.Thread):
    """A step that runs beside the test."""

    def __init__(self, wanted: Wish, api: Api) -> None:
        super().__init__(daemon=True)
        self.wanted, self.api, self.error, self.value = wanted, api, "", ""
        self.start()

    def run(self) -> None:
        try:
            self.value = objects.run(self.wanted, Jobs(self.api, TEAM))
        except TrainyardError as error:
            self.error = str(error)

    def ended(self, seconds: float = 60.0) -> str:
        self.join(seconds)
        assert not self.is_alive(), "the step goes on"
        return self.error


class Made:
    """The test's view of a step's object."""

    def __init__(self, server: ApiServer, wanted: Wish, plural: str = "jobs", group: str = "batch/v1") -> None:
        self._own = server.connection()
        self._title = wanted.title
        self.path = f"/apis/{group}/namespaces/{TEAM}/{plural}/{wanted.manifest['metadata']['name']}"

    def find(self) -> dict[str, Any] | None:
        answer = self._own.call("GET", self.path)
        return answer.body if answer.ok else None

    def wait(self) -> dict[str, Any]:
        return dict(wait(self.find, self._title))

    def say(self, status: dict[str, Any]) -> None:
        answer = self._own.call("PUT", f"{self.path}/status", {**self.wait(), "status": status})
        assert answer.ok, answer.message

    def warn(self, message: str) -> None:
        meta = self.wait()["metadata"]
        about = {"kind": "Job", "apiVersion": "batch/v1", "name": meta["name"], "namespace": TEAM, "uid": meta["uid"]}
        event = {"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "FailedCreate", "message": message}
        event |= {"metadata": {"generateName": "made-", "namespace": TEAM}, "involvedObject": about}
        assert self._own.call("POST", f"/api/v1/namespaces/{TEAM}/events", event).ok

    def collect_garbage(self) -> None:
        """What the garbage collector does at the end of a foreground deletion."""
        found = wait(lambda: (one := self.find()) and one["metadata"].get("deletionTimestamp") and one, "the deletion")
        found["metadata"]["finalizers"] = []
        assert self._own.call("PUT", self.path, found).ok


def test_a_job_is_made_waited_for_and_hands_a_value_on(
    server: ApiServer, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = wish("uid-made", output="status.succeeded", **DONE)
    step, made = Step(wanted, api), Made(server, wanted)
    job = made.wait()
    assert job["metadata"]["ownerReferences"][0]["uid"] == "uid-made"
    assert job["spec"]["template"]["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": TEAM}
    said = ""

    def heard() -> bool:
        nonlocal said
        said += capsys.readouterr().out
        return "waits: status.succeeded is not there, wanted: status.succeeded > 0" in said

    wait(heard, "what it waits for")
    made.say({"active": 1})
    made.say({"succeeded": 1, "startTime": "2026-01-01T00:00:00Z"})
    assert step.ended() == ""
    assert step.value == "1"
    assert f"created {wanted.title} in {TEAM}" in said
    assert f"{wanted.title} is as wanted" in capsys.readouterr().out


def test_a_repeated_step_takes_it_over_and_a_failed_one_is_made_anew(
    server: ApiServer, api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = wish("uid-again", **DONE)
    first, made = Step(wanted, api), Made(server, wanted)
    uid = made.wait()["metadata"]["uid"]
    made.say({"failed": 1})
    assert f"{wanted.title} failed: status.failed is 1" in first.ended()
    second = Step(wanted, api)
    made.collect_garbage()
    anew = wait(lambda: (one := made.find()) and one["metadata"]["uid"] != uid and one, "the new one")
    third = Step(wanted, api)
    wait(lambda: "of an earlier attempt is there: adopted" in capsys.readouterr().out, "the adoption")
    made.say({"succeeded": 1})
    assert second.ended() == third.ended() == ""
    assert made.wait()["metadata"]["uid"] == anew["metadata"]["uid"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"settings": {"queue": "speech"}},
            "was refused: ",
        ),
        (
            {"manifest": {"apiVersion": "v1", "kind": "Pod"}},
            'User "system:serviceaccount:vision:pipeline" cannot create resource "pods"',
        ),
        ({"manifest": {"apiVersion": "v1", "kind": "Secret"}}, "can't be read: secrets"),
        ({"manifest": {"apiVersion": "ray.io/v1", "kind": "RayJob"}}, "this cluster has no RayJob of ray.io/v1"),
        (
            {"manifest": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}},
            "a ClusterRole belongs to no namespace",
        ),
    ],
)
def test_what_is_refused_is_said_in_the_server_s_words(api: Api, given: dict[str, Any], words: str) -> None:
    error = Step(wish("uid-refused", **given), api).ended()
    assert words in error
    if "queue" in str(given.get("settings")):
        assert "speech" in error and "queue" in error


def test_a_file_of_settings_is_made_for_later_steps(server: ApiServer, api: Api) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"lr": "{lr}"}}
    step = Step(wish("uid-map", manifest=settings, settings={"lr": "0.1"}, output="data.lr"), api)
    assert step.ended() == "" and step.value == "0.1"


TRAINING = {"apiVersion": "example.org/v1", "kind": "Training", "spec": {"lr": "{lr}"}}


@pytest.fixture(scope="module")
def site_kind(server: ApiServer) -> str:
    """The site's own kind, which `pipelines.objects` of teams.yaml names; returns its plural."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "trainings.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": {"plural": "trainings", "kind": "Training"},
            "versions": [{
                "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": free},
            }],
        },
    }  # fmt: skip
    own = server.connection()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert own.call("POST", path, crd).ok
    wait(lambda: own.call("GET", f"/apis/example.org/v1/namespaces/{TEAM}/trainings").ok, "the kind")
    return "trainings"


def test_a_kind_that_the_site_names_is_made_and_waited_for(server: ApiServer, api: Api, site_kind: str) -> None:
    conditions = {"success_condition": "status.phase == Done", "failure_condition": "status.phase == Lost"}
    for uid, phase, error in (("uid-site", "Done", ""), ("uid-lost", "Lost", "failed: status.phase is Lost")):
        given = {"manifest": TRAINING, "settings": {"lr": "0.1"}, "output": "status.loss", **conditions}
        wanted = wish(uid, **given)
        step, made = Step(wanted, api), Made(server, wanted, site_kind, "example.org/v1")
        assert made.wait()["spec"] == {"lr": "0.1"}
        made.say({"phase": "Running"})
        made.say({"phase": phase, "loss": 0.5})
        assert error in step.ended() and bool(step.error) == bool(error)
        assert step.value == ("" if error else "0.5")


def test_refused_pods_end_the_step_and_take_the_object_along(server: ApiServer, api: Api) -> None:
    wanted = wish("uid-pods", **DONE)
    step, made = Step(wanted, api), Made(server, wanted)
    made.warn('Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged')
    made.collect_garbage()
    assert "gets nowhere: " in step.ended() and "violates PodSecurity" in step.error


def test_time_that_runs_out_takes_the_object_along(server: ApiServer, api: Api) -> None:
    wanted = wish("uid-late", timeout="1", **DONE)
    step, made = Step(wanted, api), Made(server, wanted)
    made.collect_garbage()
    assert "did not end within 1 s; status.succeeded is not there, wanted: status.succeeded > 0" in step.ended()
    assert made.find() is None


def test_an_object_of_somebody_else_is_left_alone(server: ApiServer, api: Api) -> None:
    named = {**JOB, "metadata": {"name": "mine"}}
    first = wish("uid-one", manifest=named)
    step, made = Step(first, api), Made(server, first)
    made.wait()
    error = Step(wish("uid-two", manifest=named, **DONE), api).ended()
    assert "Job mine is there already and is not this run's" in error
    changed = json.loads(json.dumps(named).replace("600", "500"))
    assert "is there already with other content" in Step(wish("uid-one", manifest=changed, **DONE), api).ended()
    times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:01Z"}
    ends = [{"type": kind, "status": "True", "reason": "Done"} for kind in ("SuccessCriteriaMet", "Complete")]
    made.say({**times, "conditions": ends, "succeeded": 1})
    assert step.ended() == "", "a job's own end is waited for where no condition is given"


def test_one_that_somebody_deletes_ends_the_step(server: ApiServer, api: Api) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"generateName": "scratch-"}}
    claim["spec"] = {
        "storageClassName": "trainyard-shared", "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    unwaited = Step(wish("uid-claim", manifest=claim, output="spec.storageClassName"), api)
    assert unwaited.ended() == "" and unwaited.value == "trainyard-shared"
    wanted = wish("uid-gone", **DONE)
    step, made = Step(wanted, api), Made(server, wanted)
    made.wait()
    time.sleep(1)
    assert server.connection().call("DELETE", made.path, {"propagationPolicy": "Background"}).ok
    assert f"{wanted.title} was deleted while it was waited for" in step.ended()
