"""What an upgrade, a rollback and an uninstallation may touch, as seen in the rendered chart: never data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from found import one, plan_of

from rendering import Objects, Rendering
from trainyard.kinds import registry
from trainyard_dev.chart import options

TEAMS = {"global": {"contract": {"teams": [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]}}}
KEEP = "helm.sh/resource-policy"
HOOK = "helm.sh/hook"
LIMIT = 1024 * 1024  # bytes of a ConfigMap


@pytest.fixture(scope="module")
def objects(render: Rendering) -> Objects:
    """Profile kind with two teams."""
    return render(TEAMS)


def notes(obj: dict[str, Any]) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def generated(obj: dict[str, Any]) -> bool:
    """A Secret with keys that can't be made again."""
    return obj["kind"] == "Secret" and bool({"secret-key", "root-password"} & set(obj.get("stringData", {})))


def test_data_outlives_upgrade_rollback_and_uninstallation(objects: Objects) -> None:
    """Helm deletes what a revision no longer has, also on a rollback to a version that knew no teams."""
    kinds = ("Namespace", "PersistentVolumeClaim", "PersistentVolume")
    data = [obj for obj in objects if obj["kind"] in kinds or generated(obj)]
    # The backup's view of the whole NFS export has no data of its own.
    data = [obj for obj in data if not obj["metadata"]["name"].startswith("trainyard-export-")]
    # Of a certificate that is made again.
    data = [obj for obj in data if obj["metadata"]["name"] != "trainyard-system-webhook"]
    assert {obj["kind"] for obj in data} == {*kinds, "Secret"}
    assert [f"{obj['kind']} {obj['metadata']['name']}" for obj in data if notes(obj).get(KEEP) != "keep"] == []
    for obj in objects:
        if obj["kind"] == "StatefulSet" and obj["spec"].get("volumeClaimTemplates"):
            policy = obj["spec"]["persistentVolumeClaimRetentionPolicy"]
            assert policy == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_data_is_never_part_of_a_hook(objects: Objects) -> None:
    """Helm removes a hook's objects before it makes them again, whatever their policy."""
    hooks = [obj for obj in objects if HOOK in notes(obj)]
    assert [obj["kind"] for obj in hooks if obj["kind"] in ("Namespace", "PersistentVolumeClaim", "Secret")] == []


def test_crds_move_before_an_upgrade_and_never_back(objects: Objects) -> None:
    mine = [obj for obj in objects if obj["metadata"]["name"] == "trainyard-crds"]
    assert {obj["kind"] for obj in mine} == {"ConfigMap", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"}
    assert {notes(obj)[HOOK] for obj in mine} == {"pre-upgrade"}
    weights = {obj["kind"]: int(notes(obj)["helm.sh/hook-weight"]) for obj in mine}
    assert all(weights[kind] < weights["Job"] for kind in weights if kind != "Job")


def test_the_bundle_is_the_crds_that_helm_installs(objects: Objects, chart: Path) -> None:
    data = one(objects, "ConfigMap", "trainyard-crds")["data"]
    brought = {file.parts[-3] for file in (chart / "charts").glob("*/crds/*.yaml")}
    assert brought == {"training-operator", "argo", "login"}
    files = sorted(file for name in brought - {"login"} for file in (chart / "charts" / name / "crds").iterdir())
    crds = [yaml.safe_load(file.read_text()) for file in files]
    assert {name: json.loads(text) for name, text in data.items()} == {f"{c['metadata']['name']}.json": c for c in crds}
    assert sum(map(len, data.values())) < LIMIT / 2
    (rule,) = one(objects, "ClusterRole", "trainyard-crds")["rules"]
    assert rule["resources"] == ["customresourcedefinitions"]
    assert sorted(rule["resourceNames"]) == sorted(crd["metadata"]["name"] for crd in crds)
    assert set(rule["verbs"]) == {"get", "create", "patch"}


def test_the_bundle_has_the_crds_of_an_option_that_is_on(render: Rendering) -> None:
    on = render(sets=options.switched("login"))
    files = (render.chart / "charts" / "login" / "crds").iterdir()
    names = {f"{yaml.safe_load(file.read_text())['metadata']['name']}.json" for file in files}
    assert names and names <= one(on, "ConfigMap", "trainyard-crds")["data"].keys()


def test_setup_runs_after_a_rollback_too(objects: Objects) -> None:
    assert set(notes(one(objects, "Job", "trainyard-setup"))[HOOK].split(",")) == {
        "post-install", "post-upgrade", "post-rollback"}  # fmt: skip


def test_teardown_has_rights_to_stop_and_none_on_data(objects: Objects) -> None:
    rules = one(objects, "ClusterRole", "trainyard-teardown")["rules"]
    deletable = {resource for rule in rules if "delete" in rule["verbs"] for resource in rule["resources"]}
    jobs = {kind.plural for kind in registry.KINDS}
    assert deletable == {*jobs, "cronworkflows", "workflows", "queues", "podgroups", "pods"}
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "delete"}


@pytest.mark.parametrize("name", ["trainyard-crds", "trainyard-teardown"])
def test_rights_of_hooks_end_with_them(objects: Objects, name: str) -> None:
    mine = [obj for obj in objects if obj["metadata"]["name"] == name]
    assert {notes(obj)["helm.sh/hook-delete-policy"] for obj in mine} == {"before-hook-creation,hook-succeeded"}


def test_workflows_are_stopped_before_the_jobs_that_they_submit(objects: Objects) -> None:
    plan = plan_of(objects, "teardown")
    assert plan["training"][:2] == [f"argoproj.io/v1alpha1/{plural}" for plural in ("cronworkflows", "workflows")]
    assert plan["training"][2:] == [f"{kind.api_version}/{kind.plural}" for kind in registry.with_gang()]


def test_crds_of_a_part_that_is_off_are_left_alone(render: Rendering) -> None:
    found = render(sets=["training-operator.enabled=false"])
    assert {name.split(".", 1)[1] for name in one(found, "ConfigMap", "trainyard-crds")["data"]} == {"argoproj.io.json"}
    found = render(sets=["training-operator.enabled=false", "argo.enabled=false"])
    assert [obj for obj in found if obj["metadata"]["name"] == "trainyard-crds"] == []
    plan = plan_of(found, "teardown")
    assert plan["training"] == ["batch.volcano.sh/v1alpha1/jobs"]


def test_a_server_of_the_site_s_own_is_not_waited_for(render: Rendering, objects: Objects) -> None:
    plan = plan_of(objects, "teardown")
    assert plan["nfsServer"] == one(objects, "Service", "trainyard-nfs")["spec"]["clusterIP"]
    found = render(sets=["nfs.mode=external", "nfs.server=10.9.9.9", "nfs.path=/x"])
    assert plan_of(found, "teardown")["nfsServer"] == ""
