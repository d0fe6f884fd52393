"""The hook that moves CRDs before an upgrade, on a real API server, with the rights that it has."""

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hook_api import SYSTEM, HookApi, due

from rendering import Objects, one
from trainyard_agent.api import APPLY, ApiError
from trainyard_agent.install import crds
from trainyard_agent.install.setup import Clock
from trainyard_agent.say import PlatformError
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.versions import load

pytestmark = pytest.mark.long
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "pytorchjobs.kubeflow.org"
BEFORE = "mpijobs.kubeflow.org"  # the hook moves it before JOBS


@pytest.fixture
def bundle(hooks: Objects, server: ApiServer) -> Iterator[Objects]:
    """The CRDs as the hook's pod finds them; the server has exactly these again afterwards."""
    data = one(hooks, "ConfigMap", "trainyard-crds")["data"]
    found = [json.loads(data[key]) for key in sorted(data)]
    yield copy.deepcopy(found)
    now = held(server)
    if now["status"]["storedVersions"] != ["v1"]:
        now["status"]["storedVersions"] = ["v1"]
        assert server.replace(now, sub="status").ok
    for crd in found:
        as_installed(server, crd)


def held(server: ApiServer, name: str = JOBS) -> dict[str, Any]:
    return server.call("GET", f"{CRDS}/{name}").body


def properties(crd: dict[str, Any]) -> dict[str, Any]:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def as_installed(server: ApiServer, crd: dict[str, Any]) -> None:
    """Put a CRD in place whose fields are Helm's, as after an installation."""
    query = {"fieldManager": "helm", "force": "true"}
    answer = server.call("PATCH", f"{CRDS}/{crd['metadata']['name']}", crd, content=APPLY, query=query)
    assert answer.ok, answer.message


def move(server: ApiServer, bundle: Objects) -> None:
    crds.move(HookApi(server, "trainyard-crds"), bundle, Clock(20))


def test_a_crd_that_lacks_a_field_gets_it(server: ApiServer, bundle: Objects) -> None:
    old = copy.deepcopy(one(bundle, "CustomResourceDefinition", JOBS))
    del properties(old)["nprocPerNode"], old["metadata"]["annotations"][crds.VERSION]
    as_installed(server, old)
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "kept", "namespace": "default"},
           "spec": {"pytorchReplicaSpecs": {}}}  # fmt: skip
    assert server.create(job).ok
    assert "nprocPerNode" not in properties(held(server))
    move(server, bundle)
    assert properties(held(server))["nprocPerNode"]
    assert held(server)["metadata"]["annotations"][crds.VERSION] == load().raw["components"]["training-operator"]
    assert server.find(job, "kept")
    server.call("DELETE", f"{server.path(job)}/kept")


def test_only_crds_that_are_to_move_need_the_hook(server: ApiServer, bundle: Objects) -> None:
    move(server, bundle)
    assert not [obj for obj in due(server) if obj["metadata"]["name"] == "trainyard-crds"]
    edited = held(server)
    del properties(edited)["nprocPerNode"]
    assert server.replace(edited).ok
    assert list(one(due(server), "ConfigMap", "trainyard-crds")["data"]) == [f"{JOBS}.json"]
    move(server, bundle)
    assert properties(held(server))["nprocPerNode"]
    assert not [obj for obj in due(server) if obj["metadata"]["name"] == "trainyard-crds"]


def test_what_a_job_has_made_needs_no_second_job(server: ApiServer, made: Any) -> None:
    jobs = {"trainyard-backup-claim", "trainyard-admission-init"}
    assert jobs <= {obj["metadata"]["name"] for obj in due(server) if obj["kind"] == "Job"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claim,
          "metadata": {"name": "trainyard-backup", "namespace": SYSTEM}})  # fmt: skip
    made({"apiVersion": "v1", "kind": "Secret",
          "metadata": {"name": "volcano-admission-secret", "namespace": SYSTEM}})  # fmt: skip
    assert not jobs & {obj["metadata"]["name"] for obj in due(server)}


def test_a_second_move_changes_nothing(server: ApiServer, bundle: Objects, capsys: pytest.CaptureFixture[str]) -> None:
    move(server, bundle)
    before = held(server)["metadata"]["generation"]
    capsys.readouterr()
    move(server, bundle)
    assert held(server)["metadata"]["generation"] == before
    assert capsys.readouterr().out.count("was up to date") == len(bundle)


def test_a_crd_that_is_missing_is_made_and_no_other(server: ApiServer, bundle: Objects) -> None:
    server.call("DELETE", f"{CRDS}/{JOBS}")
    while server.call("GET", f"{CRDS}/{JOBS}").ok:  # its objects go first
        time.sleep(0.1)
    move(server, bundle)
    assert held(server)["spec"]["names"]["kind"] == "PyTorchJob"
    foreign = copy.deepcopy(bundle[0])
    foreign["metadata"]["name"] = "others.kubeflow.org"
    with pytest.raises(PlatformError, match=r"others\.kubeflow\.org can't be read: .*cannot get resource"):
        move(server, [foreign])
    with pytest.raises(ApiError, match="cannot patch resource"):
        HookApi(server, "trainyard-crds").apply(f"{CRDS}/others.kubeflow.org", foreign, manager="x")


def test_a_version_that_is_stored_is_never_dropped(server: ApiServer, bundle: Objects) -> None:
    newer = copy.deepcopy(one(bundle, "CustomResourceDefinition", JOBS))
    newer["spec"]["versions"][0]["storage"] = False
    newer["spec"]["versions"].append(newer["spec"]["versions"][0] | {"name": "v2alpha1", "storage": True})
    del newer["metadata"]["annotations"][crds.VERSION]
    as_installed(server, newer)
    moved = copy.deepcopy(bundle)
    first = one(moved, "CustomResourceDefinition", BEFORE)
    del properties(first)[next(iter(properties(first)))]
    before = held(server, BEFORE)["metadata"]["generation"]
    with pytest.raises(PlatformError, match="must not lose version v2alpha1: objects are stored in it"):
        move(server, moved)
    assert [v["name"] for v in held(server)["spec"]["versions"]] == ["v1", "v2alpha1"]
    # Nor did one that came before it in the bundle move.
    assert held(server, BEFORE)["metadata"]["generation"] == before


def test_a_newer_crd_is_not_moved_back(server: ApiServer, bundle: Objects, capsys: pytest.CaptureFixture[str]) -> None:
    newer = copy.deepcopy(one(bundle, "CustomResourceDefinition", JOBS))
    newer["metadata"]["annotations"][crds.VERSION] = "1.10.0"
    properties(newer)["later"] = {"type": "string"}
    as_installed(server, newer)
    move(server, bundle)
    assert "stays: the cluster has it from 1.10.0, which is newer" in capsys.readouterr().out
    assert "later" in properties(held(server))
