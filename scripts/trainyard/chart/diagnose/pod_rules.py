"""Rules about single pods: image, volumes, start, end, node. Each yields sentences, or none."""

from collections.abc import Iterator

from trainyard.chart.diagnose import objects as f
from trainyard.chart.diagnose.objects import Collected, Object
from trainyard.observe import pods

PATIENCE = 120.0  # seconds that an init container may run
HOOK = "helm.sh/hook"


def evicted(c: Collected) -> Iterator[str]:
    for pod in c.sick_pods():
        status = pod.get("status") or {}
        if status.get("reason") == "Evicted":
            yield f"Pod {f.where(pod)} was evicted: {f.message(status)}"


def out_of_memory(c: Collected) -> Iterator[str]:
    for pod in c.sick_pods():
        for container in f.containers(pod):
            for last in (False, True):
                if f.state(container, "terminated", last=last).get("reason") == "OOMKilled":
                    limit = _limit(pod, str(container.get("name")), "memory")
                    has = f" at its limit of {limit}" if limit else ""
                    yield f"Container {container.get('name')} of {f.where(pod)} was killed for memory{has}."


def image(c: Collected) -> Iterator[str]:
    for pod in c.sick_pods():
        for container in f.containers(pod):
            waiting = f.state(container, "waiting")
            if waiting.get("reason") not in pods.IMAGE:
                continue
            node = (pod.get("spec") or {}).get("nodeName", "its node")
            messages = [f.message(ev) for ev in c.live_events("Failed") if f.target(ev) == f"Pod {f.key(pod)}"]
            why = next((text for text in messages if "pull image" in text), f.message(waiting))
            said = f": {why}" if why else ""
            yield f"Node {node} can't get the image {container.get('image')} for {f.key(pod)}{said}"


def bad_config(c: Collected) -> Iterator[str]:
    for pod in c.sick_pods():
        for container in f.containers(pod):
            waiting = f.state(container, "waiting")
            over = f.state(container, "terminated")
            found = waiting if waiting.get("reason") in pods.CONFIG else over
            if found.get("reason") in pods.CONFIG:
                yield f"Container {container.get('name')} of {f.where(pod)} can't start: {f.message(found)}"


def mount(c: Collected) -> Iterator[str]:
    for event in _while_starting(c, "FailedMount", "FailedAttachVolume", "FailedMapVolume"):
        yield f"A volume of {f.target(event)} can't be mounted: {f.message(event)}"


def sandbox(c: Collected) -> Iterator[str]:
    for event in _while_starting(c, "FailedCreatePodSandBox", "NetworkNotReady"):
        yield f"The network of {f.target(event)} can't be set up: {f.message(event)}"


def device_admission(c: Collected) -> Iterator[str]:
    for pod in c.sick_pods():
        status = pod.get("status") or {}
        if status.get("reason") == "UnexpectedAdmissionError":
            yield f"The kubelet could not give pod {f.where(pod)} its devices: {f.message(status)}"


def hook_failed(c: Collected) -> Iterator[str]:
    for pod in hook_pods(c):
        if f.is_well(pod):
            continue
        for container in f.containers(pod):
            over = f.state(container, "terminated") or f.state(container, "terminated", last=True)
            if over and over.get("exitCode", 0) != 0:
                said = c.last_line(pod, str(container.get("name"))) or "it wrote nothing"
                yield f"The install hook {f.key(pod)} failed with exit {over['exitCode']}: {said}"


def crash_loop(c: Collected) -> Iterator[str]:
    return _crashed(c, looping=True)


def pod_failed(c: Collected) -> Iterator[str]:
    return _crashed(c, looping=False)


def init_stuck(c: Collected) -> Iterator[str]:
    for pod in c.sick_pods():
        inits = (pod.get("spec") or {}).get("initContainers") or []
        sidecars = {entry.get("name") for entry in inits if entry.get("restartPolicy") == "Always"}
        for container in (pod.get("status") or {}).get("initContainerStatuses") or []:
            running, label = f.state(container, "running"), str(container.get("name"))
            if running and label not in sidecars and c.age(running.get("startedAt")) > PATIENCE:
                said = c.last_line(pod, label) or "it wrote nothing"
                yield f"Pod {f.where(pod)} still waits in its init container {label}; its last line: {said}"


def probe(c: Collected) -> Iterator[str]:
    for event in c.live_events("Unhealthy"):
        yield f"{f.target(event)} does not become ready: {f.message(event)}"


def unschedulable(c: Collected) -> Iterator[str]:
    for pod in c.sick_pods():
        found = pods.condition(pod, "PodScheduled")
        if found.get("status") == "False":
            said = [f.message(ev) for ev in c.live_events("FailedScheduling") if f.key(pod) in f.target(ev)]
            detail = max(said, key=len, default="")
            yield f"Pod {f.key(pod)} can't be scheduled: {detail or f.message(found) or found.get('reason')}"
    for group in c.podgroups:
        found = pods.condition(group, "Unschedulable")
        now = str((group.get("status") or {}).get("phase", ""))
        if (
            found.get("status") == "True"
            and now in ("Pending", "Inqueue", "Unknown")
            and not c.is_expected(f.name(group))
        ):
            yield f"The gang {f.key(group)} can't be scheduled: {f.message(found)}"


def hook_pods(c: Collected) -> list[Object]:
    """Pods of the installation's hook Jobs: the Job or the pod has Helm's annotation."""
    jobs = {f.key(job) for job in c.jobs if HOOK in ((job.get("metadata") or {}).get("annotations") or {})}
    result = []
    for pod in c.pods:
        meta = pod.get("metadata") or {}
        made_by = [one for one in meta.get("ownerReferences") or [] if one.get("kind") == "Job"]
        owners = {f"{f.namespace(pod)}/{one.get('name')}" for one in made_by}
        if owners & jobs or HOOK in (meta.get("annotations") or {}):
            result.append(pod)
    return result


def _while_starting(c: Collected, *reasons: str) -> Iterator[Object]:
    """Events that keep a pod from starting, without those of pods that have started since."""
    started = {f"Pod {f.key(pod)}" for pod in c.pods if not f.is_starting(pod)}
    return (event for event in c.live_events(*reasons) if f.target(event) not in started)


def _crashed(c: Collected, *, looping: bool) -> Iterator[str]:
    for pod in c.sick_pods():
        for container in f.containers(pod):
            back_off = f.state(container, "waiting").get("reason") == pods.CRASHING
            over = f.state(container, "terminated") or (f.state(container, "terminated", last=True) if back_off else {})
            code = over.get("exitCode", 0)
            if back_off != looping or (not looping and (not over or code == 0)):
                continue
            label = str(container.get("name"))
            said = c.last_line(pod, label) or f.message(over) or "it wrote nothing"
            restarts = container.get("restartCount", 0)
            verb = f"keeps crashing ({restarts} restarts, exit {code})" if looping else f"ended with exit {code}"
            yield f"Container {label} of {f.where(pod)} {verb}; its last line: {said}"


def _limit(pod: Object, container: str, resource: str) -> str:
    spec = pod.get("spec") or {}
    for entry in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        if entry.get("name") == container:
            return str(((entry.get("resources") or {}).get("limits") or {}).get(resource, ""))
    return ""
