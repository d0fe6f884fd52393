"""Teams: one block of values yields all that a team needs, wrong blocks are refused, and twenty fit in one release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.chart import helm
from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard_dev.chart import package

EXAMPLES = sorted((ROOT / "manifests" / "teams").glob("*.yaml"))
SYSTEM = helm.NAMESPACE
Objects = list[dict[str, Any]]

VISION = {
    "name": "vision",
    "description": "Camera models",
    "gid": 20001,
    "members": {"groups": ["vision-members"], "users": ["ada"]},
    "viewers": {"groups": ["vision-viewers"]},
    "queue": {"parent": "department", "weight": 3, "reclaimable": False},
    "queues": ["training"],
    "priorityClasses": ["training-low", "training-high"],
    "maxGpusPerJob": 4,
    "quota": {"all": {"pods": 50, "gpus": 8}, "training-high": {"gpus": 2}, "training-low": {}},
    "storage": {"maxClaim": "20Gi"},
    "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}]}],
}
SPEECH = {"name": "speech", "gid": 20002}
EXTERNAL = {"mode": "external", "endpoint": "https://s3.example"}
QUEUES = [{"name": name, "weight": 1, "reclaimable": True} for name in ("training", "department")]


def write(folder: Path, *teams: dict[str, Any], **contract: Any) -> Path:
    """A values file with these teams and the shared queues training and department."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump({"global": {"contract": {"teams": list(teams), "queues": QUEUES, **contract}}}))
    return file


@pytest.fixture(scope="module")
def objects(chart: Path, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """Everything with the teams vision and speech."""
    return package.render("kind", chart, values=[write(tmp_path_factory.mktemp("teams"), VISION, SPEECH)])


def find(objects: Objects, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    """The one object of this kind and name."""
    [found] = [
        obj for obj in objects
        if obj["kind"] == kind and obj["metadata"]["name"] == name and obj["metadata"].get("namespace") == namespace
    ]  # fmt: skip
    return found


def test_namespace_carries_what_policies_and_programs_read(objects: Objects) -> None:
    meta = find(objects, "Namespace", "vision")["metadata"]
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
        "defaults": "deadline=86400,keep=86400,priority=training-high,"
        "cpu=100m,memory=256Mi,cpuLimit=8,memoryLimit=16Gi",
    }


def test_quotas_count_gpus_by_priority_class(objects: Objects) -> None:
    whole = find(objects, "ResourceQuota", "team", "vision")["spec"]
    assert whole == {"hard": {"pods": "50", "requests.nvidia.com/gpu": "8", "requests.storage": "500Gi"}}
    high = find(objects, "ResourceQuota", "team-training-high", "vision")["spec"]
    assert high["hard"] == {"requests.nvidia.com/gpu": "2"}
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": ["training-high"]}
    assert high["scopeSelector"] == {"matchExpressions": [scope]}
    names = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "ResourceQuota"]
    assert "team-training-low" not in names, "an empty quota limits nothing"


