"""Workflows for a bench of Argo's controllers: lines of steps, and who says that their pods have ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.apiserver import ApiServer, Client

ARGO = "/apis/argoproj.io/v1alpha1"
WORKFLOW = "workflows.argoproj.io/workflow"
MERGE = "application/merge-patch+json"
LATE_S = 300.0
NOW = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}


def line(name: str, steps: int) -> dict[str, Any]:
    """A workflow of so many steps, one after the other, with a pod each."""
    order = [[{"name": f"step-{number}", "template": "step"}] for number in range(steps)]
    container = {"image": "example.org/step:1", "command": ["true"], "resources": {"requests": {"cpu": "10m"}}}
    spec = {"entrypoint": "line", "serviceAccountName": "pipeline", "activeDeadlineSeconds": 3600,
            "templates": [{"name": "line", "steps": order}, {"name": "step", "container": container}]}  # fmt: skip
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec}


def finished(name: str, steps: int) -> dict[str, Any]:
    """Such a workflow as it stands after its end, until its time to live is over."""
    made = line(name, steps)
    made["metadata"]["labels"] = {"workflows.argoproj.io/completed": "true", "workflows.argoproj.io/phase": "Succeeded"}
    made["spec"]["ttlStrategy"] = {"secondsAfterCompletion": 604800}
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    done = {"phase": "Succeeded", "startedAt": now, "finishedAt": now, "progress": "1/1"}
    nodes = {
        f"{name}-{number}": {
            "id": f"{name}-{number}", "name": f"{name}[{number}].step-{number}", "displayName": f"step-{number}",
            "type": "Pod", "templateName": "step", "templateScope": f"local/{name}", "boundaryID": name,
            "resourcesDuration": {"cpu": 1, "memory": 1}, "outputs": {"exitCode": "0"}, "hostNodeName": "node-1",
            "children": [f"{name}-{number + 1}"], **done,
        }
        for number in range(steps)
    }  # fmt: skip
    return made | {"status": {**done, "nodes": nodes}}


def run(server: ApiServer, teams: Sequence[str], name: str, steps: int, late_s: float = LATE_S) -> list[float]:
    """Seconds from submission to end of one line in each team, all submitted together.

    Raises:
        TrainyardError: one is refused, does not succeed, or not in time.
    """
    begun, took = {}, {}
    for team in teams:
        begun[team] = monotonic()
        answer = server.call("POST", f"{ARGO}/namespaces/{team}/workflows", line(name, steps))
        if not answer.ok:
            raise TrainyardError(f"the workflow of {team} is refused: {answer.message}")
    path = f"{ARGO}/workflows?fieldSelector=metadata.name%3D{name}"
    while len(took) < len(teams):
        for one in server.call("GET", path).body["items"]:
            team, phase = one["metadata"]["namespace"], (one.get("status") or {}).get("phase", "")
            if phase in ("Failed", "Error"):
                raise TrainyardError(f"the workflow of {team} ended {phase}: {one['status'].get('message', '')}")
            if phase == "Succeeded":
                took.setdefault(team, monotonic() - begun[team])
        if monotonic() - min(begun.values()) > late_s:
            raise TrainyardError(f"{len(teams) - len(took)} of {len(teams)} workflows did not end in {late_s:.0f} s")
        sleep(0.05)
    return list(took.values())


def remove(server: ApiServer, teams: Sequence[str]) -> None:
    """Workflows and what they left."""
    for team in teams:
        for path in (f"{ARGO}/namespaces/{team}/workflows", f"{ARGO}/namespaces/{team}/workflowtaskresults",
                     f"/api/v1/namespaces/{team}/pods"):  # fmt: skip
            server.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **NOW})


@contextmanager
def played(server: ApiServer) -> Iterator[None]:
    """Every pod of a workflow ends well as soon as it is there, as long as the body runs."""
    over = threading.Event()
    follower = threading.Thread(target=_follow, args=(server, over), daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()


def _follow(server: ApiServer, over: threading.Event) -> None:
    client = server.connection()
    for event in server.watch("/api/v1/pods"):
        if over.is_set():
            return
        pod = event["object"]
        waits = (pod.get("status") or {}).get("phase") == "Pending"
        if event["type"] == "ADDED" and waits and WORKFLOW in pod["metadata"].get("labels", {}):
            _end(client, pod)


def _end(client: Client, pod: dict[str, Any]) -> None:
    """What Argo's container `wait` and kubelet do at the end of a pod."""
    meta = pod["metadata"]
    variables = next(one["env"] for one in pod["spec"]["containers"] if one["name"] == "main")
    node = next(one["value"] for one in variables if one["name"] == "ARGO_NODE_ID")
    labels = {WORKFLOW: meta["labels"][WORKFLOW], "workflows.argoproj.io/report-outputs-completed": "true"}
    result = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult"}
    result |= {"metadata": {"name": node, "labels": labels}}
    client.call("POST", f"{ARGO}/namespaces/{meta['namespace']}/workflowtaskresults", result)
    ended = {"exitCode": 0, "reason": "Completed", "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    containers = [
        {"name": name, "ready": False, "restartCount": 0, "image": "", "imageID": "", "state": {"terminated": ended}}
        for name in ("main", "wait")
    ]
    status = {"status": {"phase": "Succeeded", "containerStatuses": containers}}
    client.call("PATCH", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status", status, content=MERGE)
