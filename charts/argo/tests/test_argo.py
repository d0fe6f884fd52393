"""Argo in the chart: the controller's configuration, its images, and what each team gets for its pipelines."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from found import container, one, pod_of

from rendering import Objects, Rendering
from trainyard import __version__
from trainyard_dev.versions import load

TEAMS = [
    f"global.contract.teams[{i}].{key}={value}"
    for i, (team, gid) in enumerate((("vision", 20001), ("speech", 20002)))
    for key, value in (("name", team), ("gid", gid), ("members.groups[0]", f"{team}-members"))
]
NAME = "trainyard-workflow-controller"
EXTERNAL = ["global.contract.network.s3[0].cidr=203.0.113.0/24", "global.contract.network.s3[0].port=443"]


@pytest.fixture(scope="module")
def objects(render: Rendering) -> Objects:
    return render(sets=TEAMS)


def config(objects: Objects) -> dict[str, Any]:
    """The controller's configuration as it reads it."""
    return yaml.safe_load(one(objects, "ConfigMap", NAME)["data"]["config"])


def controller(objects: Objects, team: str = "vision") -> dict[str, Any]:
    return container(objects, "Deployment", f"{NAME}-{team}")


def test_each_team_has_a_controller_that_sees_its_namespace_alone(objects: Objects) -> None:
    made = {o["metadata"]["name"] for o in objects if o["kind"] == "Deployment" and NAME in o["metadata"]["name"]}
    assert made == {f"{NAME}-vision", f"{NAME}-speech"}
    for team in ("vision", "speech"):
        args = controller(objects, team)["args"]
        assert "--namespaced" in args and f"--managed-namespace={team}" in args and f"--configmap={NAME}" in args
        pod = pod_of(objects, "Deployment", f"{NAME}-{team}")
        assert one(objects, "ServiceAccount", pod["serviceAccountName"], "trainyard-system")
        assert pod["serviceAccountName"] == f"{NAME}-{team}"
        account = {"kind": "ServiceAccount", "name": pod["serviceAccountName"], "namespace": "trainyard-system"}
        bound = [(o["kind"], o["metadata"].get("namespace")) for o in objects if account in (o.get("subjects") or [])]
        assert sorted(bound) == sorted([("RoleBinding", team), ("RoleBinding", "trainyard-system")])


def test_selectors_tell_controllers_of_teams_apart(objects: Objects) -> None:
    found = [one(objects, "Deployment", f"{NAME}-{team}")["spec"] for team in ("vision", "speech")]
    assert found[0]["selector"] != found[1]["selector"]
    for spec in found:
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_a_controller_collects_garbage_below_its_limit(render: Rendering) -> None:
    found = controller(render(sets=[*TEAMS, "argo.resources.limits.memory=1Gi"]))
    env = {one["name"]: one["value"] for one in found["env"]}
    assert env["GOMEMLIMIT"] == str(int(2**30 * 0.9))
    found = controller(render(sets=[*TEAMS, "argo.resources.limits.memory=null"]))
    assert "GOMEMLIMIT" not in {one["name"] for one in found["env"]}


