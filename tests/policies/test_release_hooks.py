"""The hooks before an upgrade and an uninstallation, on a real API server, with the rights that they have."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainyard.chart import helm
from trainyard_agent import crds, retire, teardown
from trainyard_agent.api import APPLY, Api, ApiError
from trainyard_agent.say import PlatformError
from trainyard_agent.setup import Clock
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.client import Identity
from trainyard_dev.chart import package, parts
from trainyard_dev.versions import load

SYSTEM = "trainyard-system"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "pytorchjobs.kubeflow.org"
BEFORE = "mpijobs.kubeflow.org"  # the hook moves it before JOBS
NFS = "10.96.0.49"
Objects = list[dict[str, Any]]


class HookApi(Api):
    """The hook's client with its pod's account, over the test's connection."""

    def __init__(self, server: ApiServer, account: str) -> None:
        self.server, self.identity = server, Identity.account(SYSTEM, account)

    @property
    def namespace(self) -> str:
        return SYSTEM

    def call(self, method: str, path: str, body: Any = None, *, content: str = "application/json",
             query: dict[str, str] | None = None, timeout: float = 15.0) -> dict[str, Any]:  # fmt: skip
        answer = self.server.call(method, path, body, identity=self.identity, content=content, query=query)
        if not answer.ok:
            raise ApiError(answer.status, answer.message)
        return answer.body


@pytest.fixture(scope="module")
def hooks(server: ApiServer) -> Iterator[Objects]:
    """All hook objects of the chart; those that give rights are on the server."""
    found = [obj for obj in package.render("kind") if "helm.sh/hook" in obj["metadata"].get("annotations", {})]
    made = [obj for obj in found if obj["kind"].removeprefix("Cluster") in ("Role", "RoleBinding")
            and obj["metadata"]["name"] in ("trainyard-crds", "trainyard-teardown")]  # fmt: skip
    for obj in made:
        assert server.apply(obj).ok
    yield found
    for obj in made:
        server.call("DELETE", f"{server.path(obj)}/{obj['metadata']['name']}")


def named(objects: Objects, kind: str, name: str) -> dict[str, Any]:
    return next(obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name))


@pytest.fixture
def bundle(hooks: Objects, server: ApiServer) -> Iterator[Objects]:
    """The CRDs as the hook's pod finds them; the server has exactly these again afterwards."""
    data = named(hooks, "ConfigMap", "trainyard-crds")["data"]
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
    old = copy.deepcopy(named(bundle, "CustomResourceDefinition", JOBS))
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


def due(server: ApiServer, chart: Path) -> Objects:
    """The hook objects that `helm upgrade` renders, which looks at the cluster."""
    text = helm.call(
        "template", package.RELEASE, chart, "--namespace", SYSTEM, "--kubeconfig", server.kubeconfig,
        "--kube-version", load().kubernetes, "--dry-run=server", "--is-upgrade", "--values", parts.profile_file("kind"),
        "--set", "backup.enabled=true,backup.target.claim.size=1Gi",
    )  # fmt: skip
    return [obj for obj in helm.parse(text) if "helm.sh/hook" in obj["metadata"].get("annotations", {})]


