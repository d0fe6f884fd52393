"""Admission rules as the chart renders them: policies, bindings by mode, parameters from the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rendering import Objects, Rendering
from trainyard.contract import of_objects
from trainyard.policy import rules

OF_OPTIONS = {rule.name for rule in rules.rules() if rule.option}  # there with what they are about
RULES = [file.stem for file in rules.policy_files() if file.stem not in OF_OPTIONS]
ADVICE = ["memory-request", "model-path"]
TEAM = ["global.contract.teams[0].name=vision", "global.contract.teams[0].gid=20001"]


def named(objects: Objects, kind: str) -> dict[str, dict[str, Any]]:
    """Our objects of a kind, by rule."""
    found = {o["metadata"]["name"].removeprefix("trainyard-"): o for o in objects if o["kind"] == kind}
    return {name: obj for name, obj in found.items() if name in RULES}


def parameters(objects: Objects) -> dict[str, str]:
    """The parameters of all rules together."""
    found: dict[str, str] = {}
    for rule, policy in named(objects, "ValidatingAdmissionPolicy").items():
        for variable in policy["spec"].get("variables", []):
            if variable["name"] == "params":
                own = json.loads(variable["expression"])
                assert all(found.get(key, value) == value for key, value in own.items()), rule
                found |= own
    return found


def without_parameters(spec: dict[str, Any]) -> dict[str, Any]:
    return spec | {"variables": [v for v in spec.get("variables", []) if v["name"] != "params"]}


def test_every_rule_is_installed_as_its_file_says_and_enforced(objects: Objects) -> None:
    policies, bindings = (named(objects, f"ValidatingAdmissionPolicy{suffix}") for suffix in ("", "Binding"))
    assert sorted(policies) == sorted(bindings) == RULES
    for file in rules.policy_files():
        if file.stem in OF_OPTIONS:
            continue
        plain = rules.policy(file)["spec"]
        assert without_parameters(policies[file.stem]["spec"]) == without_parameters(plain)
        assert "paramKind" not in plain, "an API server loses parameter objects: kubernetes#133827"
        assert bindings[file.stem]["spec"]["validationActions"] == ["Warn" if file.stem in ADVICE else "Deny"]


def test_what_is_only_advice_says_so() -> None:
    assert [rule.name for rule in rules.rules() if rule.advice] == ADVICE


def test_rules_of_namespaces_hold_in_teams_namespaces_only(objects: Objects) -> None:
    selector = {"matchExpressions": [{"key": "trainyard.io/team", "operator": "Exists"}]}
    policies = named(objects, "ValidatingAdmissionPolicy")
    for rule, binding in named(objects, "ValidatingAdmissionPolicyBinding").items():
        spec, of_cluster = binding["spec"], "trainyard.io/scope" in policies[rule]["metadata"]["annotations"]
        assert ("matchResources" in spec) != of_cluster, rule
        if not of_cluster:
            assert spec["matchResources"]["namespaceSelector"] == selector
        else:
            assert policies[rule]["spec"]["matchConditions"], f"{rule} would look at everything"


@pytest.mark.parametrize(("mode", "action"), [("warn", "Warn"), ("audit", "Audit"), ("off", None)])
def test_modes(mode: str, action: str | None, render: Rendering) -> None:
    objects = render(sets=[f"policies.modes.pod-queue={mode}"])
    binding = named(objects, "ValidatingAdmissionPolicyBinding").get("pod-queue")
    assert (binding["spec"]["validationActions"] if binding else None) == ([action] if action else None)
    assert "pod-queue" in named(objects, "ValidatingAdmissionPolicy")


def test_parameters_come_from_the_contract(render: Rendering) -> None:
    sets = [*TEAM, "policies.allowedImages={example.org/team/}", "global.imageRegistry=mirror.example:5000/x"]
    sets += ["policies.operators={system:serviceaccount:argo:argo}", "policies.maxDeadlineSeconds=3600"]
    data = parameters(render(sets=sets))
    account = "system:serviceaccount:trainyard-system:trainyard"
    assert data["gpuResources"] == data["gpuTaints"] == "nvidia.com/gpu"
    assert data["schedulerName"] == "volcano"
    assert data["allowedImages"] == "example.org/team/,mirror.example:5000/x/trainyard/"
    assert data["maxDeadlineSeconds"] == "3600"
    assert data["teamNamespaces"] == "vision"
    assert data["operators"].split(",") == [
        f"{account}-training-operator", f"{account}-controllers", "system:serviceaccount:argo:argo",
    ]  # fmt: skip
    assert data["teamWorkflowController"] == f"{account}-workflow-controller-"
    assert data["workflowControllers"] == ""
    assert data["provisioners"] == f"{account}-nfs-provisioner"
    assert data["storageClasses"] == "trainyard-shared,trainyard-workspace"


def test_accounts_among_the_parameters_exist(objects: Objects) -> None:
    accounts = {
        f"system:serviceaccount:{o['metadata']['namespace']}:{o['metadata']['name']}"
        for o in objects
        if o["kind"] == "ServiceAccount"
    }
    data = parameters(objects)
    controllers = [data["teamWorkflowController"] + team for team in data["teamNamespaces"].split(",") if team]
    assert {*f"{data['operators']},{data['provisioners']}".split(","), *controllers} <= accounts


def test_every_image_of_the_contract_is_allowed(objects: Objects) -> None:
    allowed = parameters(objects)["allowedImages"].split(",")
    for image in of_objects(objects).images.values():
        assert any(image.startswith(prefix) for prefix in allowed), image


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["policies.modes.pod-queue=deny"], ["pod-queue", "enforce"]),
        (["policies.modes.pod-queues=off"], ["pod-queues"]),
        (["policies.allowedImages={example.org/team}"], ["allowedImages"]),
        (["policies.allowedImages={example.org/}"], ["policies.allowedImages", "a whole registry"]),
        (["policies.tokenServiceAccounts={default}"], ["policies.tokenServiceAccounts names default"]),
        (["policies.maxDeadlineSeconds=0"], ["maxDeadlineSeconds"]),
        (["policies.operators={a b}"], ["operators"]),
    ],
)
def test_wrong_values_are_refused(sets: list[str], words: list[str], render: Rendering) -> None:
    said = render.refusal(sets=sets)
    assert all(word in said for word in words), said
