"""A member of one team tries to take what belongs to another or to the platform; each attempt must be refused.

The attempts are real requests, not dry runs: one that succeeds leaves an object, which the check removes.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainyard.names import GPU
from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.context import GPU_TOLERATION, NAMESPACE, OTHER, SYSTEM, Context, member
from trainyard_dev.e2e.entry import check
from trainyard_dev.e2e.recorder import require
from trainyard_dev.versions import load

POLICY, POD_SECURITY, RBAC = "admission policy", "Pod Security", "RBAC"
GUARDS = {
    "ValidatingAdmissionPolicy": POLICY,
    "violates PodSecurity": POD_SECURITY,
    "exceeded quota": "quota",
    "cannot ": RBAC,
}
Change = Callable[[dict[str, Any]], object]
Parts = tuple[str, tuple[str, ...], str, tuple[str, ...], tuple[dict[str, Any], ...]]  # of an Attempt, after its id


@dataclass(frozen=True)
class Attempt:
    """One attempt by a member of the team OTHER.

    Args:
        args: of kubectl; `objects` go to its standard input.
        guard: the mechanism that has to refuse, a value of GUARDS.
        says: words that the refusal must contain, so that it is refused for this reason and no other.
    """

    id: str
    tried: str
    args: tuple[str, ...]
    guard: str
    says: tuple[str, ...]
    objects: tuple[dict[str, Any], ...] = field(default=())


def pod(context: Context, name: str, change: Change = lambda pod: None, queue: str | None = None) -> dict[str, Any]:
    """A pod that every policy allows, with a GPU if a queue is given; then changed."""
    made = context.pod(f"attack-{name}", "true", queue=queue)
    change(made)
    return made


def job(queue: str, gpus: int = 1) -> dict[str, Any]:
    """A PyTorchJob with one master."""
    quantities = {"cpu": "100m", "memory": "64Mi", GPU: gpus}
    container: dict[str, Any] = {"name": "pytorch", "image": load().image("base"), "command": ["true"]}
    container["resources"] = {"requests": quantities, "limits": copy.copy(quantities)}
    spec = {"containers": [container], "automountServiceAccountToken": False, "schedulerName": "volcano"}
    return jobs.of_one_master("attack-job", spec, queue, 600)


def group(queue: str) -> dict[str, Any]:
    """A PodGroup in a queue."""
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    return kind | {"metadata": {"name": "attack-group"}, "spec": {"queue": queue, "minMember": 1}}


def _spec(**values: Any) -> Change:
    return lambda made: made["spec"].update(values)


def _first(**values: Any) -> Change:
    return lambda made: made["spec"]["containers"][0].update(values)


def _priority(context: Context) -> str:
    """The priority class that the team doesn't have."""
    return max(context.contract["priorityClasses"], key=lambda one: one["value"])["name"]


def _most(context: Context) -> int:
    """The maximum number of GPUs in one of the team's jobs."""
    return int(next(team for team in context.contract["teams"] if team["name"] == OTHER)["maxGpusPerJob"])


def _apply(tried: str, guard: str, says: tuple[str, ...], *objects: dict[str, Any]) -> Parts:
    return tried, ("create", "-f", "-"), guard, says, objects


def _ask(tried: str, *args: str) -> Parts:
    return tried, args, RBAC, ("cannot",), ()


