"""Teams: one block of values yields all that a team needs, and twenty fit in one release."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from found import SYSTEM, one, plan_of, published
from team_values import SPEECH, VISION, values

from rendering import Objects, Rendering
from trainyard.chart import helm, values_schema
from trainyard.kinds import registry
from trainyard.paths import CHART, ROOT
from trainyard_dev.chart import package

EXAMPLES = sorted((ROOT / "manifests" / "teams").glob("*.yaml"))


@pytest.fixture(scope="module")
def objects(with_teams: Objects) -> Objects:
    return with_teams


def test_namespace_carries_what_policies_and_programs_read(objects: Objects) -> None:
    meta = one(objects, "Namespace", "vision")["metadata"]
    for mode in ("enforce", "warn", "audit"):
        level = f"pod-security.kubernetes.io/{mode}"
        assert (meta["labels"][level], meta["labels"][f"{level}-version"]) == ("restricted", "v1.34")
    assert meta["labels"]["trainyard.io/team"] == "vision"
    assert meta["labels"]["trainyard.io/applied-by"] == helm.RELEASE
    assert {key.removeprefix("trainyard.io/"): value for key, value in meta["annotations"].items()} == {
        "helm.sh/resource-policy": "keep",
        "description": "Camera models",
        "gid": "20001",
        "queues": "vision,training",
        "priority-classes": "training-low,training-high",
        "max-gpus-per-job": "4",
        "max-claim": "20Gi",
        "storage": "500Gi",
        "class-quotas": "training-high",
        "default-deadline": "7200",
        "default-keep": "3600",
        "default-priority": "training-high",
        "default-cpu": "100m",
        "default-memory": "256Mi",
        "default-cpu-limit": "8",
        "default-memory-limit": "16Gi",
    }


def test_quotas_count_gpus_by_priority_class(objects: Objects) -> None:
    whole = one(objects, "ResourceQuota", "team", "vision")["spec"]
    assert whole == {"hard": {"pods": "50", "requests.nvidia.com/gpu": "8", "requests.storage": "500Gi"}}
    high = one(objects, "ResourceQuota", "team-training-high", "vision")["spec"]
    assert high["hard"] == {"requests.nvidia.com/gpu": "2"}
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["training-high"]}
    assert high["scopeSelector"] == {"matchExpressions": [scope]}
    names = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "ResourceQuota"]
    assert "team-training-low" not in names, "an empty quota limits nothing"


def test_containers_get_a_low_request_and_a_high_limit(objects: Objects) -> None:
    container, claim = one(objects, "LimitRange", "team", "vision")["spec"]["limits"]
    assert container["defaultRequest"] == {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "0"}
    assert container["default"] == {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi"}
    assert container["max"] == {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "500Gi"}
    assert claim == {"type": "PersistentVolumeClaim", "max": {"storage": "20Gi"}}


def test_objects_of_every_kind_are_counted(objects: Objects) -> None:
    """Kubernetes' kinds by the chart, kinds of CRDs by setup, once the quota controller knows them."""
    core = one(objects, "ResourceQuota", "team-counts", "vision")["spec"]["hard"]
    plan = plan_of(objects)
    quotas = {quota["metadata"]["namespace"]: quota for quota in plan["quotas"]}
    assert set(quotas) == {"vision", "speech"}
    assert quotas["vision"]["metadata"]["name"] == "team-kinds"
    custom = quotas["vision"]["spec"]["hard"]
    assert {"count/configmaps", "count/persistentvolumeclaims", "count/jobs.batch", "count/secrets"} <= set(core)
    kinds = {f"count/{kind.resource}" for kind in registry.KINDS}
    assert kinds <= set(core) | set(custom)
    assert {"count/workflows.argoproj.io", "count/podgroups.scheduling.volcano.sh"} <= set(custom)
    assert all(name.count(".") < 2 or name.endswith(".k8s.io") for name in core)
    assert {core["count/jobs.batch"], custom["count/pytorchjobs.kubeflow.org"]} == {"100"}


def test_counts_of_a_team_stand_beside_the_defaults(render: Rendering) -> None:
    teams = values({**SPEECH, "counts": {"jobs": 7, "jobs.batch": 9, "configmaps": 5}})
    objects = render(teams, sets=["argo.enabled=false"])
    core = one(objects, "ResourceQuota", "team-counts", "speech")["spec"]["hard"]
    assert (core["count/configmaps"], core["count/jobs.batch"], core["count/services"]) == ("5", "9", "400")
    plan = plan_of(objects)
    custom = plan["quotas"][0]["spec"]["hard"]
    assert custom["count/mpijobs.kubeflow.org"] == custom["count/jobs.batch.volcano.sh"] == "7"
    assert not [name for name in custom if "argoproj" in name], "what is not installed can't be counted"


def test_the_platforms_pods_stand_above_every_team(objects: Objects) -> None:
    values = {obj["metadata"]["name"]: obj["value"] for obj in objects if obj["kind"] == "PriorityClass"}
    top = values.pop("trainyard-platform")
    assert values and all(value < top for value in values.values())
    kinds = ("Deployment", "StatefulSet", "DaemonSet")
    pods = {obj["metadata"]["name"]: obj["spec"]["template"]["spec"] for obj in objects if obj["kind"] in kinds}
    critical = {"trainyard-platform", "system-cluster-critical", "system-node-critical"}
    assert {name for name, pod in pods.items() if pod.get("priorityClassName") not in critical} == set()


