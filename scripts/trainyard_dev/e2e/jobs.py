"""Submits a training job and watches its pods and PodGroup until it ends."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from trainyard.kinds import status
from trainyard.names import GANG, GPU
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.recorder import CheckError
from trainyard_dev.report.phases import job_spans

POLL_S = 1.0
GROUP_API = "scheduling.volcano.sh/v1beta1"


@dataclass
class Trace:
    """Observations of one job: the last state of each pod, its PodGroup while it existed, the events."""

    name: str
    job: dict[str, Any] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    most_gpus_partial: int = 0  # GPUs held at a poll while some but not all members were placed

    @property
    def group(self) -> dict[str, Any] | None:
        """The PodGroup of the job's pods."""
        names = {p["metadata"].get("annotations", {}).get(GANG) for p in self.pods.values()}
        return next((self.groups[name] for name in names if name in self.groups), None)

    def nodes(self) -> dict[str, str]:
        """Node by pod name, scheduled pods only."""
        return {name: pod["spec"]["nodeName"] for name, pod in self.pods.items() if pod["spec"].get("nodeName")}


def gpus(pod: dict[str, Any]) -> int:
    """GPUs that a pod requests."""
    return sum(int(c.get("resources", {}).get("requests", {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def resource(manifest: dict[str, Any]) -> str:
    """The resource name for kubectl, such as `pytorchjobs.kubeflow.org`."""
    return status.entry(manifest).resource


def outcome(job: dict[str, Any]) -> str:
    """`` while it runs, `succeeded`, or `failed: <message>`."""
    state, said = status.outcome(job)
    return "" if state == status.RUNNING else f"failed: {said}" if state == status.FAILED else state


def classes(context: Context) -> list[str]:
    """The first team's priority classes, the lowest first."""
    values = {one["name"]: int(one["value"]) for one in context.contract["priorityClasses"]}
    team = next(one for one in context.contract["teams"] if one["name"] == NAMESPACE)
    own = [name for name in team.get("priorityClasses") or values if name in values]
    return sorted(own, key=lambda name: values[name])


def gang(name: str, pods: int, spec: dict[str, Any], labels: dict[str, str] | None = None) -> dict[str, Any]:
    """A Volcano Job of the first team that starts all its pods together; the class is that of their spec."""
    task = {"name": "main", "replicas": pods, "template": {"metadata": {"labels": labels or {}}, "spec": spec}}
    whole = {"schedulerName": "volcano", "queue": NAMESPACE, "minAvailable": pods, "ttlSecondsAfterFinished": 600,
             "priorityClassName": spec["priorityClassName"], "tasks": [task]}  # fmt: skip
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


def of_one_master(name: str, spec: dict[str, Any], queue: str, seconds: int) -> dict[str, Any]:
    """A PyTorchJob of one pod with this deadline in seconds."""
    template = {"metadata": {"labels": {"app.kubernetes.io/name": name}}, "spec": spec}
    policy = {"activeDeadlineSeconds": seconds, "ttlSecondsAfterFinished": 60,
              "schedulingPolicy": {"queue": queue, "minAvailable": 1}}  # fmt: skip
    master = {"replicas": 1, "restartPolicy": "Never", "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"runPolicy": policy, "pytorchReplicaSpecs": {"Master": master}},
    }


def follow(context: Context, manifest: dict[str, Any], namespace: str, lane: str, timeout: float) -> Trace:
    """Creates the job as a member of the team and watches until it has ended; adds its spans to the timeline.

    Raises:
        CheckError: it failed or did not end in `timeout` seconds; the sentence has the end of a failed pod's log.
    """
    trace = Trace(manifest["metadata"]["name"])
    context.create(manifest, namespace)
    deadline = time.monotonic() + timeout
    try:
        while True:
            poll(context, trace, manifest, namespace)
            result = outcome(trace.job)
            if result.startswith("failed"):
                raise CheckError(
                    f"the job {trace.name} {result}; {last_words(context, trace.pods.values(), namespace)}"
                )
            if result:
                return trace
            if time.monotonic() > deadline:
                raise CheckError(f"the job {trace.name} did not end within {timeout:.0f} s; {_waiting(trace)}")
            time.sleep(POLL_S)
    finally:
        trace.events = context.kubectl.get("events", "-n", namespace)
        pods = list(trace.pods.values())
        context.recorder.spans += job_spans(
            lane, pods, podgroup=trace.group, job=trace.job, events=trace.events, until=time.time()
        )


def poll(context: Context, trace: Trace, manifest: dict[str, Any], namespace: str) -> None:
    """Poll once and update the trace."""
    kube, kind = context.kube, status.entry(manifest)
    pods = kube.path("v1", "pods", namespace=namespace)
    found = kube.list(pods, labelSelector=f"app.kubernetes.io/name={trace.name}")
    groups = kube.list(kube.path(GROUP_API, "podgroups", namespace=namespace))
    trace.pods |= {pod["metadata"]["name"]: pod for pod in found}
    trace.groups |= {group["metadata"]["name"]: group for group in groups}
    trace.job = kube.find(kube.path(kind.api_version, kind.plural, trace.name, namespace=namespace)) or trace.job
    group = trace.group
    members = int(group["spec"].get("minMember", 0)) if group else 0
    if 0 < len(trace.nodes()) < members:
        held = sum(gpus(trace.pods[name]) for name in trace.nodes())
        trace.most_gpus_partial = max(trace.most_gpus_partial, held)


def delete(context: Context, manifest: dict[str, Any], namespace: str) -> None:
    """Removes the job and waits until its pods are gone, so that its GPUs are free."""
    name = manifest["metadata"]["name"]
    context.kubectl("delete", resource(manifest), name, "-n", namespace, "--wait=true", "--timeout=60s", check=False)
    selector = f"app.kubernetes.io/name={name}"
    context.kubectl("wait", "pod", "-n", namespace, "-l", selector, "--for=delete", "--timeout=60s", check=False)


def last_words(context: Context, pods: Iterable[dict[str, Any]], namespace: str) -> str:
    """The last lines of the first failed pod."""
    for pod in pods:
        if pod["status"].get("phase") == "Failed":
            name = pod["metadata"]["name"]
            log = context.kubectl("logs", "-n", namespace, name, "--tail=3", check=False).stdout.strip()
            return f"{name} ended with: {' | '.join(log.splitlines()) or 'no output'}"
    return "none of its pods failed"


def _waiting(trace: Trace) -> str:
    if not trace.pods:
        return "it has no pod (see its events)"
    phases = {name: pod["status"].get("phase", "?") for name, pod in sorted(trace.pods.items())}
    return "pods: " + ", ".join(f"{name} {phase}" for name, phase in phases.items())
