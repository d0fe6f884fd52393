"""Pressure on services: training that fills the nodes, pods that would displace others, and refused pods."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainyard.kinds.spec import amount_of
from trainyard.names import GPU
from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.context import GPU_TOLERATION, NAMESPACE, Context, member
from trainyard_dev.e2e.jobs import classes
from trainyard_dev.e2e.recorder import had, require, until

LABEL = "e2e/services"  # label of training's pods: cpu or gpu
CLASS = "e2e-displacing"
GIVES, TAKES = "e2e-gives-way", "e2e-takes-its-place"
JOBS = {"cpu": "e2e-fills-cpu", "gpu": "e2e-fills-gpus"}
TOO_LARGE, PLAIN, CLASSED = "e2e-too-large", "e2e-plain", "e2e-classed"  # pods that are admitted and must wait
TRAINING = "jobs.batch.volcano.sh"
SPARE = 0.02  # cores that are left free, because of rounding
START_S, LOAD_S = 60.0, 240.0


def control(context: Context, shop: str) -> str:
    """Kubernetes' behaviour without rules: a pod of a preempting class takes the place of one without a class."""
    half = _free(context, context.cpu_node) - SPARE
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": CLASS}, "value": 1000}
    try:
        context.kubectl.apply([kind, _sized(context, GIVES, half)], shop)
        until(lambda: context.placed(GIVES, shop), START_S, f"{GIVES} gets no node")
        context.kubectl.apply([_sized(context, TAKES, half, priorityClassName=CLASS)], shop)
        until(lambda: context.placed(TAKES, shop), START_S, f"{TAKES} did not replace {GIVES}")
        until(lambda: context.kubectl.find("pod", GIVES, "-n", shop) is None, START_S, f"{GIVES} stays")
        told = [one["message"] for one in context.kubectl.get("events", "-n", shop) if one["reason"] == "Preempted"]
        return f"{GIVES}: {had(told, f'no event says that {GIVES} was displaced')[0]}"
    finally:
        context.kubectl("delete", "pod", GIVES, TAKES, "-n", shop, "--now", "--ignore-not-found", check=False)
        context.kubectl("delete", "priorityclass", CLASS, "--ignore-not-found", check=False)


def refused(context: Context, shop: str, node: str) -> dict[str, str]:
    """Pods that would displace others, or run on a business node: the refusal of each."""
    platform = context.contract["platformPriorityClass"]["name"]
    every = max(context.contract["priorityClasses"], key=lambda one: int(one["value"]))["name"]
    wants: dict[str, tuple[str, dict[str, Any], str]] = {
        "training class, another scheduler": (
            NAMESPACE, {"priorityClassName": classes(context)[-1], "schedulerName": "another"}, "would preempt"),
        "the platform's class": (NAMESPACE, {"priorityClassName": platform}, f"priority class {platform} is "),
        "a node of business": (NAMESPACE, {"nodeSelector": {"kubernetes.io/hostname": node}}, "are not for teams"),
        "training class, elsewhere": (shop, {"priorityClassName": every}, "is for training in teams' namespaces"),
        "the platform's class, elsewhere": (shop, {"priorityClassName": platform}, "is for the platform's own pods"),
    }  # fmt: skip
    told = {}
    for what, (space, change, says) in wants.items():
        pod = context.pod("e2e-refused", "sleep 60")
        pod["spec"] |= change
        who = member(NAMESPACE) if space == NAMESPACE else []
        asked = context.kubectl(*who, "create", "-n", space, "-f", "-", input=json.dumps(pod), check=False)
        if not asked.returncode:
            context.kubectl("delete", "pod", "e2e-refused", "-n", space, "--now", "--wait=false", check=False)
        said = (asked.stderr or asked.stdout).strip()
        require(asked.returncode and says in said, f"{what}: expected a refusal with {says}, got {said[:300]}")
        told[what] = said.partition("denied request: ")[2][:200]
    return told


@contextmanager
def training(context: Context, script: str, window: float) -> Iterator[dict[str, Any]]:
    """As a member: jobs of the team's highest class that request all GPUs, and all CPU of the team's pool."""
    counts = {name: count for name, count in context.gpus.items() if count}
    most = min(counts.values(), default=0)
    cores = _free(context, context.cpu_node) - SPARE
    made = [
        _job(context, "cpu", script, window, 2, {"cpu": f"{int(500 * cores)}m"}),
        _job(context, "gpu", script, window, len(counts), {"cpu": "100m", GPU: str(most)}),
    ]
    try:
        for job in made:
            context.create(job)
        due = 2 + len(counts)
        until(lambda: _at_work(context) == due, LOAD_S, f"{_at_work(context)} of {due} training pods are running")
        yield {
            "class": classes(context)[-1],
            "pods": due,
            "cores asked for": round(cores, 2),
            "gpus": most * len(counts),
        }
    finally:
        context.kubectl("delete", TRAINING, *JOBS.values(), TOO_LARGE, "-n", NAMESPACE, "--ignore-not-found",
                        "--timeout=90s", timeout=100, check=False)  # fmt: skip
        context.kubectl("delete", "pod", PLAIN, CLASSED, "-n", NAMESPACE, "--now", "--ignore-not-found", check=False)


