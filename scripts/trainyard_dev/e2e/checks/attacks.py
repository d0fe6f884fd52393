"""A member of one team tries to take what belongs to another or to the platform; each attempt has to be refused.

The attempts are real requests, not dry runs: one that is let through leaves an object, which the check removes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainyard.names import GPU
from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.context import GPU_TOLERATION, NAMESPACE, OTHER, SYSTEM, Context, member
from trainyard_dev.e2e.recorder import require
from trainyard_dev.versions import load

GUARDS = {
    "ValidatingAdmissionPolicy": "admission policy",
    "violates PodSecurity": "Pod Security",
    "exceeded quota": "quota",
    "cannot ": "RBAC",
}


@dataclass(frozen=True)
class Attempt:
    """One attempt by a member of the team OTHER.

    Args:
        args: of kubectl; `objects` go to its standard input.
        guard: who has to refuse, a value of GUARDS.
        says: words that the refusal must have, so that it is refused for this reason and no other.
    """

    id: str
    tried: str
    args: tuple[str, ...]
    guard: str
    says: tuple[str, ...]
    objects: tuple[dict[str, Any], ...] = field(default=())


def pod(
    context: Context, name: str, change: Callable[[dict[str, Any]], object] = lambda pod: None, queue: str | None = None
) -> dict[str, Any]:
    """A pod that every policy allows, with a GPU where a queue is named; then changed."""
    made = context.pod(f"attack-{name}", "true", queue=queue)
    change(made)
    return made


def job(queue: str, gpus: int = 1) -> dict[str, Any]:
    """A PyTorchJob with one master."""
    quantities = {"cpu": "100m", "memory": "64Mi", GPU: gpus}
    container = {"name": "pytorch", "image": load().image("base"), "command": ["true"]}
    container["resources"] = {"requests": quantities, "limits": copy.copy(quantities)}
    spec = {"containers": [container], "automountServiceAccountToken": False, "schedulerName": "volcano"}
    return jobs.of_one_master("attack-job", spec, queue, 600)


def group(queue: str) -> dict[str, Any]:
    """A PodGroup in a queue."""
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    return kind | {"metadata": {"name": "attack-group"}, "spec": {"queue": queue, "minMember": 1}}


def attempts(context: Context) -> list[Attempt]:
    """Every attempt that the API server has to refuse."""
    spec = lambda **values: lambda made: made["spec"].update(values)  # noqa: E731
    first = lambda **values: lambda made: made["spec"]["containers"][0].update(values)  # noqa: E731
    nfs = {"name": "v", "nfs": {"server": "10.96.0.49", "path": "/shared"}}
    theft = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "trainyard-minio-root", "key": "root-password"}}}
    subject = {"kind": "Group", "name": f"{OTHER}-members", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "attack-binding"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [subject],
    }
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "attack-volume"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "nfs": nfs["nfs"] | {"path": f"/shared/{NAMESPACE}"},
        },
    }
    policy, create, denied = "admission policy", ("create", "-f", "-"), "RBAC"
    low = max(context.contract["priorityClasses"], key=lambda one: one["value"])["name"]
    limit = next(team for team in context.contract["teams"] if team["name"] == OTHER)

    def apply(id: str, tried: str, guard: str, says: tuple[str, ...], *objects: dict[str, Any]) -> Attempt:
        return Attempt(id, tried, create, guard, says, objects)

    def ask(id: str, tried: str, *args: str) -> Attempt:
        return Attempt(id, tried, args, denied, ("cannot",))

    return [
        apply("queue-job", f"a job in the queue of {NAMESPACE}", policy, ("queue", NAMESPACE), job(NAMESPACE)),
        apply(
            "queue-pod",
            f"a GPU pod that names the queue of {NAMESPACE}",
            policy,
            ("queue", NAMESPACE),
            pod(context, "queue", queue=NAMESPACE),
        ),
        apply("queue-group", f"a PodGroup in the queue of {NAMESPACE}", denied, ("podgroups",), group(NAMESPACE)),
        apply("priority", "a priority class that the team doesn't have", policy, ("priority", low),
              pod(context, "priority", spec(priorityClassName=low))),
        apply("gpus-job", "more GPUs in one job than the team may have", policy, ("GPU",),
              job(OTHER, gpus=int(limit["maxGpusPerJob"]) + 1)),
        apply("toleration", "a pod without GPU that tolerates the GPU nodes' taint", policy, ("tolerat",),
              pod(context, "toleration", spec(tolerations=[GPU_TOLERATION]))),
        apply("toleration-all", "a pod that tolerates every taint", policy, ("tolerat",),
              pod(context, "wildcard", spec(tolerations=[{"operator": "Exists"}]))),
        apply("node-name", "a pod put on a GPU node past the scheduler", policy, ("nodeName",),
              pod(context, "node", spec(nodeName=context.gpu_nodes[0]))),
        apply("visible-devices", "GPUs by an environment variable instead of a request", policy, ("NVIDIA_VISIBLE",),
              pod(context, "env", first(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]))),
        apply("host-path", "a folder of the node as volume", "Pod Security", ("hostPath",),
              pod(context, "host", spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]))),
        apply("nfs-volume", "the NFS server's export as volume, past the claims", "Pod Security", ("nfs",),
              pod(context, "nfs", spec(volumes=[nfs]))),
        apply("privileged", "a privileged container", "Pod Security", ("privileged",),
              pod(context, "root", first(securityContext={"privileged": True}))),
        apply("root-secret", "the object store's root password in a pod's environment", policy, ("root",),
              pod(context, "secret", first(env=[theft]))),
        apply("token", "a pod that asks for an API token", policy, ("automount",),
              pod(context, "token", spec(automountServiceAccountToken=True))),
        apply("image", "an image of anywhere, by a tag that can move", policy, ("image",),
              pod(context, "image", first(image="registry.example.com/someone/miner:latest"))),
        apply("volume-create", f"a volume on the folder of {NAMESPACE}", denied, ("persistentvolumes",), volume),
        apply("role-binding", "the role admin for oneself", denied, ("rolebindings", "cannot"), binding),
        ask("secret", f"the S3 key of {NAMESPACE}", "get", "secret", "trainyard-s3", "-n", NAMESPACE),
        ask("platform-secret", "the object store's root password", "get", "secret", "trainyard-minio-root", "-n",
            SYSTEM),
        ask("pods", f"the list of the pods of {NAMESPACE}", "get", "pods", "-n", NAMESPACE),
        ask("job-elsewhere", f"deleting the jobs of {NAMESPACE}", "delete", "pytorchjobs", "--all", "-n", NAMESPACE),
        ask("service-account", f"a token of the service account of {NAMESPACE}", "create", "token", "training", "-n",
            NAMESPACE),
        ask("own-token", "a token of the team's own service account", "create", "token", "training", "-n", OTHER),
        ask("namespace", "more queues by the annotation of the own namespace", "annotate", "namespace", OTHER,
            "--overwrite", f"trainyard.io/queues={OTHER},{NAMESPACE}"),
        ask("quota", "a larger quota", "patch", "resourcequota", "team", "-n", OTHER, "--type=merge", "-p",
            '{"spec":{"hard":{"pods":"9999"}}}'),
        ask("network-policy", "no network policy", "delete", "networkpolicy", "default-deny", "-n", OTHER),
        ask("queue-change", f"a weight for the queue of {NAMESPACE}", "patch", "queues.scheduling.volcano.sh",
            NAMESPACE, "--type=merge", "-p", '{"spec":{"weight":1}}'),
        ask("policy", "no admission policy", "delete", "validatingadmissionpolicies", "--all"),
        ask("node", "the label of a GPU node", "label", "node", context.gpu_nodes[0], "stolen=true"),
    ]  # fmt: skip


def refused(context: Context) -> None:
    """Runs every attempt that was chosen as a member of the team OTHER; one check each."""
    who = f"a member of {OTHER}"
    for attempt in attempts(context):
        if not context.wants(f"attack.{attempt.id}"):
            continue
        with context.recorder.check(f"attack.{attempt.id}", attempt.tried) as figures:
            figures |= {"who": who, "tried": attempt.tried}
            where = [] if "-n" in attempt.args else ["-n", OTHER]
            items = {"apiVersion": "v1", "kind": "List", "items": list(attempt.objects)}
            asked = context.kubectl(
                *member(OTHER, "mallory"),
                *where,
                *attempt.args,
                check=False,
                input=json.dumps(items) if attempt.objects else None,
            )
            if not asked.returncode and attempt.objects:
                context.kubectl("delete", "-n", OTHER, "-f", "-", "--now", check=False, input=json.dumps(items))
            judge(figures, asked.returncode, asked.stdout + asked.stderr, attempt)


def judge(figures: dict[str, Any], code: int, answer: str, attempt: Attempt) -> None:
    """Fails unless the answer is a refusal by the guard that should refuse, for the reason that it should give."""
    lines = [line.strip() for line in answer.splitlines() if line.strip() and not line.startswith("Warning")]
    figures["message"] = message = " ".join(lines)[:400]
    require(code, f"it was let through: {message}")
    figures["refused_by"] = next((name for mark, name in GUARDS.items() if mark in message), "something else")
    require(
        figures["refused_by"] == attempt.guard, f"refused by {figures['refused_by']}, not by {attempt.guard}: {message}"
    )
    lacking = [word for word in attempt.says if word.lower() not in message.lower()]
    require(not lacking, f"the refusal does not say {' or '.join(lacking)}: {message}")
