"""GPU nodes get labels, taint and devices, even one that joins after the installation; other pods stay off."""

import time
from typing import Any

from trainyard.names import GPU
from trainyard.times import moment
from trainyard_dev.cluster.nodes import mock_gpu_folder
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.entry import GPUS, LATE, check
from trainyard_dev.e2e.jobs import gpus
from trainyard_dev.e2e.recorder import Figures, possible, require
from trainyard_dev.gpu import mock

WAIT_S = 90


def state(context: Context, name: str) -> dict[str, Any]:
    """A node's pool, GPU labels, GPU taint and allocatable GPUs; empty while it doesn't exist."""
    node = context.kubectl.find("node", name)
    if node is None:
        return {}
    labels = node["metadata"]["labels"]
    return {
        "pool": labels.get("trainyard.io/pool"),
        "present": labels.get("nvidia.com/gpu.present"),
        "product": labels.get("nvidia.com/gpu.product"),
        "count": labels.get("nvidia.com/gpu.count"),
        "memory_mib": labels.get("nvidia.com/gpu.memory"),
        "taint": any(t["key"] == GPU and t["effect"] == "NoSchedule" for t in node["spec"].get("taints", [])),
        "allocatable": int(node["status"].get("allocatable", {}).get(GPU, 0)),
    }


def await_gpus(context: Context, name: str, count: int, seconds: float = WAIT_S) -> dict[str, Any]:
    """Waits until the node offers `count` GPUs; returns its last state either way."""
    end = time.monotonic() + seconds
    while (seen := state(context, name)).get("allocatable") != count and time.monotonic() < end:
        time.sleep(1)
    return seen


def require_prepared(context: Context, name: str, seen: dict[str, Any]) -> None:
    """Fails unless the node has everything that the contract requires of a GPU node."""
    require(seen.get("taint"), f"{name} carries no taint {GPU}:NoSchedule")
    require(seen.get("pool") == "gpu", f"{name} has the label pool {seen.get('pool')}, not gpu")
    require(seen.get("present") == "true", f"{name} lacks the label nvidia.com/gpu.present")
    due = context.gpus[name]
    require(seen.get("count") == str(due), f"{name} is labelled {seen.get('count')} GPUs, due are {due}")
    require(seen.get("allocatable") == due, f"{name} offers {seen.get('allocatable')} GPUs, due are {due}")
    if context.gpu == "mock":
        memory = seen.get("memory_mib")
        require(memory == str(context.spec.memory_mib), f"{name} is labelled {memory} MiB of GPU memory")


def leave(context: Context, name: str) -> None:
    """Removes a node from the cluster without a trace: no kubelet, no pod, no object in the API."""
    context.engine.exec(name, ["kubeadm", "reset", "--force", "--cri-socket", "unix:///run/containerd/containerd.sock"])
    context.engine.exec(name, ["sh", "-c", "rm -rf /etc/cni/net.d/*"])
    context.kubectl("delete", "node", name, timeout=60)
    context.kubectl("delete", "pods", "-A", f"--field-selector=spec.nodeName={name}", "--force", "--grace-period=0")


def join(context: Context, name: str) -> None:
    """Joins the node again, with the configuration that kind made for it."""
    context.engine.exec(
        name, ["kubeadm", "join", "--config", "/kind/kubeadm.conf", "--skip-phases=preflight"], timeout=120
    )


@check("nodes.late-gpu-node", title="a GPU node that joins after the installation", start=True, locks={GPUS})
def late(context: Context, figures: Figures) -> None:
    """A GPU node that joins after the installation is prepared automatically."""
    name = context.gpu_nodes[-1]
    possible(context.gpus[name], "only one node has a GPU")
    began = time.monotonic()
    join(context, name)
    seen = await_gpus(context, name, context.gpus[name])
    figures |= seen | {"seconds_until_ready": round(time.monotonic() - began, 1)}
    require_prepared(context, name, seen)


@check("nodes.gpu-node", title="GPU node: labels, taint and devices", start=True, locks={GPUS})
def prepared(context: Context, figures: Figures) -> None:
    """The GPU node that existed at the installation."""
    seen = await_gpus(context, context.gpu_nodes[0], context.gpus[context.gpu_nodes[0]])
    figures |= seen
    require_prepared(context, context.gpu_nodes[0], seen)


@check("nodes.cpu-pods-off", title="pods without GPUs stay off GPU nodes", rank=LATE)
def cpu_pods_off(context: Context, figures: Figures) -> None:
    """No pod without a GPU went to a GPU node since the installation, except those that run on every node.

    A taint keeps pods away and moves none: pods placed before the taint (kubeadm's CoreDNS) are only reported.
    """
    strangers, earlier = list[str](), list[str]()
    for pod in context.kubectl.get("pods", "-A"):
        owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences", [])}
        if pod["spec"].get("nodeName") in context.gpu_nodes and not owners & {"DaemonSet", "Node"} and not gpus(pod):
            created = moment(pod["metadata"]["creationTimestamp"]) or 0
            found = earlier if created < context.installed_at else strangers
            found.append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    figures |= {"pods_on_gpu_nodes": strangers, "placed_before_the_installation": earlier}
    require(not strangers, f"pods without GPUs run on GPU nodes: {', '.join(strangers)}")


@check(
    "gpu.xid",
    title="Xid 79 removes one GPU from the node's allocatable GPUs",
    locks={GPUS},
    inputs=("charts/nvidia-device-plugin",),
)
def xid(context: Context, figures: Figures) -> None:
    """A GPU that reports Xid 79 is no longer offered; after its repair and a restart of the plugin it is back."""
    possible(context.gpu == "mock", "faults can be injected only into mock GPUs")
    name, count = context.gpu_nodes[-1], context.spec.count
    folder = mock_gpu_folder(context.cluster, name)
    mock.inject_xid(folder, count - 1, 79)
    try:
        figures["allocatable_after_fault"] = await_gpus(context, name, count - 1, 30).get("allocatable")
        require(
            figures["allocatable_after_fault"] == count - 1,
            f"{name} still offers {figures['allocatable_after_fault']} GPUs",
        )
    finally:
        mock.heal(folder)
        selector = "app.kubernetes.io/name=nvidia-device-plugin"
        context.kubectl(
            "delete", "pod", "-n", SYSTEM, "-l", selector, f"--field-selector=spec.nodeName={name}", "--now"
        )
    figures["allocatable_after_repair"] = await_gpus(context, name, count).get("allocatable")
    require(
        figures["allocatable_after_repair"] == count,
        f"{name} offers {figures['allocatable_after_repair']} GPUs after repair",
    )