def wait(context: Context) -> list[str]:
    """Creates pods that are admitted and don't fit: a gang of the highest class, and pods for Kubernetes' scheduler.

    One of these has that class: if the API server fills in, it gets the platform's scheduler, else it is refused.
    """
    gang = _job(context, "cpu", "", 0, 2, {"cpu": "900m"}) | {"metadata": {"name": TOO_LARGE}}
    plain, classed = _sized(context, PLAIN, 1.5), _sized(context, CLASSED, 1.5)
    classed["spec"] |= {"priorityClassName": classes(context)[-1], "schedulerName": "default-scheduler"}
    for pod in (plain, classed):
        pod["spec"]["nodeSelector"] = dict(_labels(context, "cpu"))
        if _filled(context):
            del pod["spec"]["nodeSelector"]
    for one in (gang, plain, *([classed] if _filled(context) else [])):
        context.create(one)
    return [PLAIN, *([CLASSED] if _filled(context) else []), *(f"{TOO_LARGE}-main-{number}" for number in range(2))]


def still_waiting(context: Context, names: list[str]) -> list[str]:
    """Checks that they still have no node; a gang's pods may not exist yet."""
    found = {name: context.kubectl.find("pod", name, "-n", NAMESPACE) for name in names}
    moved = [name for name, pod in found.items() if pod and pod["spec"].get("nodeName")]
    require(not moved, f"were scheduled without free space: {', '.join(moved)}")
    gone = [name for name in (PLAIN, CLASSED) if name in found and not found[name]]
    require(not gone, f"gone: {', '.join(gone)}")
    if pod := found.get(CLASSED):
        by = pod["spec"]["schedulerName"]
        require(by == context.contract["scheduler"]["name"], f"{CLASSED}, whose class preempts, is scheduled by {by}")
    return names


def _sized(context: Context, name: str, cores: float, **more: str) -> dict[str, Any]:
    """A pod that requests so many cores of the CPU pool's node and uses none."""
    pod = context.pod(name, "sleep 900", node=context.cpu_node)
    pod["spec"] |= more
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{int(1000 * cores)}m", "memory": "16Mi"}}
    return pod


def _job(context: Context, kind: str, script: str, window: float, pods: int, amounts: dict[str, str]) -> dict[str, Any]:
    """A Volcano Job whose pods train in every second window."""
    amounts = amounts | {"memory": "512Mi"}
    limits = {"cpu": "2", "memory": "2Gi"} | {key: value for key, value in amounts.items() if key == GPU}
    spec = context.pod(JOBS[kind], "", image=context.image("trainer-torch"))["spec"]
    spec |= {"activeDeadlineSeconds": 900, "priorityClassName": classes(context)[-1]}
    command = ["python3", "-c", script, str(window)]
    spec["containers"][0] |= {"command": command, "resources": {"requests": amounts, "limits": limits}}
    if kind == "gpu":
        spec["tolerations"] = [GPU_TOLERATION]
    if not _filled(context):
        spec["nodeSelector"] = dict(_labels(context, kind))
    job = jobs.gang(JOBS[kind], pods, spec, {LABEL: kind})
    job["spec"]["maxRetry"] = 1
    return job


def _labels(context: Context, kind: str) -> dict[str, str]:
    """Labels of the first pool of a kind."""
    pools: list[dict[str, Any]] = context.contract["nodePools"]
    return next(pool["labels"] for pool in pools if pool["kind"] == kind)


def _filled(context: Context) -> bool:
    """Whether the API server fills in what manifests omit."""
    return bool(context.contract["policies"]["fill"]["served"])


def _free(context: Context, node: str) -> float:
    """Cores of a node that no pod has requested."""
    has = amount_of(context.kubectl.get("node", node)[0]["status"]["allocatable"]["cpu"])
    pods = context.kubectl.get("pods", "-A", "--field-selector", f"spec.nodeName={node}")
    for pod in pods:
        if pod["status"]["phase"] in ("Succeeded", "Failed"):
            continue
        plain = [_cores(one) for one in pod["spec"]["containers"]]
        first = [_cores(one) for one in pod["spec"].get("initContainers", [])]
        has -= max(sum(plain), *first, 0.0)
    return has


def _cores(container: dict[str, Any]) -> float:
    return amount_of(container.get("resources", {}).get("requests", {}).get("cpu", "0"))


def _at_work(context: Context) -> int:
    """How many training pods are running."""
    pods = [pod["metadata"]["name"] for pod in context.kubectl.get("pods", "-n", NAMESPACE, "-l", LABEL)
            if pod["status"]["phase"] == "Running"]  # fmt: skip
    return sum("ready" in context.kubectl("logs", "-n", NAMESPACE, name, check=False).stdout for name in pods)
