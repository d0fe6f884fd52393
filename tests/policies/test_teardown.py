"""The hook before an uninstallation, on a real API server, with the rights that it has."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hook_api import SYSTEM, HookApi

from rendering import Objects, one
from trainyard_agent.api import ApiError
from trainyard_agent.install import teardown
from trainyard_agent.say import PlatformError
from trainyard_dev.apiserver import ApiServer

NFS = "10.96.0.49"


@pytest.fixture
def plan(hooks: Objects) -> dict[str, Any]:
    """The plan of the teardown, as its pod reads it."""
    return json.loads(one(hooks, "ConfigMap", "trainyard-teardown")["data"]["plan.json"])


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


def mounting(name: str, namespace: str, *, kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    """A workload of the release whose pods mount the NFS server."""
    volume = {"name": "v", "nfs": {"server": NFS, "path": "/x"}}
    template = {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}}  # fmt: skip
    meta = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/instance": "trainyard"}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta,
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template} | spec}  # fmt: skip


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
    assert "default/of-notebook (it belongs to StatefulSet notebook; scale that to zero)" in said
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
    own = made(mounting("own", SYSTEM))
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
    own = made(mounting("own", SYSTEM, replicas=2))
    held = made(mounting("held", "default", kind="StatefulSet", serviceName="n"))
    made(pod("of-a-set", served, held))
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
