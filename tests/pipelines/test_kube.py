"""The member's way to the cluster, on a real API server with the chart's rights."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pipeline_harness import PipelineHarness

from trainyard.kube import Access, Kube, KubeError
from trainyard.kube.client import JSON_PATCH


@pytest.fixture
def kube(harness: PipelineHarness) -> Kube:
    """Somebody of team vision."""
    groups = ("vision-members", "system:authenticated")
    return Access(str(harness.server.kubeconfig), namespace="vision", user="ada", groups=groups).connect()


@pytest.fixture
def config_maps(kube: Kube) -> Iterator[list[str]]:
    """Three ConfigMaps of the team."""
    names = [f"kube-{number}" for number in range(3)]
    for name in names:
        kube.create(_config_map(name))
    yield names
    for name in names:
        kube.delete(kube.path("v1", "configmaps", name))


def _config_map(name: str) -> dict[str, Any]:
    meta = {"name": name, "labels": {"test": "kube"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": "1"}}


def test_objects(kube: Kube, config_maps: list[str]) -> None:
    path = kube.path("v1", "configmaps", config_maps[0])
    assert kube.get(path)["data"] == {"a": "1"}
    assert kube.patch(path, {"data": {"b": "2"}})["data"] == {"a": "1", "b": "2"}
    change = [{"op": "replace", "path": "/data/a", "value": "3"}]
    assert kube.patch(path, change, content=JSON_PATCH)["data"]["a"] == "3"
    found = kube.list(kube.path("v1", "configmaps"), labelSelector="test=kube", limit="2")
    assert [one["metadata"]["name"] for one in found] == config_maps, "more than one page"
    assert kube.find(kube.path("v1", "configmaps", "absent")) is None
    assert kube.delete(kube.path("v1", "configmaps", "absent")) is False
    with pytest.raises(KubeError, match='configmaps "kube-0" already exists') as caught:
        kube.create(_config_map("kube-0"))
    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")


def test_what_the_member_may_not_do(kube: Kube) -> None:
    with pytest.raises(KubeError, match=r'User "ada" cannot get resource "secrets".*ask your platform engineer'):
        kube.get(kube.path("v1", "secrets", "trainyard-s3"))
    with pytest.raises(KubeError, match=r"the cluster knows no kind Rocket of v1\. correct apiVersion and kind"):
        kube.create({"apiVersion": "v1", "kind": "Rocket", "metadata": {"name": "x"}})


def test_a_dry_run_stores_nothing(kube: Kube) -> None:
    kube.create(_config_map("kube-dry"), dry_run=True)
    assert kube.find(kube.path("v1", "configmaps", "kube-dry")) is None


def test_a_watch_outlives_its_connection(kube: Kube, config_maps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainyard.kube.client.WATCH_S", 1)  # seconds after which the server ends each watch
    seen = []
    done = threading.Event()

    def look() -> None:
        for kind, found in kube.watch(kube.path("v1", "configmaps"), labelSelector="test=kube"):
            seen.append((kind, found["metadata"]["name"], found.get("data", {}).get("a")))
            if kind == "DELETED":
                return done.set()

    threading.Thread(target=look, daemon=True).start()
    path = kube.path("v1", "configmaps", config_maps[1])
    for value in ("2", "3"):
        threading.Event().wait(2.5)
        kube.patch(path, {"data": {"a": value}})
    kube.delete(path)
    assert done.wait(20)
    assert seen[:3] == [("ADDED", name, "1") for name in config_maps]
    assert [one for one in seen[3:] if one[0] == "MODIFIED"] == [
        ("MODIFIED", "kube-1", "2"),
        ("MODIFIED", "kube-1", "3"),
    ]
