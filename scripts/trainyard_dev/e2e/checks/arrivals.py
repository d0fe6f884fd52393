"""Manifests as articles of the field print them, by plain `kubectl apply` as a member: taken, filled in, and run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from trainyard.contract.read import contract
from trainyard.policy import fill
from trainyard_dev.e2e.context import NAMESPACE, Context, member
from trainyard_dev.e2e.recorder import CheckError, require

FOLDER = Path(__file__).parents[1] / "arrivals"
RUN_S, WAIT_S, POLL_S = 240, 60, 2.0
TITLES = {
    "arrivals.job": "a plain Job with one GPU runs as an article has it",
    "arrivals.pod": "a plain pod with two GPUs runs as an article has it",
    "arrivals.tfjob": "a TFJob of two parameter servers and four workers, without chief",
    "arrivals.workflow": "a plain Argo Workflow hands a value from step to step",
    "arrivals.large": "a Job with claims that asks for too much waits with its reason, and runs with less",
}
Objects = list[dict[str, Any]]


def arrive(context: Context) -> None:
    """Each manifest in turn; what it made is removed, also after a failure."""
    runs: dict[str, Callable[[Context, Objects, dict[str, Any]], None]] = {
        "arrivals.job": _job, "arrivals.pod": _pod, "arrivals.tfjob": _tfjob, "arrivals.workflow": _workflow,
        "arrivals.large": _large,
    }  # fmt: skip
    for check_id, run in runs.items():
        if not context.wants(check_id):
            continue
        with context.recorder.check(check_id, TITLES[check_id]) as figures:
            text = (FOLDER / f"{check_id.partition('.')[2]}.yaml").read_text()
            objects = [json.loads(json.dumps(one)) for one in yaml.safe_load_all(text)]
            try:
                run(context, objects, figures)
            finally:
                _remove(context, objects)


def _job(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    _apply(context, objects, figures)
    _await(context, "job/mnist-demo", _complete)
    pods = _pods(context, "app=mnist-demo")
    figures["nodes"] = [pod["spec"]["nodeName"] for pod in pods]
    require(set(figures["nodes"]) <= set(context.gpu_nodes), f"it asked for a GPU and ran on {figures['nodes']}")
    figures["log"] = _log(context, "job/mnist-demo")
    require(figures["log"].startswith("loss "), f"the job's log is {figures['log']!r}")


def _pod(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    _apply(context, objects, figures)
    _await(context, "pod/gpu-pod", lambda pod: pod["status"].get("phase"), ends=("Succeeded", "Failed"))
    figures["devices"] = _log(context, "pod/gpu-pod")
    require(figures["devices"] == "2", f"it asked for two GPUs and has {figures['devices']}")


def _tfjob(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    _apply(context, objects, figures)
    end = time.monotonic() + WAIT_S
    while not (group := context.kubectl.find("podgroups.scheduling.volcano.sh", "dist-mnist", "-n", NAMESPACE)):
        require(time.monotonic() < end, f"the operator made no PodGroup in {WAIT_S} s")
        time.sleep(POLL_S)
    figures["gang"] = group["spec"].get("minMember")
    require(figures["gang"] == 6, f"the gang has {figures['gang']} members, due are 6")
    _await(context, "tfjob/dist-mnist", _complete)
    figures["log"] = _log(context, "pod/dist-mnist-worker-0")
    due = "worker 0 of 4, 2 parameter servers answer"
    require(figures["log"] == due, f"the first worker says {figures['log']!r}, due is {due!r}")


def _workflow(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    _apply(context, objects, figures)
    ended = ("Succeeded", "Failed", "Error")
    found = _await(context, "workflow/output-parameter", lambda run: run.get("status", {}).get("phase"), ends=ended)
    nodes = found["status"].get("nodes", {}).values()
    said = [
        one["value"] for node in nodes for one in node.get("outputs", {}).get("parameters", []) if one["name"] == "said"
    ]
    figures["said"] = said
    require([one.strip() for one in said] == ["hello from a file"], f"the second step said {said}")


def _large(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    _apply(context, objects, figures)
    end = time.monotonic() + WAIT_S
    waits = ""
    while "Insufficient" not in waits:  # at first it waits for its claims
        require(time.monotonic() < end, f"after {WAIT_S} s the pod says of its waiting: {waits!r}")
        time.sleep(POLL_S)
        waits = "; ".join(filter(None, map(_waits, _pods(context, "app=large-training"))))
    figures["waits"] = waits
    job = objects[-1]
    _remove(context, [job])
    small = {"cpu": "50m", "memory": "64Mi"}
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": small, "limits": {"memory": "256Mi"}}
    _apply(context, [job], figures)
    _await(context, "job/large-training", _complete)
    figures["log"] = _log(context, "job/large-training")
    require(figures["log"].endswith("trained"), f"the job's log is {figures['log']!r}")
    claims = context.kubectl.get("pvc", "-n", NAMESPACE)
    figures["class"] = {one["spec"].get("storageClassName") for one in claims if "arrivals-" in one["metadata"]["name"]}
    require(figures["class"] == {context.shared_class}, f"the claims are of {figures['class']}")
    figures["class"] = context.shared_class


def _apply(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    """`kubectl apply` as a member; where the API server fills nothing in, of what `trainyard adopt` makes of it."""
    served = context.kubectl("get", "mutatingadmissionpolicies", f"{fill.PREFIX}pods", check=False).returncode == 0
    figures["filled_in_by"] = "API server" if served else "trainyard adopt"
    sent = objects
    if not served:
        site = contract(context.contract, "the cluster")
        sent = [fill.filled(one, site, site.team(NAMESPACE)).obj for one in objects]
    listed = {"apiVersion": "v1", "kind": "List", "items": sent}
    who = member(NAMESPACE)
    answer = context.kubectl(*who, "apply", "-n", NAMESPACE, "-f", "-", check=False, input=json.dumps(listed))
    require(answer.returncode == 0, f"it was refused: {' '.join(answer.stderr.split())[:500]}")
    if served:
        for one in objects:
            found = context.kubectl.get(_resource(one), one["metadata"]["name"], "-n", NAMESPACE)[0]
            told = found["metadata"].get("annotations", {}).get(fill.TOLD, "")
            require(told, f"{one['kind']} {one['metadata']['name']} does not say what was filled in")
            figures[f"filled_{one['metadata']['name']}"] = told


def _resource(obj: dict[str, Any]) -> str:
    return f"{obj['kind'].lower()}.{obj['apiVersion'].partition('/')[0]}" if "/" in obj["apiVersion"] else obj["kind"]


def _remove(context: Context, objects: Objects) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    flags = ("--ignore-not-found", "--timeout=60s", "--cascade=foreground")
    context.kubectl("delete", "-n", NAMESPACE, "-f", "-", *flags, check=False, input=listed)


def _await(
    context: Context,
    name: str,
    state: Callable[[dict[str, Any]], str | None],
    ends: tuple[str, ...] = ("Complete", "Succeeded", "Failed"),
) -> dict[str, Any]:
    """The object once it has ended well. CheckError when it fails, or does neither in time."""
    end = time.monotonic() + RUN_S
    while True:
        found = context.kubectl.get(*name.split("/"), "-n", NAMESPACE)[0]
        now = state(found) or ""
        if now in ends:
            require(now in ("Complete", "Succeeded"), f"{name} ended {now}: {json.dumps(found.get('status'))[:400]}")
            return found
        if time.monotonic() > end:
            waits = [reason for pod in context.kubectl.get("pods", "-n", NAMESPACE) if (reason := _waits(pod))]
            raise CheckError(
                f"{name} is {now or 'not begun'} after {RUN_S} s; {'; '.join(waits[:2]) or 'no pod waits'}"
            )
        time.sleep(POLL_S)


def _complete(job: dict[str, Any]) -> str | None:
    conditions = job.get("status", {}).get("conditions") or []
    held = {one["type"] for one in conditions if one["status"] == "True"}
    return next((one for one in ("Failed", "Complete", "Succeeded") if one in held), None)


def _pods(context: Context, selector: str) -> list[dict[str, Any]]:
    return context.kubectl.get("pods", "-n", NAMESPACE, "-l", selector)


def _waits(pod: dict[str, Any]) -> str:
    """Why a pod has no node, in the scheduler's words."""
    conditions = pod["status"].get("conditions") or []
    return next(
        (c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), ""
    )


def _log(context: Context, name: str) -> str:
    return context.kubectl("logs", "-n", NAMESPACE, name).stdout.strip()
