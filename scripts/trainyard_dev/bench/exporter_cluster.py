"""Objects of a large cluster on a real API server: nodes, teams, their jobs, gangs and pods. No node runs any of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.names import GANG, GPU, QUEUE
from trainyard_dev.apiserver import ApiServer, Client
from trainyard_dev.apiserver.install import complete_namespace, namespace

TEAMS, RANKS, GPUS_A_NODE = 20, 8, 8
WRITERS = 6
AT = "2026-05-04T12:00:00Z"
# What the kinds are, without what they may hold: the server keeps all of it, and answers as quickly.
KINDS = (
    ("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", "Namespaced"),
    ("scheduling.volcano.sh", "v1beta1", "Queue", "queues", "Cluster"),
    ("argoproj.io", "v1alpha1", "Workflow", "workflows", "Namespaced"),
    *((kind.group, kind.version, kind.kind, kind.plural, "Namespaced") for kind in registry.KINDS if kind.part),
)
Object = dict[str, Any]


def crds() -> list[Object]:
    """The kinds that aren't Kubernetes' own."""
    return [_crd(*one) for one in KINDS]


def objects(nodes: int, pods: int) -> Iterator[tuple[str, Iterable[Object]]]:
    """All of it: what comes, and the objects."""
    teams = team_names()
    yield f"{nodes} nodes", (_node(number) for number in range(nodes))
    yield "queues, quotas, claims and runs", itertools.chain.from_iterable(_of_team(team) for team in teams)
    jobs = itertools.chain.from_iterable(_job(number, teams) for number in range(pods // RANKS))
    yield f"{pods // RANKS} jobs of {RANKS} ranks, each a gang", jobs
    yield f"and {pods} pods", (_pod(number, teams, nodes) for number in range(pods // RANKS * RANKS))


def fill(server: ApiServer, nodes: int, pods: int, report: Callable[[str], None]) -> None:
    """Makes all of it. Raises TrainyardError when an object is refused."""
    for team in team_names():
        _made(server, namespace(team, team=True))
        complete_namespace(server, team)
    for what, found in objects(nodes, pods):
        report(what)
        _all_made(server, found)


def team_names() -> list[str]:
    """The teams that all this belongs to."""
    return [f"team-{number:02}" for number in range(TEAMS)]


def _all_made(server: ApiServer, objects: Iterable[Object]) -> None:
    """Makes objects over several connections."""
    shared = iter(objects)

    def some(found: list[Object]) -> None:
        connection = server.connection()
        for obj in found:
            _made(connection, obj)

    with ThreadPoolExecutor(WRITERS) as pool:
        waits = [pool.submit(some, part) for part in iter(lambda: list(itertools.islice(shared, 200)), [])]
        for one in waits:
            one.result()


def _made(server: Client, obj: Object) -> None:
    status = obj.pop("status", None)
    answer = server.create(obj)
    if answer.ok and status:
        answer = server.replace({**answer.body, "status": status}, sub="status")
    if not answer.ok:
        raise TrainyardError(f"the API server refused {obj['kind']} {obj['metadata']['name']}: {answer.message}")


def _crd(group: str, version: str, kind: str, plural: str, scope: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "subresources": {"status": {}},
              "schema": {"openAPIV3Schema": schema}}  # fmt: skip
    spec = {"group": group, "scope": scope, "names": {"kind": kind, "plural": plural}, "versions": [served]}
    meta = {"name": f"{plural}.{group}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


def _node(number: int) -> Object:
    amounts = {GPU: str(GPUS_A_NODE), "cpu": "128", "memory": "1Ti", "pods": "110", "ephemeral-storage": "2Ti"}
    labels = {f"feature.node.kubernetes.io/cpu-cpuid.X{at}": "true" for at in range(40)}
    labels |= {"trainyard.io/pool": "gpu", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    conditions = [
        {"type": kind, "status": str(kind == "Ready"), "lastHeartbeatTime": AT, "lastTransitionTime": AT,
         "reason": f"Kubelet{kind}", "message": f"kubelet says {kind}"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]  # fmt: skip
    images = [{"names": [f"registry/image-{at}@sha256:{at:064}", f"registry/image-{at}:1"], "sizeBytes": 10**9 + at}
              for at in range(40)]  # fmt: skip
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions, "images": images}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"gpu-{number:04}", "labels": labels},
            "spec": {"podCIDR": "10.0.0.0/24"}, "status": status}  # fmt: skip


def _of_team(team: str) -> Iterator[Object]:
    amounts = {"cpu": "4000", "memory": "30Ti", GPU: "600"}
    yield {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": team},
           "spec": {"deserved": amounts, "capability": amounts},
           "status": {"state": "Open", "allocated": amounts}}  # fmt: skip
    hard = {f"count/kind-{at}": "100" for at in range(22)}
    yield {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": team},
           "spec": {"hard": hard}, "status": {"hard": hard, "used": hard}}  # fmt: skip
    for number in range(10):
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
               "metadata": {"name": f"data-{number}", "namespace": team},
               "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "100Gi"}}}}  # fmt: skip
        steps = {f"run-{number}-{at}": {"phase": "Succeeded", "displayName": f"step-{at}", "message": "x" * 200}
                 for at in range(20)}  # fmt: skip
        status = {"phase": "Succeeded", "startedAt": AT, "finishedAt": AT, "nodes": steps}
        meta = {"name": f"run-{number}", "namespace": team, "labels": {"trainyard.io/pipeline": f"train-{number % 3}"},
                "annotations": {"trainyard.io/submitted-by": f"person-{number}@example.org"}}  # fmt: skip
        yield {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": meta, "spec": {}, "status": status}


def _spec(node: str = "") -> Object:
    """A rank as the platform makes it: code comes in and results go out beside the command."""
    closed = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    mounts = [{"name": name, "mountPath": f"/mnt/{name}"} for name in ("work", "shm", "workspace", "shared")]
    env = [{"name": f"TRAINYARD_SETTING_{at}", "value": f"value-of-setting-{at}"} for at in range(25)]
    amounts = {"requests": {"cpu": "8", "memory": "64Gi", GPU: "1"}, "limits": {"memory": "64Gi", GPU: "1"}}
    side = {"image": "registry/trainyard/platform:0.4.0", "securityContext": closed, "volumeMounts": mounts,
            "env": env[:12],
            "command": ["python3", "-m", "trainyard_agent", "run-files"],
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}}  # fmt: skip
    main = {"name": "pytorch", "image": "registry/trainyard/trainer-torch:0.4.0", "securityContext": closed, "env": env,
            "command": ["python3", "train.py", "--epochs", "10"], "resources": amounts,
            "volumeMounts": mounts}  # fmt: skip
    volumes = [{"name": name, "emptyDir": {}} for name in ("work", "shm", "workspace", "shared")]
    return {"initContainers": [{"name": "fetch", **side}, {"name": "upload", "restartPolicy": "Always", **side}],
            "containers": [main], "volumes": volumes, "restartPolicy": "Never", "schedulerName": "volcano",
            "automountServiceAccountToken": False, "tolerations": [{"key": GPU, "operator": "Exists"}],
            **({"nodeName": node} if node else {})}  # fmt: skip


def _place(number: int, teams: list[str]) -> tuple[str, str]:
    """(team, name) of a job."""
    return teams[number % len(teams)], f"train-{number:05}"


def _uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _job(number: int, teams: list[str]) -> Iterator[Object]:
    team, name = _place(number, teams)
    role = {"replicas": RANKS, "template": {"spec": _spec()}}
    spec = {"runPolicy": {"schedulingPolicy": {"queue": team, "minAvailable": RANKS}, "activeDeadlineSeconds": 86400},
            "pytorchReplicaSpecs": {"Worker": role}}  # fmt: skip
    notes = {"trainyard.io/submitted-by": f"person-{number % 300}@example.org"}
    status = {"startTime": AT, "conditions": [{"type": "Running", "status": "True", "lastTransitionTime": AT}]}
    meta = {"name": name, "namespace": team, "annotations": notes, "labels": {"trainyard.io/job": name}}
    yield {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": meta, "spec": spec, "status": status}
    spec = {"queue": team, "minMember": RANKS, "minResources": {GPU: str(RANKS)}}
    said = (
        f"{RANKS}/{RANKS} tasks in gang unschedulable; Origin reason is x: 0/4 nodes are unavailable: 4 Insufficient "
    )
    said += f"{GPU}."
    condition = {"type": "Unschedulable", "status": "True", "message": said}
    waits = {"phase": "Inqueue", "conditions": [condition]}
    meta = {"name": name, "namespace": team, "ownerReferences": [_owner(number, name)]}
    yield {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec,
           "status": waits if _waits(number) else {"phase": "Running", "running": RANKS}}  # fmt: skip


def _owner(number: int, name: str) -> Object:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "name": name,
        "uid": _uid(number),
        "controller": True,
    }


def _waits(job: int) -> bool:
    """One job in ten has no place."""
    return job % 10 == 0


def _pod(number: int, teams: list[str], nodes: int) -> Object:
    job, rank = divmod(number, RANKS)
    team, name = _place(job, teams)
    waits = _waits(job)
    meta = {
        "name": f"{name}-worker-{rank}", "namespace": team, "ownerReferences": [_owner(job, name)],
        "annotations": {GANG: name, QUEUE: team, "scheduling.volcano.sh/template-uid": _uid(number)},
        "labels": {"training.kubeflow.org/job-name": name, "training.kubeflow.org/replica-index": str(rank),
                   "training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/operator-name": "operator",
                   "trainyard.io/job": name},
    }  # fmt: skip
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": AT} for kind in kinds]
    running = [{"name": one, "state": {"running": {"startedAt": AT}}, "ready": True, "restartCount": 0, "started": True,
                "image": "registry/trainyard/trainer-torch:0.4.0", "imageID": f"sha256:{number:064}",
                "containerID": f"containerd://{number:064}"} for one in ("fetch", "upload", "pytorch")]  # fmt: skip
    placed: Object = {"phase": "Running", "startTime": AT, "conditions": conditions, "podIP": "10.0.0.1",
                      "initContainerStatuses": running[:2], "containerStatuses": running[2:]}  # fmt: skip
    full = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": f"0/{nodes} nodes are unavailable: {nodes} Insufficient {GPU}."}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta,
            "spec": _spec("" if waits else f"gpu-{number // GPUS_A_NODE % nodes:04}"),
            "status": {"phase": "Pending", "conditions": [full]} if waits else placed}  # fmt: skip
