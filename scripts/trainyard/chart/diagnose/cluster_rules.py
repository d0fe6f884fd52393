"""Rules about nodes, admission, storage, queues and jobs. Each yields sentences, or none."""

import re
from collections.abc import Iterator

from trainyard.chart.diagnose import objects as f
from trainyard.chart.diagnose.objects import Collected, Object
from trainyard.chart.diagnose.pod_rules import hook_pods
from trainyard.names import GPU
from trainyard.observe import pods

CREATE_EVENTS = (
    "FailedCreate",
    "FailedCreatePod",
    "FailedCreateService",
    "FailedSync",
    "PodCreateFailed",
    "ExecuteFailed",
)


def api_down(c: Collected) -> Iterator[str]:
    if c.nodes or c.pods:
        return
    for problem in c.problems:
        if re.search(r"connection refused|i/o timeout|no such host|Unable to connect|EOF|TLS handshake", problem):
            yield f"The Kubernetes API server does not answer: {f.shorten(problem, 200)}"


def disk_pressure(c: Collected) -> Iterator[str]:
    yield from _pressure(c, "DiskPressure", "has run out of disk")
    for event in c.live_events("FreeDiskSpaceFailed", "ImageGCFailed", "EvictionThresholdMet"):
        if "disk" in f.message(event).lower() or event.get("reason") == "FreeDiskSpaceFailed":
            yield f"{f.target(event)} is short of disk: {f.message(event)}"
    for pod in c.sick_pods():
        for container in f.containers(pod):
            text = f.message(f.state(container, "waiting")) or f.message(f.state(container, "terminated"))
            if "no space left on device" in text:
                yield f"No space is left on the disk under {f.where(pod)}: {text}"


def memory_pressure(c: Collected) -> Iterator[str]:
    return _pressure(c, "MemoryPressure", "is short of memory")


def node_not_ready(c: Collected) -> Iterator[str]:
    for node in c.nodes:
        found = pods.condition(node, "Ready")
        if found and found.get("status") != "True" and not c.is_expected(f.name(node)):
            yield f"Node {f.name(node)} is not ready: {f.message(found) or found.get('reason', 'no reason given')}"


def webhook_silent(c: Collected) -> Iterator[str]:
    texts = [f.message(event) for event in c.live_events(*CREATE_EVENTS, "FailedUpdate", "FailedPlacement")]
    texts += [f.shorten(str(check.get("reason", "")), 400) for check in c.checks if check.get("status") == "failed"]
    texts += [c.last_line(pod, str(k.get("name"))) for pod in hook_pods(c) for k in f.containers(pod)]
    for text in texts:
        found = re.search(r'failed calling webhook "([^"]+)"', text)
        if found:
            yield f"The admission webhook {found[1]} does not answer: {text}"


def pod_security(c: Collected) -> Iterator[str]:
    return _create_refused(c, r"violates PodSecurity", "Pod Security refuses the pods of {target}: {message}")


def quota(c: Collected) -> Iterator[str]:
    return _create_refused(c, r"exceeded quota|failed quota", "The quota is used up for {target}: {message}")


def policy(c: Collected) -> Iterator[str]:
    pattern = r"ValidatingAdmissionPolicy|denied the request|denied request"
    return _create_refused(c, pattern, "An admission policy refuses the pods of {target}: {message}")


def create_failed(c: Collected) -> Iterator[str]:
    return _create_refused(c, r".", "The pods of {target} can't be created: {message}")


def no_gpus(c: Collected) -> Iterator[str]:
    for node in c.nodes:
        labels = (node.get("metadata") or {}).get("labels") or {}
        if labels.get("trainyard.io/pool") != "gpu" or c.is_expected(f.name(node)):
            continue
        has = int(((node.get("status") or {}).get("capacity") or {}).get(GPU, 0))
        if has == 0:
            said = _plugin(c, node)
            yield f"Node {f.name(node)} is in the GPU pool, but the device plugin has registered 0 GPUs on it.{said}"


def unhealthy_gpus(c: Collected) -> Iterator[str]:
    for node in c.nodes:
        status = node.get("status") or {}
        has, usable = (int((status.get(part) or {}).get(GPU, 0)) for part in ("capacity", "allocatable"))
        if usable < has and not c.is_expected(f.name(node)):
            yield f"Node {f.name(node)} has {has - usable} unhealthy of {has} GPUs, so jobs that need them wait."


def claim_pending(c: Collected) -> Iterator[str]:
    for event in c.live_events("ProvisioningFailed"):
        if any(f.key(claim) in f.target(event) and _phase(claim) != "Bound" for claim in c.claims):
            yield f"No volume can be provisioned for {f.target(event)}: {f.message(event)}"
    for claim in c.claims:
        if _phase(claim) == "Lost":
            yield f"The volume of claim {f.key(claim)} is lost."
        waits = any(f.key(claim) in f.target(event) for event in c.live_events("WaitForFirstConsumer"))
        if _phase(claim) == "Pending" and not waits:
            kind = (claim.get("spec") or {}).get("storageClassName", "none")
            yield f"The claim {f.key(claim)} is not bound; no volume of storage class {kind} was provisioned."


def queue_closed(c: Collected) -> Iterator[str]:
    for queue in c.queues:
        now = str((queue.get("status") or {}).get("state", ""))
        if now in ("Closed", "Closing"):
            yield f"The queue {f.name(queue)} is {now.lower()}, so its jobs are not scheduled."


def job_failed(c: Collected) -> Iterator[str]:
    for job in c.jobs:
        found = pods.condition(job, "Failed")
        if found.get("status") == "True" and not c.is_expected(f.name(job)):
            yield f"{job.get('kind', 'Job')} {f.key(job)} failed: {f.message(found) or found.get('reason')}"
        phase = ((job.get("status") or {}).get("state") or {}) if job.get("kind") == "Job" else {}
        if (
            isinstance(phase, dict)
            and phase.get("phase") in ("Failed", "Aborted", "Terminated")
            and not c.is_expected(f.name(job))
        ):
            yield f"Volcano Job {f.key(job)} is {phase['phase'].lower()}: {f.message(phase) or 'no message'}"


def accuracy(c: Collected) -> Iterator[str]:
    for check in c.checks:
        figures = check.get("figures") or {}
        reached, bar = figures.get("accuracy"), figures.get("bar")
        if (
            check.get("status") != "failed"
            or not isinstance(reached, (int, float))
            or not isinstance(bar, (int, float))
        ):
            continue
        if reached < bar:
            yield f"{check.get('id')} reached accuracy {reached:.3f}, below the required {bar:g}."


def _pressure(c: Collected, condition: str, what: str) -> Iterator[str]:
    for node in c.nodes:
        found = pods.condition(node, condition)
        if found.get("status") == "True":
            yield f"Node {f.name(node)} {what}: {f.message(found)}"


def _phase(item: Object) -> str:
    return str((item.get("status") or {}).get("phase", ""))


def _create_refused(c: Collected, pattern: str, sentence: str) -> Iterator[str]:
    for event in c.live_events(*CREATE_EVENTS):
        if re.search(pattern, f.message(event)):
            yield sentence.format(target=f.target(event), message=f.message(event))


def _plugin(c: Collected, node: Object) -> str:
    for pod in c.pods:
        if "device-plugin" in f.name(pod) and (pod.get("spec") or {}).get("nodeName") == f.name(node):
            for container in f.containers(pod):
                said = c.last_line(pod, str(container.get("name")))
                if said:
                    return f" The plugin's last line: {said}"
            return f" Look at the log of {f.key(pod)}."
    return " No device plugin pod runs there: look at its DaemonSet, the taint and the toleration."
