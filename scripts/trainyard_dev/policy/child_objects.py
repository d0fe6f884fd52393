"""Child objects that controllers would make of a user's object: pods, PodGroups, claims; each with its controller."""

import copy
from collections.abc import Iterator
from typing import Any

from trainyard.contract import Contract
from trainyard.kinds import registry
from trainyard.kinds.pods import NO_GPU
from trainyard.names import GANG
from trainyard_dev.apiserver import Identity

Object = dict[str, Any]
UID = "00000000-0000-0000-0000-000000000000"
SPECS = tuple(kind.replicas for kind in registry.KINDS if kind.replicas)
CLOSED = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def child_objects(obj: Object, known: Contract) -> Iterator[tuple[Object, Identity]]:
    """Every object that a controller would make of `obj`, one of each kind and replica type, with that controller."""
    spec = obj.get("spec") or {}
    kind, group = obj.get("kind"), str(obj.get("apiVersion", "")).partition("/")[0]
    if group == "kubeflow.org":
        yield from _training(obj, spec, known)
    elif group == "batch.volcano.sh" and kind == "Job":
        yield from _volcano(obj, spec, known)
    elif kind == "CronJob":
        job = spec.get("jobTemplate") or {}
        made = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": _meta(obj, "1", job),
            "spec": job.get("spec") or {},
        }
        yield made, _kubernetes("cronjob-controller")
        yield from child_objects(made, known)
    elif kind in ("Job", "Deployment", "StatefulSet") and spec.get("template"):
        maker = {"Job": "job", "Deployment": "replicaset", "StatefulSet": "statefulset"}[kind]
        yield _pod(obj, "0", spec["template"]), _kubernetes(f"{maker}-controller")
        for claim in spec.get("volumeClaimTemplates") or []:
            made = copy.deepcopy(claim) | {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            made["metadata"] = {"name": f"{claim['metadata']['name']}-{_name(obj)}-0", "namespace": _space(obj)}
            yield made, _kubernetes("statefulset-controller")


def _own(known: Contract, part: str) -> Identity:
    """The service account of one of the release's controllers."""
    return Identity.account(known.namespace, f"{known.release}-{part}")


def _training(job: Object, spec: Object, known: Contract) -> Iterator[tuple[Object, Identity]]:
    """Child objects as training-operator makes them with gang scheduling by Volcano."""
    operator = _own(known, "training-operator")
    replicas: Object = next((spec[key] for key in SPECS if spec.get(key)), {})
    policy = (spec.get("runPolicy") or {}).get("schedulingPolicy") or {}
    total = sum(int(replica.get("replicas", 1)) for replica in replicas.values())
    yield _group(job, _name(job), policy.get("queue"), policy.get("minAvailable", total), policy), operator
    for role, replica in replicas.items():
        template = replica.get("template") or {}
        if not template.get("spec"):
            continue
        pod = _pod(job, f"{role.lower()}-0", template, {GANG: _name(job), "volcano.sh/task-spec": role.lower()})
        pod["spec"].setdefault("schedulerName", known.scheduler)
        pod["spec"]["restartPolicy"] = "Never"
        if job["kind"] == "PyTorchJob" and role == "Worker" and "Master" in replicas:
            _first(pod, "wait-for-master", known.images["platform"])
        if job["kind"] == "MPIJob" and role == "Launcher":
            _first(pod, "kubectl-delivery", known.images["kubectlDelivery"])
            pod["spec"]["serviceAccountName"] = f"{_name(job)}-launcher"
        yield pod, operator


def _volcano(job: Object, spec: Object, known: Contract) -> Iterator[tuple[Object, Identity]]:
    """Child objects as Volcano's job controller makes them."""
    controller = _own(known, "controllers")
    tasks = [task for task in spec.get("tasks") or [] if (task.get("template") or {}).get("spec")]
    name = f"{_name(job)}-{UID}"
    total = sum(int(task.get("replicas", 1)) for task in tasks)
    yield _group(job, name, spec.get("queue"), spec.get("minAvailable", total), spec), controller
    for task in tasks:
        pod = _pod(job, f"{task.get('name', 'task')}-0", task["template"], {GANG: name})
        pod["spec"].setdefault("schedulerName", spec.get("schedulerName") or known.scheduler)
        if spec.get("priorityClassName"):
            pod["spec"].setdefault("priorityClassName", spec["priorityClassName"])
        yield pod, controller


def _group(job: Object, name: str, queue: str | None, least: int, policy: Object) -> Object:
    spec: Object = {"minMember": least}
    if queue:
        spec["queue"] = queue
    if priority := policy.get("priorityClass") or policy.get("priorityClassName"):
        spec["priorityClassName"] = priority
    meta = {"name": name, "namespace": _space(job), "ownerReferences": [_owner(job)]}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}


def _pod(owner: Object, suffix: str, template: Object, annotations: dict[str, str] | None = None) -> Object:
    meta = _meta(owner, suffix, template)
    meta["annotations"] = {**meta["annotations"], **(annotations or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": copy.deepcopy(template.get("spec") or {})}


def _first(pod: Object, name: str, image: str) -> None:
    """Inserts an init container of the operator's before the user's own."""
    container = {"name": name, "image": image, "securityContext": CLOSED, "env": [dict(NO_GPU)]}
    pod["spec"]["initContainers"] = [container, *(pod["spec"].get("initContainers") or [])]


def _meta(owner: Object, suffix: str, template: Object) -> Object:
    given = template.get("metadata") or {}
    return {
        "name": f"{_name(owner)}-{suffix}",
        "namespace": _space(owner),
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "ownerReferences": [_owner(owner)],
    }


def _owner(obj: Object) -> Object:
    kind = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**kind, "name": _name(obj), "uid": UID, "controller": True}


def _name(obj: Object) -> str:
    meta = obj.get("metadata") or {}
    return str(meta.get("name") or f"{meta.get('generateName', 'unnamed-')}x")


def _space(obj: Object) -> str:
    return str(obj["metadata"]["namespace"])


def _kubernetes(controller: str) -> Identity:
    return Identity.account("kube-system", controller)
