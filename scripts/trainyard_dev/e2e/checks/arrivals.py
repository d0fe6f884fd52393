"""Manifests as published articles print them, by plain `kubectl apply` as a member: accepted, filled in, and run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from trainyard_dev.e2e import plain
from trainyard_dev.e2e.checks import computed, upstream
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.entry import GPUS, TENSORFLOW, TORCH, VOLUMES, check
from trainyard_dev.e2e.plain import WAIT_S, Objects
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.sites import stand_in

FOLDER = Path(__file__).parents[1] / "arrivals"
TITLES = {
    "arrivals.job": "a plain Job with one GPU runs unchanged, as in an article",
    "arrivals.pod": "a plain pod with two GPUs runs unchanged, as in an article",
    "arrivals.tfjob": "a TFJob with two parameter servers and four workers, without a chief, trains",
    "arrivals.workflow": "a plain Argo Workflow passes a value from step to step",
    "arrivals.large": "a Job with claims that requests too much waits with a reason, and runs when it requests less",
}


@check(*TITLES, each=True, shares={GPUS, VOLUMES}, images=(TORCH, TENSORFLOW, "pipeline", "argoexec"),
       inputs=(*upstream.CODE, "scripts/trainyard_dev/e2e/arrivals"))  # fmt: skip
def arrive(context: Context) -> None:
    """Each manifest in turn; its objects are removed, even after a failure."""
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
                plain.remove(context, objects)


def _job(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    plain.apply(context, objects, figures)
    plain.wait_for(context, "job/mnist-demo", plain.complete)
    pods = plain.pods(context, "app=mnist-demo")
    figures["nodes"] = [pod["spec"]["nodeName"] for pod in pods]
    require(set(figures["nodes"]) <= set(context.gpu_nodes), f"the job requested a GPU but ran on {figures['nodes']}")
    figures["log"] = plain.log(context, "job/mnist-demo")
    require(figures["log"].startswith("loss "), f"the job's log is {figures['log']!r}")


def _pod(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    plain.apply(context, objects, figures)
    plain.wait_for(context, "pod/gpu-pod", lambda pod: pod["status"].get("phase"))
    figures["devices"] = plain.log(context, "pod/gpu-pod")
    require(figures["devices"] == "2", f"the pod requested two GPUs but has {figures['devices']}")


def _tfjob(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    stand_in.make(context, TENSORFLOW)
    plain.apply(context, objects, figures)
    wait = patience(WAIT_S)
    while not (group := context.kubectl.find("podgroups.scheduling.volcano.sh", "dist-mnist", "-n", NAMESPACE)):
        wait(f"the operator created no PodGroup within {WAIT_S} s")
    figures["gang"] = group["spec"].get("minMember")
    require(figures["gang"] == 6, f"the gang has {figures['gang']} members, not 6")
    plain.wait_for(context, "tfjob/dist-mnist", plain.complete)
    result = plain.first_rank(context, plain.pods(context, "app=dist-mnist"))
    figures["loss"] = result["loss"]
    computed.check(context, result, "parameter-server", figures)
    require(result["world_size"] == 6, f"{result['world_size']} tasks trained together, not 6")


def _workflow(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    plain.apply(context, objects, figures)
    found = plain.wait_for(context, "workflow/output-parameter", lambda run: run.get("status", {}).get("phase"))
    nodes = found["status"].get("nodes", {}).values()
    said = [
        one["value"] for node in nodes for one in node.get("outputs", {}).get("parameters", []) if one["name"] == "said"
    ]
    figures["said"] = said
    require([one.strip() for one in said] == ["hello from a file"], f"the second step said {said}")


def _large(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    plain.apply(context, objects, figures)
    wait, waits = patience(WAIT_S), ""
    while "Insufficient" not in waits:  # at first it waits for its claims
        wait(f"after {WAIT_S} s the pod's reason for waiting is: {waits!r}")
        waits = "; ".join(filter(None, map(plain.waits, plain.pods(context, "app=large-training"))))
    figures["waits"] = waits
    job = objects[-1]
    plain.remove(context, [job])
    small = {"cpu": "50m", "memory": "64Mi"}
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": small, "limits": {"memory": "256Mi"}}
    plain.apply(context, [job], figures)
    plain.wait_for(context, "job/large-training", plain.complete)
    figures["log"] = plain.log(context, "job/large-training")
    require(figures["log"].endswith("trained"), f"the job's log is {figures['log']!r}")
    claims = context.kubectl.get("pvc", "-n", NAMESPACE)
    figures["class"] = {one["spec"].get("storageClassName") for one in claims if "arrivals-" in one["metadata"]["name"]}
    require(figures["class"] == {context.shared_class}, f"the claims have the class {figures['class']}")
    figures["class"] = context.shared_class
