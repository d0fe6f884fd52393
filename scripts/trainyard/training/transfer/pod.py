"""The pod between a member's machine and the store, created for a transfer and deleted afterwards."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds import TeamConfig
from trainyard.kinds.environment import store_environment
from trainyard.kinds.pods import CLOSED, NO_GPU, USER
from trainyard.kube import Kube
from trainyard.observe import events
from trainyard.observe import pods as seen
from trainyard.training.transfer.store import Store

Object = dict[str, Any]
LABEL = "trainyard.io/transfer"
IDLE_S = 120  # the pod ends by itself if its creator was killed, and is then deleted with its Job
DEADLINE_S = 6 * 3600
START_S = 120.0
POLL_INTERVAL_S = 0.4
ENVIRONMENT: list[Object] = [{"name": "HOME", "value": "/tmp"}, NO_GPU]


def manifest(team_config: TeamConfig, name: str, claim: str = "") -> Object:
    """A Job of one pod that waits for operations. It is scheduled at once, regardless of the team's queue.

    Args:
        claim: a claim of the team to mount at `/<claim>`.
    """
    mounts: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}]
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]
    if claim:
        mounts.append({"name": "files", "mountPath": f"/{claim}"})
        volumes.append({"name": "files", "persistentVolumeClaim": {"claimName": claim}})
    args = ["objects", "idle", f"--seconds={IDLE_S}"]
    one = store_container(team_config, "transfer", args, mounts)
    return job(team_config, "transfer", LABEL, name, [one], volumes, DEADLINE_S)


def store_container(team_config: TeamConfig, name: str, args: list[str], mounts: list[Object]) -> Object:
    """A container of the platform's own image, with the team's keys to the store."""
    return {
        "name": name,
        "image": team_config.platform_image,
        "args": args,
        "env": [*map(dict, ENVIRONMENT), *store_environment(team_config.secret)],
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {**CLOSED, "readOnlyRootFilesystem": True},
        "volumeMounts": mounts,
    }


def job(
    team_config: TeamConfig,
    title: str,
    label: str,
    name: str,
    containers: list[Object],
    volumes: list[Object],
    seconds: int,
    **security: Any,
) -> Object:
    """A Job of one helper pod for a command, which is deleted with the command.

    Uses Kubernetes' own scheduler without a priority class, or it would preempt pods of other namespaces.

    Args:
        label: label of the pod with the Job's name, by which it is found.
        seconds: time after which it ends by itself.
        security: further settings of the pod's security context.
    """
    inner: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": dict(team_config.team.pool("", gpus=False).labels),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
            **security,
        },
        "containers": containers,
        "volumes": volumes,
    }
    if team_config.pull_secrets:
        inner["imagePullSecrets"] = [dict(one) for one in team_config.pull_secrets]
    labels = {"app.kubernetes.io/name": title, "app.kubernetes.io/managed-by": "trainyard", label: name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": team_config.team.name, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": seconds,
            "ttlSecondsAfterFinished": 0,
            "template": {"metadata": {"labels": labels}, "spec": inner},
        },
    }


@contextmanager
def open_store(kube: Kube, team_config: TeamConfig, claim: str = "") -> Iterator[Store]:
    """Yields the team's store as long as the block runs; the pod is deleted afterwards, even after Ctrl-C.

    Args:
        claim: a claim of the team; its files are places that begin with `/<claim>`.

    Raises:
        TrainyardError: the pod was rejected, or did not start; the message tells why.
    """
    name = f"trainyard-transfer-{secrets.token_hex(4)}"
    with running(kube, manifest(team_config, name, claim), LABEL) as pod:
        yield Store(kube, pod)


@contextmanager
def running(kube: Kube, job: Object, label: str) -> Iterator[str]:
    """Yields the name of a Job's pod as long as the block runs; deletes both afterwards. Raises TrainyardError."""
    name = job["metadata"]["name"]
    path = f"{kube.path_of(job)}/{name}"
    kube.create(job)
    try:
        yield _started(kube, name, label)
    finally:
        kube.delete(path)


def _started(kube: Kube, name: str, label: str) -> str:
    """Waits for a Job's pod, which is labelled with the Job's name; returns the pod's name. Raises TrainyardError."""
    end = time.monotonic() + START_S
    while True:
        pods = kube.list(kube.path("v1", "pods"), labelSelector=f"{label}={name}")
        if pods and (pods[0].get("status") or {}).get("phase") == "Running":
            return str(pods[0]["metadata"]["name"])
        reason = _waits(pods[0]) if pods else _refused(kube, name)
        hopeless = bool(reason) and (not pods or reason[0] in seen.STUCK)
        if hopeless or time.monotonic() > end:
            what = f"the pod that reaches the object store did not start: {': '.join(reason) or 'no reason is given'}"
            where, hint = f"job {name}", f"see the events: kubectl get events -n {kube.namespace}"
            raise TrainyardError(what, where=where, hint=hint)
        time.sleep(POLL_INTERVAL_S)


def _waits(pod: Object) -> tuple[str, ...]:
    """Reason and message why a pod isn't running yet."""
    for one in seen.containers(pod):
        waiting = seen.state(one, "waiting")
        if waiting.get("reason"):
            return tuple(filter(None, (waiting["reason"], waiting.get("message", ""))))
    if said := seen.unplaced(pod):
        return tuple(filter(None, (said.get("reason", ""), said.get("message", ""))))
    return ()


def _refused(kube: Kube, name: str) -> tuple[str, ...]:
    """Admission's error about the pod."""
    selector = f"involvedObject.name={name},involvedObject.kind=Job,type=Warning"
    for event in kube.list(kube.path("v1", "events"), fieldSelector=selector):
        return (str(event.get("reason", "")), events.text(event))
    return ()