def test_only_crds_that_are_to_move_need_the_hook(
    server: ApiServer, bundle: Objects, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chart = package.assemble(tmp_path_factory.mktemp("hooks"), csi=False)
    move(server, bundle)
    assert not [obj for obj in due(server, chart) if obj["metadata"]["name"] == "trainyard-crds"]
    edited = held(server)
    del properties(edited)["nprocPerNode"]
    assert server.replace(edited).ok
    assert list(named(due(server, chart), "ConfigMap", "trainyard-crds")["data"]) == [f"{JOBS}.json"]
    move(server, bundle)
    assert properties(held(server))["nprocPerNode"]
    assert not [obj for obj in due(server, chart) if obj["metadata"]["name"] == "trainyard-crds"]


def test_what_a_job_has_made_needs_no_second_job(
    server: ApiServer, made: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chart = package.assemble(tmp_path_factory.mktemp("hooks"), csi=False)
    jobs = {"trainyard-backup-claim", "trainyard-admission-init"}
    assert jobs <= {obj["metadata"]["name"] for obj in due(server, chart) if obj["kind"] == "Job"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": claim,
          "metadata": {"name": "trainyard-backup", "namespace": SYSTEM}})  # fmt: skip
    made({"apiVersion": "v1", "kind": "Secret",
          "metadata": {"name": "volcano-admission-secret", "namespace": SYSTEM}})  # fmt: skip
    assert not jobs & {obj["metadata"]["name"] for obj in due(server, chart)}


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
    newer = copy.deepcopy(named(bundle, "CustomResourceDefinition", JOBS))
    newer["spec"]["versions"][0]["storage"] = False
    newer["spec"]["versions"].append(newer["spec"]["versions"][0] | {"name": "v2alpha1", "storage": True})
    del newer["metadata"]["annotations"][crds.VERSION]
    as_installed(server, newer)
    moved = copy.deepcopy(bundle)
    first = named(moved, "CustomResourceDefinition", BEFORE)
    del properties(first)[next(iter(properties(first)))]
    before = held(server, BEFORE)["metadata"]["generation"]
    with pytest.raises(PlatformError, match="must not lose version v2alpha1: objects are stored in it"):
        move(server, moved)
    assert [v["name"] for v in held(server)["spec"]["versions"]] == ["v1", "v2alpha1"]
    # Nor did one that came before it in the bundle move.
    assert held(server, BEFORE)["metadata"]["generation"] == before


def test_a_newer_crd_is_not_moved_back(server: ApiServer, bundle: Objects, capsys: pytest.CaptureFixture[str]) -> None:
    newer = copy.deepcopy(named(bundle, "CustomResourceDefinition", JOBS))
    newer["metadata"]["annotations"][crds.VERSION] = "1.10.0"
    properties(newer)["later"] = {"type": "string"}
    as_installed(server, newer)
    move(server, bundle)
    assert "stays: the cluster has it from 1.10.0, which is newer" in capsys.readouterr().out
    assert "later" in properties(held(server))


@pytest.fixture
def plan(hooks: Objects) -> dict[str, Any]:
    """The plan of the teardown, as its pod reads it."""
    return json.loads(named(hooks, "ConfigMap", "trainyard-teardown")["data"]["plan.json"])


@pytest.fixture
def made(server: ApiServer) -> Iterator[Any]:
    """`made(obj, status)` puts an object on the server until the test ends."""
    paths: list[str] = []

    def make(obj: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = {"namespace": "default"} | obj["metadata"]
        answer = server.create(obj | {"metadata": meta})
        assert answer.ok, answer.message
        paths.append(f"{server.path(answer.body)}/{meta['name']}")
        if status:
            assert server.replace(answer.body | {"status": status}, sub="status").ok
        return answer.body

    yield make
    for path in reversed(paths):  # no controller runs that would take finalizers off
        no_finalizers = {"metadata": {"finalizers": None}}
        server.call("PATCH", path, no_finalizers, content="application/merge-patch+json")
        server.call("DELETE", path, {"gracePeriodSeconds": 0})


def job(name: str) -> dict[str, Any]:
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name},
            "spec": {"pytorchReplicaSpecs": {}}}  # fmt: skip


def pod(name: str, claim: str, owner: dict[str, Any] | None = None) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name}
    if owner:
        ref = {key: owner[key] for key in ("apiVersion", "kind")} | {"controller": True}
        meta["ownerReferences"] = [ref | {key: owner["metadata"][key] for key in ("name", "uid")}]
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume], "serviceAccountName": "teardown-test"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@pytest.fixture
def served(made: Any) -> str:
    """A claim whose volume lies on the release's NFS server, and an account for pods."""
    made({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "teardown-test"}})
    ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": "files"}
    made({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "files"},
          "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "claimRef": ref,
                   "nfs": {"server": NFS, "path": "/x"}}})  # fmt: skip
    return "files"


