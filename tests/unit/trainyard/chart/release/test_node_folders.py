"""Folders on nodes that log collectors write: read from their rendered pods, and emptied."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from rendering import one
from trainyard.chart.release import node_folders
from trainyard.errors import TrainyardError
from trainyard_dev.chart import package


class Cluster:
    """The collectors' DaemonSet, and whether pods come up."""

    def __init__(self, daemons: dict[str, Any] | None) -> None:
        self.daemons, self.applied, self.done = daemons, list[dict[str, Any]](), list[str]()
        self.broken = False

    def find(self, *args: str) -> dict[str, Any] | None:
        return self.daemons if args[:2] == ("daemonset", "trainyard-logs") else None

    def apply(self, objects: list[dict[str, Any]], namespace: str) -> None:
        self.applied += objects

    def __call__(self, *args: str, **_: Any) -> SimpleNamespace:
        self.done.append(" ".join(args[:3]))
        if self.broken and args[0] == "rollout":
            raise TrainyardError("timed out waiting")
        return SimpleNamespace(stdout="")


@pytest.fixture(scope="module")
def rendered() -> list[dict[str, Any]]:
    return package.render("kind", sets=["logs.enabled=true", "global.imagePullSecrets[0].name=pull"])


def installed(rendered: list[dict[str, Any]], on: bool = True) -> Any:
    hooks = yaml.safe_dump(one(rendered, "Job", "trainyard-teardown"))
    cluster = Cluster(one(rendered, "DaemonSet", "trainyard-logs") if on else None)
    return SimpleNamespace(kubectl=cluster, name="trainyard", namespace="n", helm=lambda *_, **__: hooks)


def test_what_is_emptied_is_what_collectors_may_write_and_no_more(rendered: list[dict[str, Any]]) -> None:
    release, said = installed(rendered), list[str]()
    assert node_folders.written(release) == ["/var/lib/trainyard-logs"]
    node_folders.empty(release, node_folders.found(release), said.append)
    assert said == ["emptied /var/lib/trainyard-logs of each node"]
    (made,) = release.kubectl.applied
    spec = made["spec"]["template"]["spec"]
    assert [one["hostPath"]["path"] for one in spec["volumes"]] == ["/var/lib/trainyard-logs"]
    assert spec["tolerations"] == [{"operator": "Exists"}] and spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["automountServiceAccountToken"] is False and "hostNetwork" not in spec
    (first,), (rest,) = spec["initContainers"], spec["containers"]
    assert "platform" in first["image"] and first["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert rest["securityContext"]["runAsNonRoot"] and "volumeMounts" not in rest
    assert release.kubectl.done == ["rollout status daemonset/trainyard-node-folders",
                                    "delete daemonset trainyard-node-folders"]  # fmt: skip


def test_a_node_that_does_not_answer_is_said_and_ends_nothing(rendered: list[dict[str, Any]]) -> None:
    release, said = installed(rendered), list[str]()
    release.kubectl.broken = True
    node_folders.empty(release, node_folders.found(release), said.append)
    assert said[0].startswith("not emptied: /var/lib/trainyard-logs of each node: timed out")
    assert release.kubectl.done[-1] == "delete daemonset trainyard-node-folders"


def test_without_collectors_there_is_nothing_to_do(rendered: list[dict[str, Any]]) -> None:
    release = installed(rendered, on=False)
    assert node_folders.written(release) == [] and node_folders.found(release) == node_folders.Folders()
    node_folders.empty(release, node_folders.found(release), pytest.fail)
    assert release.kubectl.applied == release.kubectl.done == []


def test_the_program_empties_a_folder_and_follows_no_link(tmp_path: Path) -> None:
    folder, beside = tmp_path / "state", tmp_path / "beside"
    (folder / "queue" / "deep").mkdir(parents=True)
    beside.mkdir()
    for file in (folder / "positions", folder / "queue" / "deep" / "1", beside / "stays"):
        file.write_text("x")
    (folder / "link").symlink_to(beside)
    subprocess.run([sys.executable, "-c", node_folders.EMPTY, str(folder)], check=True)
    assert list(folder.iterdir()) == [] and (beside / "stays").exists()
