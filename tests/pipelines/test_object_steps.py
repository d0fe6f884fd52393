"""Steps that make objects, against the real API server: rights of the pipelines' account, refusals, waiting, adoption.
What controllers would write is written by the tests."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from stepping import TEAM, Made, Step

from trainyard.pipelines.steps import objects
from trainyard.pipelines.steps.jobs import Jobs
from trainyard.pipelines.steps.run import Run
from trainyard.pipelines.steps.wish import ObjectRequest
from trainyard_agent.api import Api
from trainyard_dev.apiserver import ApiServer
from waiting import wait

Start = Callable[..., tuple[Step, Made]]
Heard = Callable[[str], str]
CLOSED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = {
    "restartPolicy": "Never", "schedulerName": "volcano", "automountServiceAccountToken": False,
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [{
        "name": "main", "image": "site.invalid/trainyard/pipeline:0.4.0", "command": ["true"],
        "securityContext": CLOSED,
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


def wish(uid: str, **given: Any) -> ObjectRequest:
    env = {
        "TRAINYARD_RUN": "made-x1", "TRAINYARD_RUN_UID": uid, "TRAINYARD_TEAM": TEAM,
        "TRAINYARD_STEP": json.dumps({"task": "make"}),
    }  # fmt: skip
    return ObjectRequest.of({"manifest": JOB, "settings": {"queue": TEAM}, **given}, Run.of(env))


@pytest.fixture
def start(server: ApiServer, api: Api) -> Start:
    """`start(uid, *where, **given)`: a step of a run with that uid, and what it makes."""

    def go(uid: str, *where: str, **given: Any) -> tuple[Step, Made]:
        wanted = wish(uid, **given)
        return Step(lambda: objects.run(wanted, Jobs(api, TEAM))), Made(server, wanted.title, *where)

    return go


def test_a_job_is_made_waited_for_and_hands_a_value_on(start: Start, heard: Heard) -> None:
    step, made = start("uid-made", output="status.succeeded", **DONE)
    job = made.wait()
    assert job["metadata"]["ownerReferences"][0]["uid"] == "uid-made"
    assert job["spec"]["template"]["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": TEAM}
    said = heard("waits: status.succeeded is not there, wanted: status.succeeded > 0")
    made.say({"active": 1})
    made.say({"succeeded": 1, "startTime": "2026-01-01T00:00:00Z"})
    assert step.ended() == ""
    assert step.value == "1"
    assert f"created {made.title} in {TEAM}" in said
    heard(f"{made.title} meets its condition")


def test_a_repeated_step_takes_it_over_and_a_failed_one_is_made_anew(start: Start, heard: Heard) -> None:
    first, made = start("uid-again", **DONE)
    uid = made.wait()["metadata"]["uid"]
    made.say({"failed": 1})
    assert f"{made.title} failed: status.failed is 1" in first.ended()
    second, _ = start("uid-again", **DONE)
    made.collect_garbage()
    anew = made.anew(uid)
    third, _ = start("uid-again", **DONE)
    heard("of an earlier attempt is there: adopted")
    made.say({"succeeded": 1})
    assert second.ended() == third.ended() == ""
    assert made.wait()["metadata"]["uid"] == anew["metadata"]["uid"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"settings": {"queue": "speech"}}, "was refused: "),
        (
            {"manifest": {"apiVersion": "v1", "kind": "Pod"}},
            'User "system:serviceaccount:vision:pipeline" cannot create resource "pods"',
        ),
        ({"manifest": {"apiVersion": "v1", "kind": "Secret"}}, "can't be read: secrets"),
        ({"manifest": {"apiVersion": "ray.io/v1", "kind": "RayJob"}}, "this cluster has no RayJob of ray.io/v1"),
        (
            {"manifest": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}},
            "a ClusterRole is cluster-scoped",
        ),
    ],
)
def test_what_is_refused_is_said_in_the_server_s_words(start: Start, given: dict[str, Any], words: str) -> None:
    error = start("uid-refused", **given)[0].ended()
    assert words in error
    if "queue" in str(given.get("settings")):
        assert "speech" in error and "queue" in error


def test_a_file_of_settings_is_made_for_later_steps(start: Start) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"lr": "{lr}"}}
    step, _ = start("uid-map", manifest=settings, settings={"lr": "0.1"}, output="data.lr")
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


def test_a_kind_that_the_site_names_is_made_and_waited_for(start: Start, site_kind: str) -> None:
    conditions = {"success_condition": "status.phase == Done", "failure_condition": "status.phase == Lost"}
    for uid, phase, error in (("uid-site", "Done", ""), ("uid-lost", "Lost", "failed: status.phase is Lost")):
        given = {"manifest": TRAINING, "settings": {"lr": "0.1"}, "output": "status.loss", **conditions}
        step, made = start(uid, "example.org/v1", site_kind, **given)
        assert made.wait()["spec"] == {"lr": "0.1"}
        made.say({"phase": "Running"})
        made.say({"phase": phase, "loss": 0.5})
        assert error in step.ended() and bool(step.error) == bool(error)
        assert step.value == ("" if error else "0.5")


def test_refused_pods_end_the_step_and_take_the_object_along(start: Start) -> None:
    step, made = start("uid-pods", **DONE)
    made.warn(
        "FailedCreate", 'Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged'
    )
    made.collect_garbage()
    assert "makes no progress: " in step.ended() and "violates PodSecurity" in step.error


def test_time_that_runs_out_takes_the_object_along(start: Start) -> None:
    step, made = start("uid-late", timeout="1", **DONE)
    made.collect_garbage()
    assert "did not end within 1 s; status.succeeded is not there, wanted: status.succeeded > 0" in step.ended()
    assert made.find() is None


def test_an_object_of_somebody_else_is_left_alone(start: Start) -> None:
    named = {**JOB, "metadata": {"name": "mine"}}
    step, made = start("uid-one", manifest=named)
    made.wait()
    error = start("uid-two", manifest=named, **DONE)[0].ended()
    assert "Job mine already exists and belongs to another run" in error
    changed = json.loads(json.dumps(named).replace("600", "500"))
    assert "already exists with other content" in start("uid-one", manifest=changed, **DONE)[0].ended()
    times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:01Z"}
    ends = [{"type": kind, "status": "True", "reason": "Done"} for kind in ("SuccessCriteriaMet", "Complete")]
    made.say({**times, "conditions": ends, "succeeded": 1})
    assert step.ended() == "", "a job's own end is waited for where no condition is given"


def test_one_that_somebody_deletes_ends_the_step(start: Start, heard: Heard) -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"generateName": "scratch-"}}
    claim["spec"] = {
        "storageClassName": "trainyard-shared", "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
    }  # fmt: skip
    unwaited, _ = start("uid-claim", manifest=claim, output="spec.storageClassName")
    assert unwaited.ended() == "" and unwaited.value == "trainyard-shared"
    step, made = start("uid-gone", **DONE)
    made.wait()
    heard("waits: ")
    assert made.own.call("DELETE", made.path, {"propagationPolicy": "Background"}).ok
    assert f"{made.title} was deleted during the wait" in step.ended()