NFS: dict[str, Any] = {"name": "v", "nfs": {"server": "10.96.0.49", "path": "/shared"}}
THEFT = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "trainyard-minio-root", "key": "root-password"}}}
SUBJECT = {"kind": "Group", "name": f"{OTHER}-members", "apiGroup": "rbac.authorization.k8s.io"}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "attack-binding"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
    "subjects": [SUBJECT],
}
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "attack-volume"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "nfs": NFS["nfs"] | {"path": f"/shared/{NAMESPACE}"},
    },
}
# Every attempt that the API server has to refuse, by the end of its check's id.
ATTEMPTS: dict[str, Callable[[Context], Parts]] = {
    "queue-job": lambda c: _apply(f"a job in the queue of {NAMESPACE}", POLICY, ("queue", NAMESPACE), job(NAMESPACE)),
    "queue-pod": lambda c: _apply(f"a GPU pod in the queue of {NAMESPACE}", POLICY, ("queue", NAMESPACE),
        pod(c, "queue", queue=NAMESPACE)),
    "queue-group": lambda c: _apply(f"a PodGroup in the queue of {NAMESPACE}", RBAC, ("podgroups",), group(NAMESPACE)),
    "priority": lambda c: _apply("a priority class that the team may not use", POLICY, ("priority", _priority(c)),
        pod(c, "priority", _spec(priorityClassName=_priority(c)))),
    "gpus-job": lambda c: _apply("more GPUs in one job than the team's quota", POLICY, ("GPU",),
        job(OTHER, gpus=_most(c) + 1)),
    "toleration": lambda c: _apply("a pod without GPUs that tolerates the GPU nodes' taint", POLICY, ("tolerat",),
        pod(c, "toleration", _spec(tolerations=[GPU_TOLERATION]))),
    "toleration-all": lambda c: _apply("a pod that tolerates every taint", POLICY, ("tolerat",),
        pod(c, "wildcard", _spec(tolerations=[{"operator": "Exists"}]))),
    "node-name": lambda c: _apply("a pod on a GPU node that bypasses the scheduler", POLICY, ("nodeName",),
        pod(c, "node", _spec(nodeName=c.gpu_nodes[0]))),
    "visible-devices": lambda c: _apply("GPUs by an environment variable instead of a request", POLICY,
        ("NVIDIA_VISIBLE",), pod(c, "env", _first(env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]))),
    "host-path": lambda c: _apply("a hostPath volume", POD_SECURITY, ("hostPath",),
        pod(c, "host", _spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]))),
    "nfs-volume": lambda c: _apply("the NFS server's export as a volume, without a claim", POD_SECURITY, ("nfs",),
        pod(c, "nfs", _spec(volumes=[NFS]))),
    "privileged": lambda c: _apply("a privileged container", POD_SECURITY, ("privileged",),
        pod(c, "root", _first(securityContext={"privileged": True}))),
    "root-secret": lambda c: _apply("the object store's root password in a pod's environment", POLICY, ("root",),
        pod(c, "secret", _first(env=[THEFT]))),
    "token": lambda c: _apply("a pod that requests an API token", POLICY, ("automount",),
        pod(c, "token", _spec(automountServiceAccountToken=True))),
    "image": lambda c: _apply("an image from an unknown registry, with a mutable tag", POLICY, ("image",),
        pod(c, "image", _first(image="registry.example.com/someone/miner:latest"))),
    "volume-create": lambda c: _apply(f"a volume with the folder of {NAMESPACE}", RBAC, ("persistentvolumes",), VOLUME),
    "role-binding": lambda c: _apply("the role admin for the attacker", RBAC, ("rolebindings", "cannot"), BINDING),
    "secret": lambda c: _ask(f"the S3 key of {NAMESPACE}", "get", "secret", "trainyard-s3", "-n", NAMESPACE),
    "platform-secret": lambda c: _ask("the object store's root password", "get", "secret", "trainyard-minio-root", "-n",
        SYSTEM),
    "pods": lambda c: _ask(f"the list of the pods of {NAMESPACE}", "get", "pods", "-n", NAMESPACE),
    "job-elsewhere": lambda c: _ask(f"deleting the jobs of {NAMESPACE}", "delete", "pytorchjobs", "--all", "-n",
        NAMESPACE),
    "service-account": lambda c: _ask(f"a token of the service account of {NAMESPACE}", "create", "token", "training",
        "-n", NAMESPACE),
    "own-token": lambda c: _ask("a token of the team's own service account", "create", "token", "training", "-n",
        OTHER),
    "namespace": lambda c: _ask("more queues, by an annotation of the namespace", "annotate", "namespace", OTHER,
        "--overwrite", f"trainyard.io/queues={OTHER},{NAMESPACE}"),
    "quota": lambda c: _ask("a larger quota", "patch", "resourcequota", "team", "-n", OTHER, "--type=merge", "-p",
        '{"spec":{"hard":{"pods":"9999"}}}'),
    "network-policy": lambda c: _ask("no network policy", "delete", "networkpolicy", "default-deny", "-n", OTHER),
    "queue-change": lambda c: _ask(f"a weight for the queue of {NAMESPACE}", "patch", "queues.scheduling.volcano.sh",
        NAMESPACE, "--type=merge", "-p", '{"spec":{"weight":1}}'),
    "policy": lambda c: _ask("no admission policy", "delete", "validatingadmissionpolicies", "--all"),
    "node": lambda c: _ask("the label of a GPU node", "label", "node", c.gpu_nodes[0], "stolen=true"),
}  # fmt: skip


def attempts(context: Context) -> list[Attempt]:
    """All attempts, for this cluster."""
    return [Attempt(end, *made(context)) for end, made in ATTEMPTS.items()]


@check(*(f"attack.{end}" for end in ATTEMPTS), main=("attack.queue-job", "attack.host-path", "attack.secret"),
       each=True, inputs=("policies",))  # fmt: skip
def refused(context: Context) -> None:
    """Runs every chosen attempt as a member of the team OTHER; one check each."""
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
    """Fails unless the answer is a refusal by the expected guard, for the expected reason."""
    lines = [line.strip() for line in answer.splitlines() if line.strip() and not line.startswith("Warning")]
    figures["message"] = message = " ".join(lines)[:400]
    require(code, f"the request was admitted: {message}")
    figures["refused_by"] = next((name for mark, name in GUARDS.items() if mark in message), "something else")
    require(
        figures["refused_by"] == attempt.guard, f"refused by {figures['refused_by']}, not by {attempt.guard}: {message}"
    )
    lacking = [word for word in attempt.says if word.lower() not in message.lower()]
    require(not lacking, f"the refusal lacks {' or '.join(lacking)}: {message}")