def test_a_teams_key_replaces_the_default_and_the_rest_stays(objects: Objects) -> None:
    vision, speech = published(objects)["teams"]
    queue = {"parent": "department", "weight": 3, "reclaimable": False}
    assert vision["queue"] == queue | {key: {} for key in ("guarantee", "deserved", "capability")}
    assert vision["storage"] == {"workspace": "10Gi", "maxClaim": "20Gi", "total": "500Gi"}
    assert speech["maxGpusPerJob"] == 8
    assert speech["quota"] == {"all": {"pods": 200}}
    assert speech["members"] == {"groups": [], "users": []}


def test_every_block_of_a_team_is_merged_or_replaced_on_purpose(render: Rendering) -> None:
    """In a block that the schema marks x-merge, a team that names one key keeps the others of the defaults."""
    schema, contract = values_schema.read(), yaml.safe_load((CHART / "values.yaml").read_text())
    for part in ("global", "contract"):
        schema, contract = schema["properties"][part], contract[part]
    keys = schema["properties"]["teams"]["items"]["properties"]
    merged = {key: one["x-merge"] for key, one in keys.items() if one["type"] == "object"}
    defaults = {key: one for key, one in contract["teamDefaults"].items() if isinstance(one, dict)}
    assert set(defaults) == {key for key, merges in merged.items() if merges}
    one_key_each = {key: dict([*block.items()][:1]) for key, block in defaults.items()}
    [found] = published(render(values({**SPEECH, **one_key_each})))["teams"]
    assert {key: found[key] for key in defaults} == defaults


def test_queues_hang_below_their_parents(objects: Objects) -> None:
    plan = plan_of(objects)
    queues = {obj["metadata"]["name"]: obj for obj in plan["objects"]}
    assert {name: queue["spec"]["parent"] for name, queue in queues.items()} == {
        "training": "root", "department": "root", "vision": "department", "speech": "root",
    }  # fmt: skip
    assert queues["vision"]["spec"] == {"parent": "department", "weight": 3, "reclaimable": False}
    assert queues["vision"]["metadata"]["annotations"] == {"trainyard.io/owner": "vision"}
    assert plan["teams"] == ["vision", "speech"]


def test_people_are_bound_in_their_namespace(objects: Objects) -> None:
    def names(kind: str, name: str, namespace: str | None) -> list[tuple[str, str]]:
        return [(who["kind"], who["name"]) for who in one(objects, kind, name, namespace or "")["subjects"]]

    members = [("Group", "vision-members"), ("User", "ada")]
    assert names("RoleBinding", "trainyard-member", "vision") == members
    viewers = names("RoleBinding", "trainyard-viewer", "vision")
    assert sorted(viewers) == sorted([*members, ("Group", "vision-viewers")])
    steps = ("ServiceAccount", "pipeline")  # which submit training jobs
    assert names("ClusterRoleBinding", "trainyard-team-vision", None) == [*members, steps]
    assert names("RoleBinding", "trainyard-member", "speech") == []
    [rule] = one(objects, "ClusterRole", "trainyard-team-vision")["rules"]
    assert rule["resourceNames"] == ["vision", "training"]
    assert rule["verbs"] == ["get", "use"]


def test_job_account_has_no_token_and_no_rights(objects: Objects) -> None:
    assert one(objects, "ServiceAccount", "training", "vision")["automountServiceAccountToken"] is False
    bound = [
        subject["name"]
        for obj in objects
        if obj["kind"].endswith("RoleBinding")
        for subject in obj.get("subjects") or []
        if subject["kind"] == "ServiceAccount" and subject["namespace"] in ("vision", "speech")
    ]
    assert set(bound) == {"pipeline"}, "only steps of pipelines have rights"


def test_secret_says_how_the_store_is_reached(objects: Objects) -> None:
    held = one(objects, "Secret", "trainyard-s3", "vision")
    assert held["stringData"]["endpoint"] == "https://trainyard-minio.trainyard-system.svc:9000"
    assert held["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_workspace_outlives_the_release(objects: Objects) -> None:
    claim = one(objects, "PersistentVolumeClaim", "workspace", "vision")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_examples_install(example: Path, render: Rendering) -> None:
    teams = yaml.safe_load(example.read_text())["global"]["contract"]["teams"]
    found = {obj["metadata"]["name"] for obj in render(example, profile="on-prem") if obj["kind"] == "Namespace"}
    assert found == {team["name"] for team in teams} | {f"{SYSTEM}-webhook"}


def test_twenty_teams_fit_in_one_release(render: Rendering) -> None:
    teams = [{**VISION, "name": f"team-{number}", "gid": 20000 + number} for number in range(20)]
    size = package.release_secret_size("kind", render.chart, render.files(values(*teams)))
    assert size < package.RELEASE_LIMIT, f"{size} bytes"


def test_each_team_reads_its_own_numbers_of_gpus_alone(objects: Objects) -> None:
    for team, groups in (("vision", {"vision-members", "vision-viewers"}), ("speech", set())):
        binding = one(objects, "RoleBinding", f"trainyard-gpus-{team}", SYSTEM)
        assert {who["name"] for who in binding["subjects"] if who["kind"] == "Group"} == groups
        [rule] = one(objects, "Role", f"trainyard-gpus-{team}", SYSTEM)["rules"]
        assert (rule["resourceNames"], rule["verbs"]) == ([f"trainyard-gpus-{team}"], ["get"])
        assert "data" not in one(objects, "ConfigMap", f"trainyard-gpus-{team}", SYSTEM), "an upgrade would empty it"
