"""The output of `cluster env`: a shell's access to the cluster, as administrator or as a member."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.kube import Access
from trainyard_dev import tools


@pytest.fixture
def own(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tools, "binary", lambda name: Path(f"/tools/{name} set/{name}"))
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "kind-lab",
        "clusters": [{"name": "kind-lab", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "kind-lab", "context": {"cluster": "kind-lab", "user": "kind-lab"}}],
        "users": [{"name": "kind-lab", "user": {"token": "admin"}}],
    }
    made = cache / "clusters" / "lab" / "kubeconfig"
    made.parent.mkdir(parents=True)
    made.write_text(yaml.safe_dump(config))
    return made


def evaluated(lines: str) -> list[str]:
    script = f'{lines}\nprintf "%s\\n" "$KUBECONFIG" "$PATH"'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_shell_has_the_cluster_and_the_pinned_programs(own: Path, trainyard: Callable[..., Any]) -> None:
    kubeconfig, path = evaluated(trainyard("cluster", "env", "--name", "lab").out)
    assert kubeconfig == str(own)
    assert path.startswith("/tools/kubectl set:/tools/helm set:/")


def test_a_member_acts_in_the_team(own: Path, trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_CLUSTER", "lab")
    kubeconfig, _ = evaluated(trainyard("cluster", "env", "--member", "vision").out)
    assert Path(kubeconfig).stat().st_mode & 0o777 == 0o600
    kube = Access(kubeconfig=kubeconfig).connect()
    assert (kube.namespace, kube.user, kube.groups) == ("vision", "ada", ("vision-members", "system:authenticated"))
    assert Access(kubeconfig=str(own)).connect().user == ""


def test_a_cluster_that_is_not_there(cache: Path, trainyard: Callable[..., Any]) -> None:
    error = trainyard("cluster", "env", "--name", "moon").error()
    assert error == "no cluster named moon. create one with `make cluster-up`."
