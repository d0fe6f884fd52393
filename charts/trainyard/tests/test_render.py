"""Every profile renders into objects that Kubernetes would accept, with exact images, within Helm's limit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from found import container, named, one, plan_of

from rendering import Objects, Rendering
from trainyard.chart import helm
from trainyard.kinds import registry
from trainyard_dev import tools
from trainyard_dev.chart import package, schemas
from trainyard_dev.versions import load

# Names that Kubernetes takes and that YAML, unless they are quoted, reads as numbers, booleans or nothing.
VOLUME = {"name": "33", "server": "34", "path": "/35", "readOnly": True, "size": "1Ti", "teams": ["*"]}
STRANGE = {
    "queues": [{"name": "2026", "weight": 1, "reclaimable": True}],
    "defaultQueue": "2026",
    "nodePools": [
        {"name": "7", "kind": "gpu", "selector": {"62": "true"}, "labels": {"trainyard.io/pool": "gpu"},
         "gpu": {"resource": "nvidia.com/gpu"},
         "taint": {"key": "nvidia.com/gpu", "value": "1", "effect": "NoSchedule"}},
        {"name": "8", "kind": "cpu", "selector": {"63": "no"}, "labels": {"trainyard.io/pool": "off"}},
    ],
    "priorityClasses": [{"name": "101", "value": 101, "description": "1"}],
    "teams": [
        {"name": "on", "gid": 20001, "description": "5", "queues": ["2026"], "quota": {"101": {"gpus": 1}}},
        {"name": "null", "gid": 20002},
        {"name": "true", "gid": 20003},
    ],
    "teamDefaults": {"priorityClasses": ["101"], "pools": ["7", "8"]},
    "pipelines": {"serviceAccount": "11", "bucket": "2027"},
    "network": {"s3": [{"cidr": "192.0.2.0/24", "port": 443}]},
    "storage": {
        "sharedClass": "42",
        "workspaceClass": "43",
        "buckets": [{"name": "2027", "access": "write", "teams": "own"}],
        "s3": {"region": "9", "secret": "12"},
        "volumes": [VOLUME],
        "caches": [{"name": "51", "bucket": "2027", "prefix": "52"}],
    },
}  # fmt: skip
BARE_DIGEST = re.compile(r"^\s*[^\s:]+: \{\{(?:(?!quote).)*sha256sum(?:(?!quote).)*\}\}\s*$", re.MULTILINE)
EXACT = re.compile(r"^[a-z0-9.-]+(:\d+)?/[a-z0-9._/-]+(:(?!latest$)[A-Za-z0-9_][A-Za-z0-9._-]*|@sha256:[0-9a-f]{64})$")


def dump_all(objects: Objects) -> str:
    """The objects as JSON, which is YAML and fast to write."""
    return "\n---\n".join(map(json.dumps, objects))


@pytest.fixture(scope="module")
def crd_schemas(rendered: dict[str, Objects], tmp_path_factory: pytest.TempPathFactory) -> Path:
    crds = [obj for obj in rendered["kind"] if obj["kind"] == "CustomResourceDefinition"]
    return schemas.custom(crds, tmp_path_factory.mktemp("crds"))


def test_kubeconform_finds_no_error(objects: Objects, crd_schemas: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    plain = [obj for obj in objects if obj["kind"] != "CustomResourceDefinition"]
    plan = plan_of(objects)
    file.write_text(dump_all(plain + plan["objects"]))
    valid, bad = schemas.check(file, schemas.kubernetes(), crd_schemas)
    assert bad == []
    assert valid == len(plain) + len(plan["objects"])


def test_kubeconform_finds_an_error_that_is_put_in(objects: Objects, crd_schemas: Path, tmp_path: Path) -> None:
    queue = plan_of(objects)["objects"][0]
    deployment = json.loads(json.dumps(next(obj for obj in objects if obj["kind"] == "Deployment")))
    deployment["spec"]["replicaz"] = 2
    queue["spec"]["wait"] = 1
    file = tmp_path / "bad.yaml"
    file.write_text(dump_all([deployment, queue]))
    valid, bad = schemas.check(file, schemas.kubernetes(), crd_schemas)
    assert valid == 0
    assert len(bad) == 2


def test_names_that_yaml_reads_as_something_else_stay_text(
    profile: str, render: Rendering, crd_schemas: Path, tmp_path: Path
) -> None:
    backup = {"enabled": True, "buckets": ["2027"], "target": {"claim": {"storageClass": "61"}}}
    objects = render({"global": {"contract": STRANGE}, "backup": backup}, profile=profile)
    plan = plan_of(objects)
    objects = [obj for obj in objects if obj["kind"] != "CustomResourceDefinition"] + plan["objects"]
    file = tmp_path / "all.yaml"
    file.write_text(dump_all(objects))
    valid, bad = schemas.check(file, schemas.kubernetes(), crd_schemas)
    assert bad == []
    assert valid == len(objects)
    assert {"on", "null", "true"} <= {obj["metadata"]["name"] for obj in objects if obj["kind"] == "Namespace"}


def test_digests_stand_in_quotes(chart: Path) -> None:
    """One digest in some hundreds has digits alone, or digits and one e: a number, where the API server takes text."""
    assert BARE_DIGEST.search("  a/b: {{ sha256sum . | trunc 16 }}\n")
    texts = {file: file.read_text() for file in chart.rglob("*") if file.suffix in (".yaml", ".tpl")}
    assert sum("sha256sum" in text for text in texts.values()) >= 5
    assert [str(file.relative_to(chart)) for file, text in texts.items() if BARE_DIGEST.search(text)] == []


def test_crds_are_there_and_are_what_the_setup_waits_for(objects: Objects) -> None:
    crds = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "CustomResourceDefinition"}
    assert set(plan_of(objects)["crds"]) <= crds
    assert {kind.resource for kind in registry.with_gang()} <= crds


def test_uninstalling_keeps_crds(chart: Path) -> None:
    """Helm itself keeps CRDs in a crds/ folder; rendered ones need an annotation."""
    minor, sets = tools.tested_kubernetes().number, ("--set", "global.ownImageRegistry=registry.example.org")
    text = helm.call("template", helm.RELEASE, chart, "--namespace", helm.NAMESPACE, "--kube-version", minor, *sets)
    crds = [obj for obj in helm.parse(text) if obj["kind"] == "CustomResourceDefinition"]
    assert crds
    for crd in crds:
        assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep", crd["metadata"]["name"]


def test_every_image_is_exact(profile: str, render: Rendering) -> None:
    wanted = [image.ref for image in render.images(profile=profile)]
    assert wanted
    assert [image for image in wanted if not EXACT.match(image)] == []


def test_every_image_is_in_the_versions_file(profile: str, render: Rendering) -> None:
    known = {ref for image in load().images.values() for ref in (image.ref, *image.also)}
    assert [image.ref for image in render.images(profile=profile) if image.ref not in known] == []


def test_release_stays_below_the_limit(profile: str, chart: Path) -> None:
    assert package.release_secret_size(profile, chart) < package.RELEASE_LIMIT


def test_no_object_twice(objects: Objects) -> None:
    keys = [(o["apiVersion"], o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    assert sorted(map(str, keys)) == sorted(map(str, set(keys)))


def test_everything_namespaced_is_in_the_release_namespace(objects: Objects) -> None:
    found = {o["metadata"]["namespace"] for o in objects if "namespace" in o["metadata"]}
    assert found == {helm.NAMESPACE, f"{helm.NAMESPACE}-webhook"}
    away = [o for o in objects if o["metadata"].get("namespace", helm.NAMESPACE) != helm.NAMESPACE]
    operator = "trainyard-training-operator"
    assert {(o["kind"], o["metadata"]["name"]) for o in away} == {
        ("Secret", "training-operator-webhook-cert"),
        ("Role", operator),
        ("RoleBinding", operator),
    }


def test_no_default_password(objects: Objects) -> None:
    texts = [yaml.safe_dump(obj.get("stringData", {})) for obj in objects if obj["kind"] == "Secret"]
    assert not any("minioadmin" in text or "changeme" in text for text in texts)


def test_external_store_renders_no_server(rendered: dict[str, Objects]) -> None:
    server = ("StatefulSet", "trainyard-system", "trainyard-minio")
    assert server not in named(rendered["cloud"]) and server in named(rendered["kind"])


def test_scheduler_is_configured_from_the_contract(render: Rendering) -> None:
    resource = "global.contract.nodePools[0].gpu.resource=amd.com/gpu"
    objects = render(sets=[
        "global.contract.nodePools[0].name=gpu", "global.contract.nodePools[0].kind=gpu", resource,
        "global.contract.nodePools[0].labels.trainyard\\.io/pool=gpu",
        "global.contract.nodePools[0].taint.key=amd.com/gpu", "global.contract.nodePools[0].taint.effect=NoSchedule",
        "global.contract.nodePools[1].name=cpu", "global.contract.nodePools[1].kind=cpu",
    ])  # fmt: skip
    text = one(objects, "ConfigMap", "trainyard-scheduler-configmap")["data"]["volcano-scheduler.conf"]
    conf = yaml.safe_load(text)
    packing = next(p for tier in conf["tiers"] for p in tier["plugins"] if p["name"] == "binpack")["arguments"]
    assert packing["binpack.resources"] == "amd.com/gpu"
    assert packing["binpack.resources.amd.com/gpu"] == 40
    assert conf["actions"] == "allocate, backfill"
    assert "--percentage-nodes-to-find=100" in container(objects, "Deployment", "trainyard-scheduler")["args"]


def test_the_scheduler_may_look_at_fewer_nodes(render: Rendering) -> None:
    value = "volcano.custom.scheduler_nodes_percent"
    scheduler = container(render(sets=[f"{value}=0"]), "Deployment", "trainyard-scheduler")
    assert "--percentage-nodes-to-find=0" in scheduler["args"]
    assert "scheduler_nodes_percent" in render.refusal(sets=[f"{value}=101"])


def test_only_nodes_reach_the_nfs_server_where_the_pod_networks_are_named(render: Rendering) -> None:
    objects = render(profile="on-prem", sets=["nfs.podNetworks={10.1.0.0/16}"])
    [rule] = one(objects, "NetworkPolicy", "trainyard-nfs-nodes-only")["spec"]["ingress"]
    assert rule == {"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.1.0.0/16"]}}]}


def test_teams_reach_none_of_the_platforms_pods_but_the_store(render: Rendering) -> None:
    """By a policy where they would connect to: their own takes effect after their pod has started."""
    objects = render(sets=["nfs.podNetworks={10.1.0.0/16,10.2.0.0/16}"])
    policy = one(objects, "NetworkPolicy", "trainyard-not-from-teams")
    assert (policy["metadata"]["namespace"], policy["spec"]["policyTypes"]) == ("trainyard-system", ["Ingress"])
    [rule] = policy["spec"]["ingress"]
    assert rule == {"from": [
        {"namespaceSelector": {"matchExpressions": [{"key": "trainyard.io/team", "operator": "DoesNotExist"}]}},
        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.1.0.0/16", "10.2.0.0/16"]}},
        {"ipBlock": {"cidr": "::/0"}},
    ]}  # fmt: skip
    [left_out] = policy["spec"]["podSelector"]["matchExpressions"]
    assert left_out == {"key": "app.kubernetes.io/name", "operator": "NotIn", "values": ["minio", "nfs"]}
    kinds = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job")
    labels = {
        obj["metadata"]["name"]: template.get("metadata", {}).get("labels", {}).get("app.kubernetes.io/name", "")
        for obj in objects
        if obj["kind"] in kinds and obj["metadata"].get("namespace") == "trainyard-system"
        for template in [(obj["spec"].get("jobTemplate") or obj)["spec"]["template"]]
    }
    free = {name for name, label in labels.items() if label in left_out["values"]}
    assert free == {"trainyard-minio", "trainyard-nfs", "trainyard-nfs-provisioner"}
    assert {"trainyard-training-operator", "trainyard-admission", "trainyard-controllers"} <= set(labels)


def test_without_pod_networks_no_policy_guesses_them(render: Rendering) -> None:
    objects = render(sets=["nfs.podNetworks=null"])
    assert not [obj for obj in objects if obj["metadata"]["name"] == "trainyard-not-from-teams"]


def test_an_image_of_ones_own_keeps_its_registry(render: Rendering) -> None:
    objects = render(sets=["nfs.images.server=quay.io/me/nfs:1"])
    assert container(objects, "Deployment", "trainyard-nfs")["image"] == "quay.io/me/nfs:1"