def account(server: ApiServer) -> HookApi:
    return HookApi(server, "trainyard-teardown")


def test_teardown_stops_jobs_that_run_and_keeps_records(
    server: ApiServer, plan: dict[str, Any], made: Any, hooks: Objects
) -> None:
    made(job("runs"))
    condition = {"type": "Succeeded", "status": "True", "reason": "r", "message": "m"}
    made(job("done"), {"conditions": [condition], "replicaStatuses": {}})
    teardown.stop_training(account(server), plan["training"])
    assert server.find(job("x") | {"metadata": {"namespace": "default"}}, "runs") is None
    assert server.find(job("x") | {"metadata": {"namespace": "default"}}, "done")


def test_teardown_ends_what_mounts_the_server_and_names_what_it_may_not(
    server: ApiServer, plan: dict[str, Any], made: Any, served: str, hooks: Objects
) -> None:
    assert plan["nfsServer"] == NFS
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    batch = made(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "copy"}, "spec": {"template": template}}
    )
    made(pod("of-job", served, batch))
    made(pod("alone", served))
    made(pod("elsewhere", "other"))
    notebook = made({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "notebook"},
                     "spec": {"serviceName": "n", "selector": {"matchLabels": {"a": "b"}},
                              "template": {"metadata": {"labels": {"a": "b"}},
                                           "spec": {"containers": [{"name": "c", "image": "i"}]}}}})  # fmt: skip
    made(pod("of-notebook", served, notebook))
    said = teardown.still_mounted(account(server), plan, {})
    assert "default/of-notebook (it belongs to StatefulSet notebook; scale that to none)" in said
    assert "default/alone" in said and "elsewhere" not in said
    pods = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default"}}
    assert server.find(pods, "alone") is None and server.find(pods, "elsewhere")
    assert server.find(batch, "copy") is None or "deletionTimestamp" in server.find(batch, "copy")["metadata"]  # type: ignore[index]


