"""Causes that make each alert fire on the test cluster; each lasts as long as a block runs.

Bounds are in seconds (`bounds`); causes are real: a gang that can't fit, a GPU with an Xid, no controller.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainyard_dev.cluster.nodes import mock_gpu_folder
from trainyard_dev.e2e import cronjobs, jobs
from trainyard_dev.e2e.checks import gang, storage
from trainyard_dev.e2e.checks.nodes import await_gpus
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.gpu import mock

XID = 79
IDLE, FULL = "alert-idle", "alert-full"
SCALED = "trainyard-gpu-view"  # scaled away; meanwhile its published GPU numbers are outdated
SOON = {"for": "10s"}
YEARS_S = 20 * 365 * 86400
ETCD_STEP, ETCD_MOST = 900_000, 150  # bytes of a ConfigMap, and the maximum number of them
CLAIM_MI, FILL_MI = 20, 19
PLUGIN = "app.kubernetes.io/name=nvidia-device-plugin"
Cause = Callable[[Context], AbstractContextManager[None]]


@dataclass(frozen=True)
class Fault:
    """An alert, labels that it must have, and its cause. `mock`: it needs GPUs that can be broken on purpose."""

    alert: str
    cause: Cause
    labels: dict[str, str] = field(default_factory=dict)
    mock: bool = False


def bounds(etcd_bytes: int) -> dict[str, dict[str, Any]]:
    """`monitoring.alerts.rules` with which causes of seconds suffice; etcd's file has `etcd_bytes` at the start."""
    set_otherwise: dict[str, dict[str, Any]] = {
        "TrainyardGangWaits": {"threshold": 20},
        "TrainyardControllerRestarts": {"threshold": 1},
        # Caused by one upgrade, ended by the next: no certificate or key here is about to expire.
        "TrainyardCertificateEnds": {"threshold": YEARS_S},
        "TrainyardKeyOld": {"threshold": 1},
        "TrainyardBackupMissed": {"threshold": 240},
        "TrainyardEtcdFills": {"threshold": etcd_bytes + 2 * ETCD_STEP},
    }
    plain = ("NodeLost", "GpuLost", "GpuSick", "JobIdleOnGpus", "ControllerDown", "VolumeFills", "QueueStarved",
             "TargetDown")  # fmt: skip
    return {**{f"Trainyard{one}": SOON for one in plain}, **{one: SOON | said for one, said in set_otherwise.items()}}


@contextmanager
def waiting_gang(context: Context) -> Iterator[None]:
    """A gang of one GPU more than the cluster has, in one team's queue; it waits, and its queue is below its share."""
    job = gang.too_large(context)
    context.kubectl("apply", "-n", NAMESPACE, "-f", "-", input=json.dumps(job))
    try:
        yield
    finally:
        jobs.delete(context, job, NAMESPACE)


@contextmanager
def idle_pod(context: Context) -> Iterator[None]:
    """A pod of the other team that holds a GPU and sleeps; a mock GPU without load is idle."""
    node = context.gpu_nodes[0]
    with context.holding(context.pod(IDLE, "sleep 600", node=node, queue=OTHER), OTHER):
        ready = context.kubectl(
            "wait", "-n", OTHER, "--for=condition=Ready", f"pod/{IDLE}", "--timeout=60s", check=False
        )
        require(ready.returncode == 0, f"the pod {IDLE} does not start: {ready.stderr.strip()}")
        yield


@contextmanager
def broken_gpu(context: Context) -> Iterator[None]:
    """The last GPU of the last node reports an Xid, and the device plugin no longer offers it."""
    name, count = context.gpu_nodes[-1], context.spec.count
    folder = mock_gpu_folder(context.cluster, name)
    mock.inject_xid(folder, count - 1, XID)
    try:
        yield
    finally:
        mock.heal(folder)
        context.kubectl("delete", "pod", "-n", SYSTEM, "-l", PLUGIN, f"--field-selector=spec.nodeName={name}", "--now")
        await_gpus(context, name, count)


@contextmanager
def silent_kubelet(context: Context) -> Iterator[None]:
    """A GPU node with a stopped kubelet, for less than the five minutes after which its pods are evicted."""
    name = context.gpu_nodes[0]
    context.engine.exec(name, ["systemctl", "stop", "kubelet"])
    try:
        yield
    finally:
        context.engine.exec(name, ["systemctl", "start", "kubelet"])


@contextmanager
def scaled_away(context: Context) -> Iterator[None]:
    """A Deployment of the platform without a pod."""
    with context.without(f"deploy/{SCALED}"):
        yield


@contextmanager
def restarting(context: Context) -> Iterator[None]:
    """A platform pod that fails again and again."""
    with _pod_of_the_platform(context, "alert-restarts", "sleep 1; exit 1", {}):
        yield


