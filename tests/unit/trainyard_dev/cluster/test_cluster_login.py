"""A cluster whose API server accepts tokens: kubeadm's configuration, and that no other cluster changes."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from trainyard_dev import tools
from trainyard_dev.cluster import config, login
from trainyard_dev.tools import build
from trainyard_dev.versions import load


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "cache_dir", lambda: tmp_path)


def test_unless_asked_for_nothing_changes() -> None:
    assert "authentication" not in config.render("node:1", {}, "lab") and not login.is_on("lab")


def test_it_begins_with_nobody_and_is_told_later(tmp_path: Path) -> None:
    mount = login.prepared("lab")
    assert login.is_on("lab") and not login.is_on("other") and mount.read_only and mount.node == "/etc/trainyard-login"
    file = mount.host / "authentication.yaml"
    assert yaml.safe_load(file.read_text())["jwt"] == []
    login.publish("lab", "later")
    assert file.read_text() == "later" and file.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in mount.host.iterdir()] == ["authentication.yaml"]


@pytest.mark.skipif(not build.is_built(build.builder("kubeadm")), reason="kubeadm isn't built")
def test_kubeadm_writes_an_api_server_that_reads_the_file(tmp_path: Path) -> None:
    """The configuration as kind merges it: our arguments join its own list."""
    made = [yaml.safe_load(text) for text in yaml.safe_load(config.render("n", {}, "lab", [login.patch()]))[
        "kubeadmConfigPatches"]]  # fmt: skip
    (patch,) = (one for one in made if "extraArgs" in one.get("apiServer", {}))
    named = [{"name": name, "value": value} for name, value in patch["apiServer"]["extraArgs"].items()]
    said = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kubernetesVersion": f"v{load().kubernetes}"}
    (tmp_path / "kubeadm.yaml").write_text(
        yaml.safe_dump_all(
            [
                patch | said | {"apiServer": patch["apiServer"] | {"extraArgs": named}},
                {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
                 "localAPIEndpoint": {"advertiseAddress": "192.0.2.1"}, "nodeRegistration": {"name": "lab"}},
            ]
        )
    )  # fmt: skip
    argv = [tools.binary("kubeadm"), "init", "phase", "control-plane", "apiserver", "--dry-run", "--config",
            tmp_path / "kubeadm.yaml"]  # fmt: skip
    env = os.environ | {"KUBEADM_INIT_DRYRUN_DIR": str(tmp_path)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    (written,) = tmp_path.rglob("kube-apiserver.yaml")
    pod = yaml.safe_load(written.read_text())["spec"]
    assert "--authentication-config=/etc/trainyard-login/authentication.yaml" in pod["containers"][0]["command"]
    assert "/etc/trainyard-login" in [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]]
    assert {"path": "/etc/trainyard-login", "type": "Directory"} in [one.get("hostPath") for one in pod["volumes"]]
