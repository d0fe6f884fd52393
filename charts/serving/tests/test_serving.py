"""Models in service as an option of the chart: off, it renders nothing; on, rights, limits and access."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from found import contract_of, one

from rendering import Objects, Rendering
from trainyard.policy import rules

RULES = {f"trainyard-{rule.name}" for rule in rules.rules() if rule.option == "serving"}
TEAMS = [{"name": "vision", "gid": 20001}, {"name": "speech", "gid": 20002}]
VALUES: dict[str, Any] = {"global": {"contract": {"teams": TEAMS}}}


@pytest.fixture(scope="module")
def on(render: Rendering) -> Objects:
    allowed = {"vision": ["shop"]}
    quotas = {"speech": {"pods": 3}}
    return render({**VALUES, "serving": {"enabled": True, "allowedNamespaces": allowed, "teamQuotas": quotas}})


def test_off_neither_rights_nor_rules_nor_a_word_of_the_contract(render: Rendering) -> None:
    objects = render(VALUES)
    text = json.dumps([obj for obj in objects if obj["metadata"]["name"] != "trainyard-components"])
    assert "serving" not in json.dumps(contract_of(objects))
    assert not RULES & {obj["metadata"]["name"] for obj in objects} and len(RULES) == 4
    assert "trainyard-serving" not in text and "trainyard.io/access" not in text
    for obj in objects:
        for rule in obj.get("rules") or []:
            if "role" in obj["kind"].lower() and obj["metadata"]["name"].startswith("trainyard-member"):
                assert "deployments" not in rule["resources"] and "services" not in rule["resources"]


def test_on_the_contract_says_what_serves_and_how_the_rules_act(on: Objects) -> None:
    found = contract_of(on)
    assert found["serving"]["bucket"] == "runs" and set(found["serving"]["images"]) == {
        "pytorch", "tensorflow", "sklearn", "onnx",
    }  # fmt: skip
    assert {f"trainyard-{rule}" for rule in found["policies"]["modes"]} >= RULES
    assert found["policies"]["parameters"]["servingClass"] == "trainyard-serving"
    assert all(image.startswith("site.invalid/trainyard/server-")
               for image in found["policies"]["parameters"]["serverImages"].split(","))  # fmt: skip


def test_a_rule_of_it_can_be_switched_off_like_any_other(render: Rendering) -> None:
    objects = render({**VALUES, "serving": {"enabled": True, "modes": {"server-form": "off", "server-keys": "warn"}}})
    bindings = {
        obj["metadata"]["name"]: obj["spec"] for obj in objects if obj["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    assert "trainyard-server-form" not in bindings
    assert bindings["trainyard-server-keys"]["validationActions"] == ["Warn"]
    assert bindings["trainyard-server-model"]["validationActions"] == ["Deny"]


def test_members_get_no_network_no_secrets_no_bindings(on: Objects) -> None:
    rules_of = one(on, "ClusterRole", "trainyard-serving-member")["rules"]
    resources = {resource for rule in rules_of for resource in rule["resources"]}
    assert not resources & {"networkpolicies", "secrets", "roles", "rolebindings", "pods", "statefulsets"}
    assert {verb for rule in rules_of for verb in rule["verbs"]} == {"create", "patch", "delete"}
    step = one(on, "ClusterRole", "trainyard-serving-step")["rules"]
    assert {verb for rule in step for verb in rule["verbs"]} == {"get", "list", "patch"}
    for team in ("vision", "speech"):
        subjects = one(on, "RoleBinding", "trainyard-serving-step", team)["subjects"]
        assert subjects == [{"kind": "ServiceAccount", "name": "pipeline", "namespace": team}]


def test_the_network_opens_what_the_label_says_and_nothing_else(on: Objects) -> None:
    outside = one(on, "NetworkPolicy", "serving-outside", "vision")["spec"]
    assert outside["ingress"] == [{"ports": [{"protocol": "TCP", "port": 8080}]}]
    keys = {one["key"]: one.get("values") for one in outside["podSelector"]["matchExpressions"]}
    assert keys == {"trainyard.io/model": None, "trainyard.io/access": ["outside"]}
    near = one(on, "NetworkPolicy", "serving-namespaces", "vision")["spec"]
    [rule] = near["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8080}]
    assert not any(obj["metadata"]["name"] == "serving-namespaces" and obj["metadata"]["namespace"] == "speech"
                   for obj in on if obj["kind"] == "NetworkPolicy")  # fmt: skip
    [series] = one(on, "NetworkPolicy", "serving-metrics", "vision")["spec"]["ingress"]
    assert series["ports"] == [{"protocol": "TCP", "port": 8081}] and len(series["from"]) == 1
    for obj in on:
        if obj["kind"] == "NetworkPolicy" and obj["metadata"]["name"].startswith("serving-"):
            assert obj["spec"]["policyTypes"] == ["Ingress"]


def test_the_class_displaces_nobody_and_its_pods_are_counted(on: Objects) -> None:
    made = one(on, "PriorityClass", "trainyard-serving")
    assert made["preemptionPolicy"] == "Never" and made["value"] == 20000 and made["globalDefault"] is False
    hard = {team: one(on, "ResourceQuota", "team-serving", team)["spec"] for team in ("vision", "speech")}
    assert {team: spec["hard"] for team, spec in hard.items()} == {"vision": {"pods": "20"}, "speech": {"pods": "3"}}
    assert hard["vision"]["scopeSelector"]["matchExpressions"][0]["values"] == ["trainyard-serving"]


@pytest.mark.parametrize(
    ("serving", "says"),
    [
        ({"bucket": "raw-data"}, 'serving.bucket is "raw-data", where teams have no folder of their own: name one of'),
        ({"allowedNamespaces": {"nobody": ["shop"]}}, 'serving.allowedNamespaces names "nobody", which is not among'),
        ({"allowedNamespaces": {"vision": ["vision"]}}, "whose pods reach its servers anyway: remove it"),
        ({"teamQuotas": {"nobody": {"pods": 1}}}, 'serving.teamQuotas names "nobody", which is not among'),
        (
            {"priorityClass": {"name": "training-high"}},
            'serving.priorityClass.name is "training-high", which is already',
        ),
        ({"priorityClass": {"value": 200000000}}, "not below the platform's own class: set it below 100000000"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_a_sentence(
    render: Rendering, serving: dict[str, Any], says: str
) -> None:
    errors = render.errors({**VALUES, "serving": {"enabled": True, **serving}})
    assert len(errors) == 1 and says in errors[0]
    assert not render.errors({**VALUES, "serving": {"enabled": False, **serving}})


def test_off_the_package_has_its_files_and_the_release_nothing_of_them(chart: Path, render: Rendering) -> None:
    assert (chart / "charts" / "serving" / "values.yaml").is_file()
    objects = render()
    assert not any(obj["metadata"].get("labels", {}).get("app.kubernetes.io/name") == "serving" for obj in objects)


def test_the_releases_prometheus_asks_servers_where_it_is_told_to(render: Rendering) -> None:
    values = {**VALUES, "serving": {"enabled": True}, "monitoring": {"enabled": True, "modelServers": True}}
    objects = render(values)
    configs = [obj["data"]["prometheus.yml"] for obj in objects if "prometheus.yml" in (obj.get("data") or {})]
    [job] = [job for job in yaml.safe_load(configs[0])["scrape_configs"] if job["job_name"] == "models"]
    assert (
        job["kubernetes_sd_configs"][0]["namespaces"]["names"] == ["vision", "speech"] and job["sample_limit"] == 2000
    )
    assert not job.get("honor_labels")
    role = one(objects, "Role", "trainyard-prometheus", "vision")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    egress = one(objects, "NetworkPolicy", "trainyard-prometheus", "trainyard-system")["spec"]["egress"]
    assert {"protocol": "TCP", "port": 8081} in egress[1]["ports"]
    # What is asked is what the servers' own network policy lets in.
    [rule] = one(objects, "NetworkPolicy", "serving-metrics", "vision")["spec"]["ingress"]
    labels = rule["from"][0]["podSelector"]["matchLabels"]
    prometheus = one(objects, "StatefulSet", "trainyard-prometheus")
    assert labels.items() <= prometheus["spec"]["template"]["metadata"]["labels"].items()
    assert contract_of(objects)["serving"]["prometheus"] == "http://trainyard-prometheus.trainyard-system.svc:9090"
    quiet = render({**VALUES, "monitoring": {"enabled": True}})
    assert not any(obj["metadata"].get("namespace") == "vision" and obj["metadata"]["name"] == "trainyard-prometheus"
                   for obj in quiet)  # fmt: skip
