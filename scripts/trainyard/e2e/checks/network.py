"""Network policies are enforced, not only stored."""

from __future__ import annotations

from trainyard.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard.e2e.recorder import require
from trainyard.versions import load

LABEL = {"trainyard.io/check": "egress-denied"}


def policies(context: Context) -> None:
    """The same connection works without the policy and fails with it."""
    with context.recorder.check(
        "network.policies", "a network policy cuts a pod off; its neighbour stays connected"
    ) as figures:
        host = context.kubectl.get("service", "trainyard-minio", "-n", SYSTEM)[0]["spec"]["clusterIP"]
        # A policy takes effect a moment after a pod starts: the first seconds don't count.
        script = f"sleep 3; timeout 4 bash -c '</dev/tcp/{host}/9000' 2>/dev/null && echo open || echo closed"
        deny = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "egress-denied"},
            "spec": {"podSelector": {"matchLabels": LABEL}, "policyTypes": ["Egress"], "egress": []},
        }
        context.kubectl.apply([deny], NAMESPACE)
        image = load().image("base")
        free = context.pod("net-free", script, image=image, node=context.cpu_node)
        cut = context.pod("net-cut", script, image=image, node=context.cpu_node, labels=LABEL)
        context.kubectl.apply([cut], NAMESPACE)  # both run at the same time
        figures["without_policy"] = context.run_pod(free)[1]
        figures["with_policy"] = context.run_pod(cut)[1]
        context.kubectl("delete", "networkpolicy", "egress-denied", "-n", NAMESPACE)
        require(figures["without_policy"].endswith("open"), "the store can't be reached even without a policy")
        require(figures["with_policy"].endswith("closed"), "the connection works although a policy forbids it")


def storage_closed(context: Context) -> None:
    """Pods can't speak to the NFS server, which believes whoever connects; nodes can."""
    with context.recorder.check("network.nfs-closed", "pods can't reach the NFS server past their mounts") as figures:
        services = context.kubectl.get("services", "-n", SYSTEM, "-l", "app.kubernetes.io/name=nfs")
        host = services[0]["spec"]["clusterIP"]
        connect = f"timeout 4 bash -c '</dev/tcp/{host}/2049' 2>/dev/null && echo open || echo closed"
        for node in (context.cpu_node, context.gpu_nodes[0]):
            figures[f"from {node}"] = context.engine.exec(node, ["bash", "-c", connect]).stdout.strip()
        pod = context.pod("nfs-direct", f"sleep 3; {connect}", image=load().image("base"), node=context.cpu_node)
        figures["from a pod"] = context.run_pod(pod)[1]
        nodes = [seen for place, seen in figures.items() if place != "from a pod"]
        require(set(nodes) == {"open"}, f"not every node reaches the NFS server: {figures}")
        require(figures["from a pod"].endswith("closed"), "a tenant's pod can connect to the NFS server")