@contextmanager
def deaf_target(context: Context) -> Iterator[None]:
    """A pod with the labels of a target, but without a listener."""
    with _pod_of_the_platform(context, "alert-deaf", "sleep 900", {"app.kubernetes.io/name": "workflow-controller"}):
        yield


@contextmanager
def _pod_of_the_platform(context: Context, name: str, script: str, labels: dict[str, str]) -> Iterator[None]:
    pod = context.pod(name, script, labels=labels)
    pod["spec"]["restartPolicy"] = "Always"
    pod["spec"]["containers"][0]["resources"]["limits"] = {"memory": "32Mi"}
    with context.holding(pod, SYSTEM):
        yield


@contextmanager
def filled_claim(context: Context) -> Iterator[None]:
    """A small claim that a pod of the team fills to 95 %, and empties again."""
    context.kubectl.apply([storage.claim(FULL, context.shared_class, f"{CLAIM_MI}Mi")], NAMESPACE)
    try:
        _in_claim(context, f"head -c {FILL_MI}M /dev/urandom > /full/checkpoint")
        yield
        _in_claim(context, "rm /full/checkpoint")
    finally:
        context.kubectl("delete", "pvc", FULL, "-n", NAMESPACE, "--ignore-not-found", "--wait=false", check=False)


def _in_claim(context: Context, script: str) -> None:
    pod = context.pod(FULL, script, claims={FULL: "/full"})
    phase, log = context.run_pod(pod)
    require(phase == "Succeeded", f"the pod with the claim {FULL} ended {phase}: {log[-300:]}")


@contextmanager
def missed_backup(context: Context) -> Iterator[None]:
    """A backup that is missing for some minutes, and then made."""
    yield
    cronjobs.run(context, "trainyard-backup", timeout=300)


def etcd_bytes(context: Context) -> int:
    """Size of etcd's file, according to the API server."""
    said = context.kubectl("get", "--raw", "/metrics").stdout
    sizes = [line.split()[-1] for line in said.splitlines() if line.startswith("apiserver_storage_size_bytes{")]
    require(sizes, "the API server does not report the size of etcd's file")
    return int(max(float(size) for size in sizes))


@contextmanager
def filled_etcd(context: Context) -> Iterator[None]:
    """ConfigMaps that make etcd's file grow. The file stays large: the restored bound ends the alert."""
    due, names = etcd_bytes(context) + 3 * ETCD_STEP, [f"alert-etcd-{number}" for number in range(ETCD_MOST)]
    made: list[str] = []
    try:
        for name in names:
            data = {"filler": f"{time.time_ns():020}" * (ETCD_STEP // 20)}
            one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            context.kubectl("create", "-n", "default", "-f", "-", input=json.dumps(one))
            made.append(name)
            if len(made) % 10 == 0 and etcd_bytes(context) > due:
                break
        yield
    finally:
        context.kubectl("delete", "configmap", "-n", "default", *made, "--ignore-not-found", check=False)


@contextmanager
def beside(context: Context) -> Iterator[None]:
    """No cause: another alert's cause or the upgrade's bounds suffice."""
    yield


# Caused together; alerts that the restored bounds end are in LAST.
TOGETHER = (
    Fault("TrainyardGangWaits", waiting_gang, {"team": NAMESPACE, "job": gang.TOO_LARGE}),
    Fault("TrainyardJobIdleOnGpus", idle_pod, {"team": OTHER, "job": IDLE}, mock=True),
    # The idle pod's queue has more than its share, which is zero; the gang's queue has less than its own.
    Fault("TrainyardQueueStarved", beside, {"queue": NAMESPACE}),
    Fault("TrainyardGpuSick", broken_gpu, {"cause": "xid"}, mock=True),
    Fault("TrainyardGpuLost", beside, mock=True),
    Fault("TrainyardControllerDown", scaled_away, {"workload": SCALED}),
    Fault("TrainyardControllerRestarts", restarting, {"pod": "alert-restarts"}),
    Fault("TrainyardTargetDown", deaf_target, {"instance": "alert-deaf"}),
    Fault("TrainyardVolumeFills", filled_claim, {"team": NAMESPACE, "claim": FULL}),
    Fault("TrainyardBackupMissed", missed_backup),
)
# Caused alone: while a kubelet is silent, its node has no data.
ALONE = (Fault("TrainyardNodeLost", silent_kubelet),)
LAST = (
    Fault("TrainyardEtcdFills", filled_etcd),
    Fault("TrainyardCertificateEnds", beside),
    Fault("TrainyardKeyOld", beside, {"name": f"team/{NAMESPACE}"}),
)
ALL = (*TOGETHER, *ALONE, *LAST)
