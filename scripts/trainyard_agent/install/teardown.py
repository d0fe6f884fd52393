"""Before an uninstallation: stops what would hang without the platform, removes what only it can, prints what stays.

A volume whose NFS server is gone can't be unmounted, so its pod never ends. Queues can't be deleted while Volcano's
webhooks exist without Volcano. Data, claims, Secrets, namespaces of teams and CRDs stay.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from trainyard_agent.api import Api, ApiError, delete, found, needed
from trainyard_agent.clock import Clock
from trainyard_agent.install.queues import QUEUES
from trainyard_agent.say import PlatformError, say

PODGROUPS = "scheduling.volcano.sh/v1beta1/podgroups"
ENDED = {"Succeeded", "Failed", "Complete", "Completed", "Aborted", "Terminated"}
WORKFLOW_ENDED = {"Succeeded", "Failed", "Error"}
STUCK_S = 60.0  # after the end of a pod's grace period, which deletionTimestamp includes
BACKGROUND = {"propagationPolicy": "Background"}  # deletes an object with everything that it owns


def listed(api: Api, path: str, query: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """Every object of a resource; none if the API server has no such resource. Raises PlatformError."""
    with needed(f"{path} can't be listed"):
        return (found(api, path, query) or {}).get("items", [])


def path_of(resource: str, item: dict[str, Any]) -> str:
    """API path of an object of `<group>/<version>/<resource>`; the core group is `core/v1/...`."""
    group, version, plural = resource.split("/")
    root = f"/api/{version}" if group == "core" else f"/apis/{group}/{version}"
    meta = item["metadata"]
    space = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
    return f"{root}{space}/{plural}/{meta['name']}"


def ended(job: dict[str, Any]) -> bool:
    """Whether a training job or a workflow has ended. The record of a finished run is data."""
    status = job.get("status") or {}
    if job.get("apiVersion", "").startswith("argoproj.io/"):  # its conditions describe pods
        return status.get("phase") in WORKFLOW_ENDED
    conditions = [c["type"] for c in status.get("conditions") or [] if c.get("status") == "True"]
    return bool(ENDED & {*conditions, (status.get("state") or {}).get("phase", "")})


def stop_training(api: Api, resources: list[str]) -> None:
    """Delete every unfinished training job: its operator and its queue are removed next. Raises PlatformError.

    Args:
        resources: the operators' kinds, as `<group>/<version>/<resource>`.
    """
    for resource in resources:
        for job in listed(api, f"/apis/{resource}"):
            if ended(job) or job["metadata"].get("deletionTimestamp"):
                continue
            said = delete(api, path_of(resource, job), **BACKGROUND)
            name = f"{resource.rsplit('/', 1)[1]} {job['metadata']['namespace']}/{job['metadata']['name']}"
            if said:
                raise PlatformError(f"{name} can't be stopped: {said}")
            say(f"stopped {name}")


def served_claims(volumes: list[dict[str, Any]], server: str) -> set[tuple[str, str]]:
    """Namespace and name of each claim whose volume is on the NFS server."""
    refs = [v["spec"].get("claimRef") for v in volumes if (v["spec"].get("nfs") or {}).get("server") == server]
    return {(ref["namespace"], ref["name"]) for ref in refs if ref}


def mounts(spec: dict[str, Any], namespace: str, server: str, claims: set[tuple[str, str]]) -> bool:
    """Whether a pod of this spec mounts the server."""
    for volume in spec.get("volumes") or []:
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if (volume.get("nfs") or {}).get("server") == server or (namespace, claim) in claims:
            return True
    return False


def owner(pod: dict[str, Any]) -> tuple[str, str, str]:
    """apiVersion, kind and name of a pod's controller; empty strings without one."""
    for ref in pod["metadata"].get("ownerReferences") or []:
        if ref.get("controller"):
            return ref["apiVersion"], ref["kind"], ref["name"]
    return "", "", ""


def close_own(api: Api, plan: dict[str, Any], claims: set[tuple[str, str]]) -> dict[str, int]:
    """Scale the release's own Deployments that mount the server to 0, since Helm removes the server at the same time.

    Returns:
        the former number of pods of each Deployment scaled now, by its path.
    """
    closed: dict[str, int] = {}
    space = plan["namespace"]
    root = f"/apis/apps/v1/namespaces/{space}/deployments"
    for item in listed(api, root, {"labelSelector": f"app.kubernetes.io/instance={plan['release']}"}):
        if item["spec"]["replicas"] and mounts(item["spec"]["template"]["spec"], space, plan["nfsServer"], claims):
            name = item["metadata"]["name"]
            with needed(f"deployment {name} can't be scaled to none"):
                api.merge(f"{root}/{name}", {"spec": {"replicas": 0}}, manager="trainyard-teardown")
            closed[f"{root}/{name}"] = item["spec"]["replicas"]
            say(f"stopped deployment {space}/{name}")
    return closed


def open_own(api: Api, closed: dict[str, int]) -> None:
    """Scale the Deployments up again: the release stays, and the next upgrade finds what it would apply."""
    for path, replicas in closed.items():
        try:
            api.merge(path, {"spec": {"replicas": replicas}}, manager="trainyard-teardown")
        except ApiError as error:
            say(f"deployment {path.rpartition('/')[2]} stays scaled to none: {error.message}")


