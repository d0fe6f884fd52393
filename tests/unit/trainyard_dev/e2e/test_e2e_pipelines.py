"""The end-to-end checks of pipelines: how a run is read, and a check's message when it isn't as expected."""

from types import SimpleNamespace
from typing import Any

import pytest
from held import Held

from trainyard_dev.e2e import runs
from trainyard_dev.e2e.checks import pipelines
from trainyard_dev.e2e.recorder import CheckError

NAME = "mnist-x"


def node(name: str, phase: str = "Succeeded", **more: Any) -> dict[str, Any]:
    times = {"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z"}
    names = {"id": f"{NAME}-{name}", "name": f"{NAME}.{name}", "displayName": name, "templateName": name}
    return {**names, **times, "type": "Pod", "phase": phase, **more}


def seen(*nodes: dict[str, Any], phase: str = "Succeeded") -> runs.Seen:
    """A run of these nodes, with a pod for each that had one."""
    top = {"id": NAME, "name": NAME, "displayName": NAME, "type": "DAG", "phase": phase, "templateName": "root"}
    workflow = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": NAME, "namespace": "vision", "uid": "1"},
        "spec": {"entrypoint": "root", "templates": []},
        "status": {"phase": phase, "nodes": {one["id"]: one for one in (top, *nodes)}},
    }  # fmt: skip
    found = runs.Seen(NAME, "vision", workflow, queues={"vision"})
    pod = {"spec": {"schedulerName": "volcano", "serviceAccountName": "pipeline"}}
    found.pods = {one["id"]: pod for one in nodes if not (one.get("memoizationStatus") or {}).get("hit")}
    return found


HIT = {"memoizationStatus": {"hit": True, "key": "k", "cacheName": "c"}}


def test_steps_from_the_cache_are_told_from_those_that_ran() -> None:
    found = seen(node("prepare", **HIT), node("train"))
    assert (found.cached, found.ran) == (["prepare"], ["train"])


def test_outputs_and_failures_are_those_of_steps() -> None:
    value = {"parameters": [{"name": "Output", "value": "0.9"}]}
    found = seen(
        node("evaluate", outputs=value), node("keep", "Failed", message="Error (exit code 1): no room"), phase="Failed"
    )
    assert found.output("evaluate") == "0.9"
    assert found.output("elsewhere") == ""
    assert found.why_failed == "keep: no room (exit code 1)"


def test_each_step_has_one_pod_in_its_teams_queue() -> None:
    figures: dict[str, Any] = {}
    pipelines._placed(seen(node("prepare"), node("train")), figures)
    assert (figures["steps"], figures["pods"], figures["queue"]) == (2, 2, "vision")


def test_a_pod_too_many_is_reported() -> None:
    found = seen(node("prepare"))
    found.pods["driver"] = found.pods[f"{NAME}-prepare"]
    with pytest.raises(CheckError, match="the steps prepare ran in the pods driver, mnist-x-prepare"):
        pipelines._placed(found, {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedulerName": "default-scheduler"}, "was scheduled by default-scheduler"),
        ({"serviceAccountName": "default"}, "ran as default"),
    ],
)
def test_a_pod_that_went_past_the_platform_is_reported(change: dict[str, str], words: str) -> None:
    found = seen(node("prepare"))
    [pod] = found.pods.values()
    pod["spec"] |= change
    with pytest.raises(CheckError, match=words):
        pipelines._placed(found, {})


def test_a_foreign_queue_is_reported() -> None:
    found = seen(node("prepare"))
    found.queues = {"speech"}
    with pytest.raises(CheckError, match=r"its pods were in the queues \['speech'\]"):
        pipelines._placed(found, {})


def test_one_look_finds_what_belongs_to_the_run() -> None:
    def thing(kind: str, name: str, **labels: str) -> dict[str, Any]:
        return {"kind": kind, "metadata": {"name": name, "uid": name, "labels": labels}, "spec": {"queue": "vision"}}

    answer = [
        thing("Workflow", "other"), seen().workflow, thing("PodGroup", "podgroup-1"),
        thing("Pod", "mine", **{runs.OF_RUN: NAME}), thing("Pod", "theirs", **{runs.OF_RUN: "other"}),
        thing("PyTorchJob", "job", **{runs.RUN: NAME}), thing("PyTorchJob", "stray"),
    ]  # fmt: skip
    context: Any = SimpleNamespace(kube=Held(*answer))
    found = runs.poll(context, runs.Seen(NAME, "vision"))
    assert (sorted(found.pods), sorted(found.jobs), found.queues, found.phase) == (
        ["mine"], ["job"], {"vision"}, "Succeeded")  # fmt: skip