def test_containers_get_a_low_request_and_a_high_limit(objects: Objects) -> None:
    container, claim = find(objects, "LimitRange", "team", "vision")["spec"]["limits"]
    assert container["defaultRequest"] == {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "0"}
    assert container["default"] == {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi"}
    assert container["max"] == {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "500Gi"}
    assert claim == {"type": "PersistentVolumeClaim", "max": {"storage": "20Gi"}}


def test_objects_of_every_kind_are_counted(objects: Objects) -> None:
    """Those of Kubernetes by the chart, those of CRDs by setup, once their controller knows the kinds."""
    core = find(objects, "ResourceQuota", "team-counts", "vision")["spec"]["hard"]
    plan = json.loads(find(objects, "ConfigMap", "trainyard-setup", SYSTEM)["data"]["plan.json"])
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


def test_counts_of_a_team_stand_beside_the_defaults(chart: Path, tmp_path: Path) -> None:
    teams = write(tmp_path, {**SPEECH, "counts": {"jobs": 7, "jobs.batch": 9, "configmaps": 5}})
    objects = package.render("kind", chart, ["argo.enabled=false"], values=[teams])
    core = find(objects, "ResourceQuota", "team-counts", "speech")["spec"]["hard"]
    assert (core["count/configmaps"], core["count/jobs.batch"], core["count/services"]) == ("5", "9", "400")
    plan = json.loads(find(objects, "ConfigMap", "trainyard-setup", SYSTEM)["data"]["plan.json"])
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
    data = find(objects, "ConfigMap", "trainyard-contract", SYSTEM)["data"]["contract.json"]
    vision, speech = json.loads(data)["teams"]
    queue = {"parent": "department", "weight": 3, "reclaimable": False}
    assert vision["queue"] == queue | {key: {} for key in ("guarantee", "deserved", "capability")}
    assert vision["storage"] == {"workspace": "10Gi", "maxClaim": "20Gi", "total": "500Gi"}
    assert speech["maxGpusPerJob"] == 8
    assert speech["quota"] == {"all": {"pods": 200}}
    assert speech["members"] == {"groups": [], "users": []}


def test_queues_hang_below_their_parents(objects: Objects) -> None:
    plan = json.loads(find(objects, "ConfigMap", "trainyard-setup", SYSTEM)["data"]["plan.json"])
    queues = {obj["metadata"]["name"]: obj for obj in plan["objects"]}
    assert {name: queue["spec"]["parent"] for name, queue in queues.items()} == {
        "training": "root", "department": "root", "vision": "department", "speech": "root",
    }  # fmt: skip
    assert queues["vision"]["spec"] == {"parent": "department", "weight": 3, "reclaimable": False}
    assert queues["vision"]["metadata"]["annotations"] == {"trainyard.io/owner": "vision"}
    assert plan["teams"] == ["vision", "speech"]


def test_people_are_bound_in_their_namespace(objects: Objects) -> None:
    def names(kind: str, name: str, namespace: str | None) -> list[tuple[str, str]]:
        return [(one["kind"], one["name"]) for one in find(objects, kind, name, namespace)["subjects"]]

    members = [("Group", "vision-members"), ("User", "ada")]
    assert names("RoleBinding", "trainyard-member", "vision") == members
    viewers = names("RoleBinding", "trainyard-viewer", "vision")
    assert sorted(viewers) == sorted([*members, ("Group", "vision-viewers")])
    steps = ("ServiceAccount", "pipeline")  # which submit training jobs
    assert names("ClusterRoleBinding", "trainyard-team-vision", None) == [*members, steps]
    assert names("RoleBinding", "trainyard-member", "speech") == []
    [rule] = find(objects, "ClusterRole", "trainyard-team-vision")["rules"]
    assert rule["resourceNames"] == ["vision", "training"]
    assert rule["verbs"] == ["get", "use"]


def test_job_account_has_no_token_and_no_rights(objects: Objects) -> None:
    assert find(objects, "ServiceAccount", "training", "vision")["automountServiceAccountToken"] is False
    bound = [
        subject["name"]
        for obj in objects
        if obj["kind"].endswith("RoleBinding")
        for subject in obj.get("subjects") or []
        if subject["kind"] == "ServiceAccount" and subject["namespace"] in ("vision", "speech")
    ]
    assert set(bound) == {"pipeline"}, "only steps of pipelines have rights"


def test_network_is_closed_but_for_what_jobs_need(objects: Objects) -> None:
    found = {obj["metadata"]["name"]: obj["spec"] for obj in objects
             if obj["kind"] == "NetworkPolicy" and obj["metadata"]["namespace"] == "vision"}  # fmt: skip
    assert found["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ports = [(port["protocol"], port["port"]) for port in found["allow-dns"]["egress"][0]["ports"]]
    assert ports == [("UDP", 53), ("TCP", 53)]
    inside = [{"podSelector": {}}]
    assert found["allow-within"]["ingress"] == [{"from": inside}]
    assert found["allow-within"]["egress"] == [{"to": inside}]
    [store] = found["allow-storage"]["egress"]
    assert store["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "minio"
    assert found["allow-team"]["egress"] == VISION["egress"]
    for name, label in (
        ("allow-api", {"trainyard.io/api-access": "true"}),
        ("allow-api-launcher", {"training.kubeflow.org/replica-type": "launcher"}),
    ):
        assert found[name]["podSelector"]["matchLabels"] == label
        assert found[name]["egress"] == [], "without a cluster nobody knows where the API server is"


def test_each_policy_is_always_rendered(objects: Objects) -> None:
    """Helm keeps them, so one that is left out when a rule is taken from the values would go on allowing it."""
    names: dict[str, set[str]] = {"vision": set(), "speech": set()}
    for obj in objects:
        if obj["kind"] == "NetworkPolicy" and obj["metadata"]["namespace"] in names:
            assert obj["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
            names[obj["metadata"]["namespace"]].add(obj["metadata"]["name"])
    assert names["vision"] == names["speech"]
    assert find(objects, "NetworkPolicy", "allow-team", "speech")["spec"]["egress"] == []


def test_api_server_is_reached_where_the_values_say(chart: Path, tmp_path: Path) -> None:
    network = {"apiServer": [{"cidr": "10.0.0.5/32", "port": 6443}]}
    objects = package.render("kind", chart, values=[write(tmp_path, VISION, network=network)])
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.5/32"}}], "ports": [{"protocol": "TCP", "port": 6443}]}
    for name in ("allow-api", "allow-api-launcher"):
        assert find(objects, "NetworkPolicy", name, "vision")["spec"]["egress"] == [rule]


def test_secret_says_how_the_store_is_reached(objects: Objects) -> None:
    held = find(objects, "Secret", "trainyard-s3", "vision")
    assert held["stringData"]["endpoint"] == "https://trainyard-minio.trainyard-system.svc:9000"
    assert held["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_external_store_leaves_secrets_to_the_site(chart: Path, tmp_path: Path) -> None:
    values = write(
        tmp_path, VISION,
        storage={"s3": EXTERNAL},
        network={"s3": [{"cidr": "192.0.2.0/24", "port": 443}]},
    )  # fmt: skip
    objects = package.render("kind", chart, values=[values])
    assert not [obj for obj in objects if obj["kind"] == "Secret" and obj["metadata"].get("namespace") == "vision"]
    [rule] = find(objects, "NetworkPolicy", "allow-storage", "vision")["spec"]["egress"]
    assert rule["to"] == [{"ipBlock": {"cidr": "192.0.2.0/24"}}]


def test_workspace_outlives_the_release(objects: Objects) -> None:
    claim = find(objects, "PersistentVolumeClaim", "workspace", "vision")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


INVALID: list[tuple[list[dict[str, Any]], dict[str, Any], list[str]]] = [
    ([VISION, {**SPEECH, "name": "vision"}], {}, ['"vision" stands there twice']),
    ([VISION, {**SPEECH, "gid": 20001}], {}, ["gid 20001", 'team "vision"']),
    ([{**SPEECH, "name": "training"}], {}, ["name of a queue", "rename"]),
    ([{**SPEECH, "name": "root"}], {}, ["reserved name"]),
    ([{**SPEECH, "name": "kube-a"}], {}, ["reserved name"]),
    ([{**SPEECH, "name": "shared"}], {}, ["reserved name"]),  # the prefix of buckets that all teams read
    ([{**SPEECH, "name": SYSTEM}], {}, ["reserved name"]),
    ([{**SPEECH, "queue": {"parent": "nobody"}}], {}, ["queue.parent", '"nobody"']),
    ([VISION, {**SPEECH, "queues": ["vision"]}], {}, ['queue "vision"', "not among global.contract.queues"]),
    ([VISION, {**SPEECH, "queues": ["department"]}], {}, ['"department"', "stop all scheduling"]),
    ([{**SPEECH, "queue": {"parent": "training"}}], {}, ["defaultQueue", "stop all scheduling"]),
    ([{**SPEECH, "priorityClasses": ["urgent"]}], {}, ['priority class "urgent"', "training-low"]),
    ([{**SPEECH, "quota": {"urgent": {"pods": 1}}}], {}, ['quota for "urgent"', "priorityClasses"]),
    ([{**SPEECH, "quota": {"all": {"nvidia.com/gpu": 9}}}], {}, ["never counted", "requests.nvidia.com/gpu"]),
    ([{**SPEECH, "quota": {"all": {"gpus": 9, "requests.nvidia.com/gpu": 9}}}], {}, ["the same", "keep one"]),
    ([{**SPEECH, "quota": {"all": {"gpus": 4}}}], {}, ["maxGpusPerJob is 8", "quota.all", "4 GPUs"]),
    ([{**SPEECH, "queue": {"capability": {"nvidia.com/gpu": 0}}}], {}, ["maxGpusPerJob is 8", "queue.capability"]),
    ([{**SPEECH, "counts": {"pods": 100}}], {}, ["quota.all lets 200 pods run", "raise counts.pods"]),
    ([{**SPEECH, "name": "trainyard-system-webhook"}], {}, ["reserved name"]),
    ([{**SPEECH, "limits": {"requests": {"cpu": "9"}}}], {}, ["limits.requests.cpu (9)", "lower the request"]),
    ([{**SPEECH, "limits": {"max": {"cpu": "4"}}}], {}, ["limits.limits.cpu (8)", "limits.max.cpu (4)", "maximum"]),
    ([SPEECH], {"platformPriorityClass": {"name": "top", "value": 1000}}, ["displace the platform's"]),
    ([SPEECH], {"platformPriorityClass": {"name": "training-low", "value": 9}}, ["class of the platform's own pods"]),
    ([{**SPEECH, "storage": {"workspace": "1Ti"}}], {}, ["storage.workspace (1Ti)", "storage.maxClaim (100Gi)"]),
    ([{**SPEECH, "storage": {"total": "50Gi"}}], {}, ["storage.maxClaim (100Gi)", "storage.total (50Gi)"]),
    ([SPEECH], {"storage": {"s3": EXTERNAL}}, ["global.contract.network.s3"]),
    ([{"name": "Vision", "gid": 20001}], {}, ["/teams/0/name"]),
    ([{"name": "vision"}], {}, ["/teams/0", "gid"]),
    ([{"name": "vision", "gid": 10}], {}, ["/teams/0/gid", "minimum"]),
    ([{"name": "vision", "gid": 65534}], {}, ["/teams/0/gid"]),
    ([{**SPEECH, "membrs": {}}], {}, ["membrs"]),
    ([{**SPEECH, "queue": {"wieght": 2}}], {}, ["wieght"]),
]  # fmt: skip


@pytest.mark.parametrize(("teams", "contract", "words"), INVALID, ids=[words[-1] for *_, words in INVALID])
def test_wrong_team_is_refused_in_words(
    teams: list[dict[str, Any]], contract: dict[str, Any], words: list[str], chart: Path, tmp_path: Path
) -> None:
    with pytest.raises(TrainyardError) as caught:
        package.render("kind", chart, values=[write(tmp_path, *teams, **contract)])
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_examples_install(example: Path, chart: Path) -> None:
    teams = yaml.safe_load(example.read_text())["global"]["contract"]["teams"]
    found = {
        obj["metadata"]["name"]
        for obj in package.render("on-prem", chart, values=[example])
        if obj["kind"] == "Namespace"
    }
    assert found == {team["name"] for team in teams} | {f"{SYSTEM}-webhook"}


def test_twenty_teams_fit_in_one_release(chart: Path, tmp_path: Path) -> None:
    teams = [{**VISION, "name": f"team-{number}", "gid": 20000 + number} for number in range(20)]
    size = package.release_secret_size("kind", chart, [write(tmp_path, *teams)])
    assert size < package.RELEASE_LIMIT, f"{size} bytes"


@pytest.mark.parametrize(
    ("uri", "addresses", "egress"),
    [
        ("", [], []),
        (
            "http://mlflow.tracking.svc.cluster.local:5000",
            [],
            [{"to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "tracking"}}}]}],
        ),
        (
            "https://203.0.113.7",
            [],
            [{"to": [{"ipBlock": {"cidr": "203.0.113.7/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}],
        ),
        (
            "https://mlflow.example.com",
            [{"cidr": "203.0.113.0/24", "port": 8443}],
            [{"to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}], "ports": [{"protocol": "TCP", "port": 8443}]}],
        ),
    ],
)
def test_the_way_to_mlflow_follows_from_its_address(
    uri: str, addresses: list[Any], egress: list[Any], chart: Path, tmp_path: Path
) -> None:
    more = {"mlflow": {"trackingUri": uri}, "network": {"mlflow": addresses}}
    objects = package.render("kind", chart, values=[write(tmp_path, VISION, SPEECH, **more)])
    for team in ("vision", "speech"):
        assert find(objects, "NetworkPolicy", "allow-mlflow", team)["spec"]["egress"] == egress


@pytest.mark.parametrize("namespace", [SYSTEM, f"{SYSTEM}-webhook", "kube-system"])
def test_mlflow_beside_the_platform_would_open_it_and_is_refused(namespace: str, validation_errors: Any) -> None:
    uri = f"http://mlflow.{namespace}.svc.cluster.local:5000"
    [said] = validation_errors({"global": {"contract": {"mlflow": {"trackingUri": uri}}}})
    assert f"trackingUri is {uri}: pods of all teams would reach every pod of {namespace}" in said
    assert "Run the server in a namespace of its own" in said


def test_an_outside_name_of_mlflow_without_addresses_is_refused(validation_errors: Any) -> None:
    [said] = validation_errors({"global": {"contract": {"mlflow": {"trackingUri": "https://mlflow.example.com"}}}})
    assert "trackingUri is https://mlflow.example.com, a name that network policies can't hold" in said
    assert "name its addresses in global.contract.network.mlflow" in said


def test_each_team_reads_its_own_numbers_of_gpus_alone(objects: Objects) -> None:
    for team, groups in (("vision", {"vision-members", "vision-viewers"}), ("speech", set())):
        binding = find(objects, "RoleBinding", f"trainyard-gpus-{team}", SYSTEM)
        assert {one["name"] for one in binding["subjects"] if one["kind"] == "Group"} == groups
        [rule] = find(objects, "Role", f"trainyard-gpus-{team}", SYSTEM)["rules"]
        assert (rule["resourceNames"], rule["verbs"]) == ([f"trainyard-gpus-{team}"], ["get"])
        assert "data" not in find(objects, "ConfigMap", f"trainyard-gpus-{team}", SYSTEM), "an upgrade would empty it"
