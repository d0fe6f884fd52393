"""The choice of kubeconfig, context and namespace, errors for bad ones, and the identity that makes an object."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from local_server import kubeconfig

from trainyard.errors import TrainyardError
from trainyard.kube import Access, KubeError, caller
from trainyard.names import SUBMITTER


def _config(path: Path, **user: object) -> Path:
    config = yaml.safe_load(kubeconfig(path, "http://127.0.0.1:1", **(user or {"token": "abc"})).read_text())
    config["contexts"].append({"name": "bare", "context": {"cluster": "lab", "user": "me"}})
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the kubeconfig of the person who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def test_the_context_s_namespace_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{_config(tmp_path / 'config')}")
    assert Access().connect().namespace == "vision"
    assert Access(context="bare").connect().namespace == "default"
    assert Access(namespace="speech").connect().namespace == "speech"


def test_home(tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    _config(tmp_path / "home" / ".kube" / "config")
    assert Access().connect().namespace == "vision"


def test_no_kubeconfig() -> None:
    with pytest.raises(TrainyardError, match=r"no kubeconfig found at ~/\.kube/config\. pass --kubeconfig"):
        Access().connect()


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "{", "apiVersion: v1\nkind: Config\n", "\x00\xff"])
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(TrainyardError, match="invalid kubeconfig"):
        Access(kubeconfig=str(tmp_path / "config")).connect()


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1"}


@pytest.mark.parametrize(
    ("name", "user", "asked", "says"),
    [
        ("absent", {}, {}, "no such kubeconfig"),
        ("config", {}, {"context": "moon"}, "no context 'moon'"),
        ("config", {"exec": {**PLUGIN, "command": "false", "interactiveMode": "Never"}}, {},
         "the log-in of the kubeconfig failed"),
        ("config", {}, {"groups": ("staff",)}, "--as-group needs --as"),
    ],
)  # fmt: skip
def test_what_leads_to_no_cluster(tmp_path: Path, name: str, user: Any, asked: dict[str, Any], says: str) -> None:
    _config(tmp_path / "config", **user)
    with pytest.raises(TrainyardError, match=says):
        Access(kubeconfig=str(tmp_path / name), **asked).connect()


def test_a_log_in_that_fails_before_a_person_s_eyes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """On a terminal its program says itself what is wrong; the loader has nothing to say then."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    said = ["-c", "echo you are not logged in >&2; exit 1"]
    plugin = {"exec": {**PLUGIN, "command": "sh", "args": said}}
    with (
        Path(os.devnull).open() as terminal,
        pytest.raises(TrainyardError, match="its credential plugin failed with the error above"),
    ):
        monkeypatch.setattr(sys, "stdin", terminal)  # the program gets it, and pytest's is no file
        Access(kubeconfig=str(_config(tmp_path / "config", **plugin))).connect()
    assert "you are not logged in" in capfd.readouterr().err


def test_a_kubeconfig_that_acts_as_somebody_as_for_kubectl(tmp_path: Path) -> None:
    user = {"token": "abc", "as": "ada", "as-groups": ["vision-members", "staff"]}
    file = str(_config(tmp_path / "config", **user))
    kube = Access(kubeconfig=file).connect()
    assert (kube.user, kube.groups) == ("ada", ("vision-members", "staff"))
    kube = Access(kubeconfig=file, user="grace").connect()
    assert (kube.user, kube.groups) == ("grace", ())
    kube = Access(kubeconfig=str(_config(tmp_path / "config"))).connect()
    assert (kube.user, kube.groups) == ("", ())


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    kube = Access(kubeconfig=str(_config(tmp_path / "config"))).connect()
    with pytest.raises(TrainyardError, match=r"http://127.0.0.1:1: cannot reach the API server: Connection refused"):
        kube.get(kube.path("v1", "pods"))


class Cluster:
    """A cluster that knows its caller, or doesn't say."""

    def __init__(self, who: str) -> None:
        self.who = who

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        assert obj == {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        if not self.who:
            raise KubeError("not found", status=404)
        return {"status": {"userInfo": {"username": self.who}}}


def test_it_is_signed_beside_what_is_noted_already() -> None:
    obj: dict[str, Any] = {"metadata": {"annotations": {"own": "note"}}}
    caller.sign(Cluster("ada"), obj)  # type: ignore[arg-type]
    assert obj["metadata"]["annotations"] == {"own": "note", SUBMITTER: "ada"}


def test_it_stays_unsigned_where_the_cluster_does_not_say() -> None:
    obj: dict[str, Any] = {"metadata": {}}
    caller.sign(Cluster(""), obj)  # type: ignore[arg-type]
    assert obj == {"metadata": {}}