def end_pod(api: Api, pod: dict[str, Any]) -> str:
    """Delete a pod for good, by way of its Job if it has one; "" or why it stays."""
    meta = pod["metadata"]
    version, kind, name = owner(pod)
    if meta.get("deletionTimestamp"):
        return ""
    if version == "batch/v1" and kind == "Job":
        said = delete(api, f"/apis/batch/v1/namespaces/{meta['namespace']}/jobs/{name}", **BACKGROUND)
    elif version.startswith(("kubeflow.org/", "batch.volcano.sh/")) or not kind:
        said = delete(api, path_of("core/v1/pods", pod), **BACKGROUND)
    else:
        return f"it belongs to {kind} {name}; scale that to none"
    if not said:
        say(f"stopped pod {meta['namespace']}/{meta['name']}: it mounts the NFS server")
    return said


def stuck(pod: dict[str, Any]) -> bool:
    """Whether a pod has outlived its end by a minute: it hangs in a mount, and waiting for it is useless."""
    gone = pod["metadata"].get("deletionTimestamp")
    return bool(gone) and time.time() - datetime.fromisoformat(gone).timestamp() > STUCK_S


def still_mounted(api: Api, plan: dict[str, Any], closed: dict[str, int]) -> str:
    """The pods that still mount the release's NFS server, as a reason to wait; "" if none do. Deletes each of them.

    Args:
        closed: receives what `close_own` has closed.
    """
    claims = served_claims(listed(api, "/api/v1/persistentvolumes"), plan["nfsServer"])
    closed |= close_own(api, plan, claims)
    left, hang = [], []
    for pod in listed(api, "/api/v1/pods"):
        meta = pod["metadata"]
        phase = (pod.get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed") or not mounts(pod["spec"], meta["namespace"], plan["nfsServer"], claims):
            continue
        name = f"{meta['namespace']}/{meta['name']}"
        if stuck(pod):
            hang.append(name)
            continue
        own = meta["namespace"] == plan["namespace"] and owner(pod)[1] == "ReplicaSet"
        reason = "" if own else end_pod(api, pod)
        left.append(name + (f" ({reason})" if reason else ""))
    if not left and hang:
        say(f"not waited for, as they should have ended long ago (see their nodes): {', '.join(hang)}")
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    return f"these pods still mount the NFS server: {', '.join(left[:5])}{more}" if left else ""


def queues_gone(api: Api, label: str) -> str:
    """The reason why a queue that setup made is still there; "" once all are gone. Parents go after their children."""
    reasons = []
    items = listed(api, QUEUES, {"labelSelector": label})
    parents = {(item["spec"] or {}).get("parent") for item in items}
    for item in items:
        name = item["metadata"]["name"]
        if name in parents:
            reasons.append(f"queue {name} has queues below it")
            continue
        said = delete(api, f"{QUEUES}/{name}", **BACKGROUND)
        if said:
            reasons.append(f"queue {name}: {said}")
        else:
            say(f"removed queue {name}")
    return "; ".join(reasons)


def drop_hooks(api: Api, plan: dict[str, Any]) -> None:
    """Delete Jobs and pods of earlier hooks and tests, which Helm leaves; Helm itself removes this hook's own."""
    root, query = f"/namespaces/{plan['namespace']}", {"labelSelector": f"app.kubernetes.io/instance={plan['release']}"}
    for resource, path in (("batch/v1/jobs", f"/apis/batch/v1{root}/jobs"), ("core/v1/pods", f"/api/v1{root}/pods")):
        for item in listed(api, path, query):
            hook = item["metadata"].get("annotations", {}).get("helm.sh/hook", "")
            if hook and "pre-delete" not in hook:
                delete(api, path_of(resource, item), **BACKGROUND)


def say_what_stays(api: Api, plan: dict[str, Any]) -> None:
    """Print one line for each kind of object that an uninstallation leaves."""
    teams = [item["metadata"]["name"] for item in listed(api, "/api/v1/namespaces", {"labelSelector": plan["label"]})]
    if teams:
        say(f"stays: namespaces of teams: {', '.join(sorted(teams))}")
    volumes = {v["metadata"]["name"] for v in listed(api, "/api/v1/persistentvolumes")
               if (v["spec"].get("nfs") or {}).get("server") == plan["nfsServer"]}  # fmt: skip
    for item in listed(api, "/api/v1/persistentvolumeclaims"):
        space = item["metadata"]["namespace"]
        if space in (plan["namespace"], *teams) or item["spec"].get("volumeName") in volumes:
            size = item["spec"]["resources"]["requests"].get("storage", "?")
            say(f"stays: claim {space}/{item['metadata']['name']}, {size}")
    say("stays: CRDs, finished jobs, Secrets with generated keys, labels and taints of nodes")


def run(plan_file: str, timeout: float) -> int:
    """Run all steps in order, within `timeout` seconds. Raises PlatformError with the reason; no Helm object is gone
    then, and the uninstallation can be tried again."""
    plan = json.loads(Path(plan_file).read_text())
    clock, api, closed = Clock(timeout), Api(), dict[str, int]()
    stop_training(api, plan["training"])
    try:
        if plan["nfsServer"]:
            clock.wait("the end of pods that mount the NFS server", lambda: still_mounted(api, plan, closed))
        if plan["volcano"]:
            clock.wait("the end of queues", lambda: queues_gone(api, plan["label"]))
    except PlatformError:
        open_own(api, closed)
        raise
    # Gangs are useless without their scheduler; a job that is submitted again gets a new one.
    for item in listed(api, f"/apis/{PODGROUPS}") if plan["volcano"] else ():
        delete(api, path_of(PODGROUPS, item), **BACKGROUND)
    drop_hooks(api, plan)
    say_what_stays(api, plan)
    return 0
