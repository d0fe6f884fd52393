"""Clusters: kind's configuration, and valid names."""

from pathlib import Path

import pytest
import yaml

from trainyard.errors import UsageError
from trainyard_dev.cluster import config, nodes
from trainyard_dev.cluster.nodes import Mount
from trainyard_dev.versions import load


def test_nodes_are_named_as_kind_names_them() -> None:
    made = config.nodes("lab")
    assert [n.name for n in made] == ["lab-control-plane", "lab-worker", "lab-worker2", "lab-worker3"]
    assert [n.has_gpus for n in made] == [False, True, True, False]
    assert made[3].labels == {"trainyard.io/pool": "cpu"}


def test_rendered_configuration() -> None:
    mounts = {"lab-worker": [Mount(Path("/here"), "/there"), Mount(Path("/a"), "/b", read_only=False)]}
    made = yaml.safe_load(config.render("docker.io/kindest/node:v1.2.3", mounts, "lab"))
    assert made["kind"] == "Cluster"
    assert made["networking"]["disableDefaultCNI"] is True
    assert {n["image"] for n in made["nodes"]} == {"docker.io/kindest/node:v1.2.3"}
    assert [n["role"] for n in made["nodes"]] == ["control-plane", "worker", "worker", "worker"]
    assert [n.get("labels", {}).get("trainyard.io/pool") for n in made["nodes"]] == [None, "gpu", "gpu", "cpu"]
    assert made["nodes"][1]["extraMounts"] == [
        {"hostPath": "/here", "containerPath": "/there", "readOnly": True},
        {"hostPath": "/a", "containerPath": "/b", "readOnly": False},
    ]
    assert made["nodes"][2]["extraMounts"] == []
    [held] = [
        patch
        for text in made["kubeadmConfigPatches"]
        if (patch := yaml.safe_load(text))["kind"] == "ClusterConfiguration"
    ]
    pins = load().tools
    assert (
        held["etcd"]["local"]["imageTag"] == f"{pins['etcd'].number}-0"
        and held["dns"]["imageTag"] == pins["coredns"].version
    )
    assert 'config_path = "/etc/containerd/certs.d"' in "".join(made["containerdConfigPatches"])


@pytest.mark.parametrize("name", ["trainyard", "a", "a-1", "0", "x" * 40])
def test_good_names(name: str) -> None:
    assert config.check_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a.b", "a b", "x" * 41, "../up", "a\n", "ä"])
def test_bad_names(name: str) -> None:
    with pytest.raises(UsageError, match="invalid cluster name"):
        config.check_name(name)


@pytest.mark.parametrize(
    ("listed", "has"),
    [("nodev\tproc\n\text4\n", False), ("nodev\tnfs\n", True), ("nodev\tnfs4\n\n", True), ("nodev\tnfsd\n", False)],
)
def test_whether_the_kernel_mounts_nfs(listed: str, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "filesystems").write_text(listed)
    monkeypatch.setattr(Path, "is_dir", lambda self: False)  # no module folder
    assert nodes.kernel_has_nfs(tmp_path / "filesystems") is has