def test_a_pod_that_should_have_ended_long_ago_is_not_waited_for() -> None:
    assert teardown.stuck({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    soon = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    assert not teardown.stuck({"metadata": {"deletionTimestamp": soon}})
    assert not teardown.stuck({"metadata": {}})


def test_teardown_scales_the_release_s_own_mounts_to_none(
    server: ApiServer, plan: dict[str, Any], made: Any, hooks: Objects
) -> None:
    template = {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}],
                         "volumes": [{"name": "v", "nfs": {"server": NFS, "path": "/x"}}]}}  # fmt: skip
    meta = {"name": "own", "namespace": SYSTEM, "labels": {"app.kubernetes.io/instance": "trainyard"}}
    own = made({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
                "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}})  # fmt: skip
    closed = teardown.close_own(account(server), plan, set())
    assert server.find(own, "own")["spec"]["replicas"] == 0  # type: ignore[index]
    assert list(closed.values()) == [1]
    teardown.open_own(account(server), closed)
    assert server.find(own, "own")["spec"]["replicas"] == 1  # type: ignore[index]


def test_an_uninstallation_that_gives_up_starts_what_it_has_stopped(
    server: ApiServer,
    plan: dict[str, Any],
    made: Any,
    served: str,
    hooks: Objects,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Helm 4 would meet its scale as a conflict with every later upgrade."""
    template = {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}],
                         "volumes": [{"name": "v", "nfs": {"server": NFS, "path": "/x"}}]}}  # fmt: skip
    meta = {"name": "own", "namespace": SYSTEM, "labels": {"app.kubernetes.io/instance": "trainyard"}}
    own = made({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
                "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}})  # fmt: skip
    made(pod("of-a-set", served, made({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
                                       "spec": {"serviceName": "n", "selector": {"matchLabels": {"a": "b"}},
                                                "template": template}})))  # fmt: skip
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan | {"training": [], "volcano": False}))
    monkeypatch.setattr(teardown, "Api", lambda: account(server))
    with pytest.raises(PlatformError, match="these pods still mount the NFS server"):
        teardown.run(str(file), 0.1)
    assert server.find(own, "own")["spec"]["replicas"] == 2  # type: ignore[index]


def test_teardown_removes_queues_from_the_leaves_up(
    server: ApiServer, plan: dict[str, Any], made: Any, hooks: Objects
) -> None:
    labels = {"trainyard.io/applied-by": "trainyard"}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    made(queue | {"metadata": {"name": "td-parent", "labels": labels}, "spec": {"parent": "root", "weight": 1}})
    made(queue | {"metadata": {"name": "td-child", "labels": labels}, "spec": {"parent": "td-parent", "weight": 1}})
    made(queue | {"metadata": {"name": "td-site"}, "spec": {"parent": "root", "weight": 1}})
    assert teardown.queues_gone(account(server), plan["label"]) == "queue td-parent has queues below it"
    assert teardown.queues_gone(account(server), plan["label"]) == ""
    kind = queue | {"metadata": {}}
    assert server.find(kind, "td-parent") is None and server.find(kind, "td-site")


def test_teardown_may_not_touch_data(server: ApiServer, served: str, hooks: Objects) -> None:
    for path in ("/api/v1/persistentvolumes/files", "/api/v1/namespaces/default", "/api/v1/namespaces/default/secrets"):
        with pytest.raises(ApiError, match="cannot delete"):
            account(server).call("DELETE", path)


OLD = "trainyard-workflow-controller"
SPEC = {
    "selector": {"matchLabels": {"app": "old"}},
    "template": {"metadata": {"labels": {"app": "old"}}, "spec": {"containers": [{"name": "x", "image": "x/y:1"}]}},
}


def test_the_controller_for_all_teams_ends_before_those_of_teams_begin(
    server: ApiServer, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = package.assemble(tmp_path_factory.mktemp("hooks"), csi=False)
    assert not [obj for obj in due(server, chart) if obj["metadata"]["name"] == "trainyard-retire"]
    old = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": OLD, "namespace": SYSTEM}, "spec": SPEC}
    beside = old | {"metadata": {"name": f"{OLD}-vision", "namespace": SYSTEM}}
    path = server.path(old)
    assert server.create(old).ok and server.create(beside).ok
    hook = [obj for obj in due(server, chart) if obj["metadata"]["name"] == "trainyard-retire"]
    job = named(hook, "Job", "trainyard-retire")
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][:3] == ["retire", "--deployment", OLD]
    rights = [obj for obj in hook if obj["kind"] in ("Role", "RoleBinding")]
    assert all(server.apply(obj).ok for obj in rights)
    api = HookApi(server, "trainyard-retire")
    try:
        # Nobody collects garbage here: what Kubernetes does once the pods are gone is done by hand.
        assert retire.gone(api, f"{path}/{OLD}") == "its pods are ending"
        left = server.call("GET", f"{path}/{OLD}").body["metadata"]
        assert left["finalizers"] == ["foregroundDeletion"]
        assert retire.gone(api, f"{path}/{OLD}") == "its pods are ending"
        assert server.patch(old, [{"op": "remove", "path": "/metadata/finalizers"}]).ok
        retire.end(api, OLD, Clock(20))
        assert f"the end of Deployment {OLD}: ready" in capsys.readouterr().out
        with pytest.raises(PlatformError, match=rf"{OLD}-vision can't be ended: .*cannot get resource"):
            retire.end(api, f"{OLD}-vision", Clock(20))
    finally:
        for obj in [*rights, beside]:
            server.call("DELETE", f"{server.path(obj)}/{obj['metadata']['name']}")