def test_what_a_workflow_leaves_out_fits_admission(objects: Objects) -> None:
    found = config(objects)
    spec = found["workflowDefaults"]["spec"]
    assert spec["schedulerName"] == "volcano"
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["podMetadata"]["labels"] == {"trainyard.io/api-access": "true"}
    for part in ("executor", "mainContainer"):
        assert found[part]["securityContext"] == {
            "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }  # fmt: skip


def test_a_step_waits_for_the_store_as_long_as_the_values_say(render: Rendering) -> None:
    objects = render(sets=[*TEAMS, "argo.executor.storeOutageSeconds=120"])
    env = {one["name"]: one["value"] for one in config(objects)["executor"]["env"]}
    assert env["EXECUTOR_RETRY_BACKOFF_DURATION"] == "3s"
    assert (int(env["EXECUTOR_RETRY_BACKOFF_STEPS"]) - 1) * 3 * float(env["EXECUTOR_RETRY_BACKOFF_FACTOR"]) >= 120


def test_unused_results_of_steps_go_when_the_values_say(render: Rendering) -> None:
    objects = render(sets=[*TEAMS, "argo.cache.unusedFor=240h"])
    assert "--results-unused-for=240h" in container(objects, "CronJob", "trainyard-janitor")["args"]
    assert not [one for one in controller(objects)["env"] if one["name"].startswith("CACHE_GC")]
    janitor = container(render(sets=[*TEAMS, "argo.enabled=false"]), "CronJob", "trainyard-janitor")
    assert not [arg for arg in janitor["args"] if arg.startswith("--results")]


def test_a_changed_configuration_starts_the_controller_anew(objects: Objects, render: Rendering) -> None:
    other = render(sets=[*TEAMS, "argo.workflowsPerTeam=5"])
    assert config(other)["namespaceParallelism"] == 5
    pods = [one(made, "Deployment", f"{NAME}-vision")["spec"]["template"] for made in (objects, other)]
    notes = [pod["metadata"]["annotations"] for pod in pods]
    assert notes[0] != notes[1]


def test_images_follow_the_mirror(render: Rendering) -> None:
    objects = render(sets=[*TEAMS, "global.imageRegistry=mirror.example/x"])
    assert controller(objects)["image"] == load().image("workflow-controller").replace("quay.io", "mirror.example/x")
    assert f"--executor-image=mirror.example/x/trainyard/argoexec:{__version__}" in controller(objects)["args"]


@pytest.mark.parametrize("team", ["vision", "speech"])
def test_artifacts_of_a_team_lie_below_its_prefix(objects: Objects, team: str) -> None:
    found = one(objects, "ConfigMap", "artifact-repositories", team)
    key = found["metadata"]["annotations"]["workflows.argoproj.io/default-artifact-repository"]
    repository = yaml.safe_load(found["data"][key])
    assert repository == {
        "archiveLogs": True,
        "s3": {
            "endpoint": "trainyard-minio.trainyard-system.svc:9000", "insecure": False, "region": "us-east-1",
            "bucket": "runs", "keyFormat": team + "/pipelines/{{workflow.name}}/{{pod.name}}",
            "accessKeySecret": {"name": "trainyard-s3", "key": "access-key"},
            "secretKeySecret": {"name": "trainyard-s3", "key": "secret-key"},
            "caSecret": {"name": "trainyard-s3", "key": "ca.crt"},
        },
    }  # fmt: skip


def test_a_store_with_https_is_reached_by_https(render: Rendering) -> None:
    objects = render(sets=[*TEAMS, "minio.tls.enabled=false"])
    s3 = yaml.safe_load(one(objects, "ConfigMap", "artifact-repositories", "vision")["data"]["default-v1"])["s3"]
    assert s3["insecure"] is True and "caSecret" not in s3
    objects = render(profile="cloud", sets=[*TEAMS, *EXTERNAL])
    s3 = yaml.safe_load(one(objects, "ConfigMap", "artifact-repositories", "vision")["data"]["default-v1"])["s3"]
    assert (s3["endpoint"], s3["insecure"]) == ("s3.eu-central-1.amazonaws.com", False)
    assert "caSecret" not in s3


def test_steps_use_their_teams_queues(objects: Objects) -> None:
    account = {"kind": "ServiceAccount", "name": "pipeline", "namespace": "vision"}
    assert account in one(objects, "ClusterRoleBinding", "trainyard-team-vision")["subjects"]
    assert account not in one(objects, "ClusterRoleBinding", "trainyard-team-speech")["subjects"]


def made_by_steps(group: str, resource: str) -> list[str]:
    objects = "global.contract.pipelines.objects[0]"
    return [f"{objects}.apiGroups[0]={group}", f"{objects}.resources[0]={resource}"]


def test_steps_make_what_the_site_says_and_no_more(render: Rendering) -> None:
    made: dict[str, set[str]] = {}
    for sets in ([], made_by_steps("ray.io", "rayjobs")):
        role = one(render(sets=[*TEAMS, *sets]), "Role", "trainyard-pipeline", "vision")
        rules = [rule for rule in role["rules"] if "create" in rule["verbs"]]
        made[str(len(sets))] = {name for rule in rules for name in rule["resources"]}
        assert not any("*" in rule["resources"] + rule["apiGroups"] + rule["verbs"] for rule in role["rules"])
    assert made["0"] >= {"pytorchjobs", "jobs", "persistentvolumeclaims", "configmaps"}
    assert made["0"].isdisjoint({"pods", "secrets", "workflows", "serviceaccounts"})
    assert made["2"] - made["0"] == {"rayjobs"}


def test_without_argo_there_is_nothing_of_it(render: Rendering) -> None:
    objects = render(sets=[*TEAMS, "argo.enabled=false"])
    names = {o["metadata"]["name"] for o in objects}
    assert names.isdisjoint({"pipeline", "artifact-repositories", "trainyard-pipeline", "workflows.argoproj.io"})
    assert not [name for name in names if "workflow-controller" in name]
    one(objects, "ClusterRoleBinding", "trainyard-team-vision")


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["argo.requeueTime=soon"], ["requeueTime"]),
        (["argo.cache.unusedFor=3 days"], ["unusedFor"]),
        (["argo.cache.lookEvery=1h"], ["lookEvery"]),
        (["argo.replicas=2"], ["replicas"]),
        (["argo.image.tag=latest"], ["tag"]),
        (["argo.executor.storeOutageSeconds=0"], ["storeOutageSeconds"]),
        (
            ["global.contract.pipelines.serviceAccount=training"],
            ["pipelines.serviceAccount is training", "create a dedicated account"],
        ),
        (["global.contract.pipelines.bucket=raw-data"], ["pipelines.bucket is raw-data", "where teams may not write"]),
        (made_by_steps("", "secrets"), ["pipelines.objects names secrets", "remove it"]),
        (made_by_steps("rbac.authorization.k8s.io", "roles"), ["pipelines.objects names roles"]),
        (
            made_by_steps("networking.k8s.io", "networkpolicies"),
            ["pipelines.objects names networkpolicies", "remove the team's limits"],
        ),
        (
            made_by_steps("monitoring.coreos.com", "podmonitors"),
            ["pipelines.objects names podmonitors", "in any team's name"],
        ),
        (made_by_steps("*", "jobs"), ["apiGroups"]),
        (
            ["global.contract.pipelines.bucket=nowhere"],
            ["pipelines.bucket is nowhere", "not among global.contract.storage"],
        ),
    ],
)
def test_wrong_values_are_refused(sets: list[str], words: list[str], render: Rendering) -> None:
    said = render.refusal(sets=sets)
    assert all(word in said for word in words), said
