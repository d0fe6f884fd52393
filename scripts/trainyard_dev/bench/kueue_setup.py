"""Kueue's objects on an API server: its kinds, its manager's configuration, and queues with the nodes' capacity."""

from pathlib import Path
from typing import Any

import yaml

from trainyard_agent.quantity import number
from trainyard_dev import tools
from trainyard_dev.bench.harness import GPU
from trainyard_dev.bench.objects import KUEUE

SYSTEM, ACCOUNT, SECRET = "kueue-system", "kueue-metrics", "kueue-webhook-server-cert"
VERSION = "v1beta2"  # in which Kueue stores its kinds: no webhook runs that could convert another
API = f"/apis/{KUEUE}/{VERSION}"
WORKLOADS = f"{API}/namespaces/default/workloads"
LEVEL = "kubernetes.io/hostname"
ORDER_S = 1.0  # workloads are ordered by the second in which Kueue made them, arbitrarily within a second


def crds() -> list[dict[str, Any]]:
    """Kueue's kinds, from its pinned package, with the webhooks for which its manager wants to write certificates."""
    folder = tools.module_dir("kueue") / "config/components/crd"
    found = [yaml.safe_load(file.read_text()) for file in sorted((folder / "bases").glob("*.yaml"))]
    converted = yaml.safe_load((folder / "kustomization.yaml").read_text())["patches"]
    for patch in (yaml.safe_load((folder / one["path"]).read_text()) for one in converted):
        (crd,) = [one for one in found if one["metadata"]["name"] == patch["metadata"]["name"]]
        crd["spec"]["conversion"] = patch["spec"]["conversion"]
    return found


def configuration(health: int, metrics: int, hook: int, certificates: Path) -> dict[str, Any]:
    """The manager's configuration, as in Kueue's chart except for addresses, pods as jobs, and the clients' rate."""
    kinds = {"Pod": 5, "Workload.kueue.x-k8s.io": 5}
    kinds |= {f"{kind}.kueue.x-k8s.io": 1 for kind in ("LocalQueue", "ClusterQueue", "ResourceFlavor")}
    return {
        "apiVersion": f"config.{KUEUE}/{VERSION}",
        "kind": "Configuration",
        "namespace": SYSTEM,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": f"127.0.0.1:{metrics}"},
        "webhook": {"host": "127.0.0.1", "port": hook, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "controller": {"groupKindConcurrency": kinds},
        "clientConnection": {"qps": 2000, "burst": 2000},
        "internalCertManagement": {
            "enable": True,
            "webhookServiceName": "kueue-webhook-service",
            "webhookSecretName": SECRET,
        },
        "integrations": {"frameworks": ["pod"]},
        "featureGates": {"VisibilityOnDemand": False},
    }


def queues(settings: dict[str, Any], name: str, nodes: list[dict[str, str]]) -> list[dict[str, Any]]:
    """A flavor, a ClusterQueue with the capacity of these nodes, and its LocalQueue in namespace default."""
    kind = {"apiVersion": f"{KUEUE}/{VERSION}"}
    made = [kind | {"kind": "ResourceFlavor", "metadata": {"name": "all"}, "spec": {}}]
    room = {resource: sum(number(node.get(resource, "0")) for node in nodes) for resource in ("cpu", "memory", GPU)}
    quotas = [{"name": resource, "nominalQuota": str(int(value))} for resource, value in room.items()]
    spec = {
        "namespaceSelector": {},
        "queueingStrategy": settings["strategy"],
        "resourceGroups": [{"coveredResources": list(room), "flavors": [{"name": "all", "resources": quotas}]}],
    }
    made.append(kind | {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
    local = {"kind": "LocalQueue", "metadata": {"name": name, "namespace": "default"}, "spec": {"clusterQueue": name}}
    return [*made, kind | local]


def secret() -> dict[str, Any]:
    """The secret into which the manager writes its certificates."""
    meta = {"name": SECRET, "namespace": SYSTEM}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta}


def reader() -> list[dict[str, Any]]:
    """An account that may read the manager's metrics."""
    group = "rbac.authorization.k8s.io"
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": SYSTEM}},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}],
        },
    ]
