"""The kind configuration of a cluster: `manifests/cluster/kind.yaml` plus this machine's image and mounts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard_dev.cluster.nodes import Mount
from trainyard_dev.versions import load

MANIFESTS = ROOT / "manifests" / "cluster"
POOL = "trainyard.io/pool"
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class Node:
    """One node, with the name that kind will give it."""

    name: str
    role: str
    labels: dict[str, str]

    @property
    def has_gpus(self) -> bool:
        """Whether the cluster's configuration puts it into the GPU pool."""
        return self.labels.get(POOL) == "gpu"


def check_name(name: str) -> str:
    """Refuses a cluster name that is invalid in host names."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"invalid cluster name: `{name}`", hint="use 1 to 40 lower-case letters, digits, inner hyphens"
        )
    return name


def template(gpu: str = "mock") -> dict[str, Any]:
    """The kind configuration in the repository. One node has all real GPUs; the others are then CPU nodes."""
    config = yaml.safe_load((MANIFESTS / "kind.yaml").read_text())
    if gpu == "real":
        for spec in [one for one in config["nodes"] if one.get("labels") == {POOL: "gpu"}][1:]:
            spec["labels"] = {POOL: "cpu"}
    return config


def nodes(cluster: str, gpu: str = "mock") -> list[Node]:
    """The nodes in kind's order, with kind's names."""
    made: list[Node] = []
    for spec in template(gpu)["nodes"]:
        same = sum(node.role == spec["role"] for node in made)
        suffix = str(same + 1) if same else ""
        made.append(Node(f"{cluster}-{spec['role']}{suffix}", spec["role"], spec.get("labels", {})))
    return made


def render(image: str, mounts: dict[str, list[Mount]], cluster: str, patches: Sequence[dict[str, Any]] = (), *,
           gpu: str = "mock") -> str:  # fmt: skip
    """The YAML for `kind create cluster --config`; `mounts` by node name, `patches` for kubeadm."""
    config = template(gpu)
    pins = load().tools
    # kubeadm of another minor version uses other arguments.
    lazy = {"extraEnvs": [{"name": "GOGC", "value": "400"}]}  # the same as images/node sets for the other programs
    alone = lazy | {"extraArgs": {"leader-elect": "false"}}
    beats = {"heartbeat-interval": "500", "election-timeout": "5000", "unsafe-no-fsync": "true"}  # lost with its node
    etcd = {"imageTag": f"{pins['etcd'].number}-0", "extraArgs": beats}
    held = {"kind": "ClusterConfiguration", "etcd": {"local": etcd | lazy}, "apiServer": lazy, "scheduler": alone,
            "controllerManager": alone, "dns": {"imageTag": pins["coredns"].version}}  # fmt: skip
    config["kubeadmConfigPatches"] += [yaml.safe_dump(one) for one in (held, *patches)]
    for spec, node in zip(config["nodes"], nodes(cluster), strict=True):
        spec["image"] = image
        spec["extraMounts"] = [
            {"hostPath": str(m.host), "containerPath": m.node, "readOnly": m.read_only}
            for m in mounts.get(node.name, [])
        ]
    return yaml.safe_dump(config, sort_keys=False)


def write(path: Path, text: str) -> Path:
    """Writes the configuration next to the cluster's other files in the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
