"""Policies that fill in defaults, as rendered: only where the cluster supports them, with the site's values."""

from __future__ import annotations

import json

import pytest
from found import contract_of

from rendering import Objects, Rendering
from trainyard.contract import of_objects
from trainyard.policy import fill, offline

KIND = "MutatingAdmissionPolicy"
SERVES = [f"admissionregistration.k8s.io/v1/{KIND}"]
TEAMS = {
    "global": {
        "contract": {
            "teamDefaults": {"fill": {"deadlineSeconds": 1800, "keepSeconds": 900}},
            "teams": [
                {"name": "vision", "gid": 20001, "fill": {"deadlineSeconds": 3600}},
                {"name": "speech", "gid": 20002, "fill": {"enabled": False}},
                {"name": "counted", "gid": 20003, "quota": {"training-low": {"gpus": 8}}, "limits": {"limits": {}},
                 "priorityClasses": ["training-high", "training-low", "training-normal"]},
            ],
            "nodePools": [
                {"name": "spot", "kind": "gpu", "spot": True, "labels": {"trainyard.io/pool": "gpu", "pool": "spot"},
                 "selector": {"pool": "spot"}, "gpu": {"resource": "x/gpu"},
                 "taint": {"key": "spot", "effect": "NoSchedule"}},
                {"name": "gpu", "kind": "gpu", "labels": {"trainyard.io/pool": "gpu"},
                 "gpu": {"resource": "nvidia.com/gpu"},
                 "taint": {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}},
                {"name": "cpu", "kind": "cpu", "labels": {"trainyard.io/pool": "cpu"}},
            ],
        }
    },
    "policies": {
        "allowedImages": ["example.org/c/"],
        "fill": {
            "images": {
                "docker.io/tensorflow/tensorflow": "trainerTensorflow",
                "tensorflow/tensorflow:2.15": "example.org/c/e:1",
                "a/b:1": "example.org/c/d:2",
            }
        },
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def filling(render: Rendering) -> Objects:
    return render(TEAMS, serves=SERVES)


def defaults_in(annotations: dict[str, str]) -> dict[str, str]:
    before = "trainyard.io/default-"
    return {key.removeprefix(before): value for key, value in annotations.items() if key.startswith(before)}


def of(objects: Objects, kind: str, name: str = "") -> Objects:
    return [one for one in objects if one["kind"] == kind and one["metadata"]["name"].startswith(name)]


def test_one_policy_and_binding_for_each_group(filling: Objects) -> None:
    due = {f"{fill.PREFIX}{group.name}" for group in fill.groups()}
    assert {one["metadata"]["name"] for one in of(filling, KIND)} == due
    bindings = of(filling, f"{KIND}Binding") + of(filling, "ValidatingAdmissionPolicyBinding", "trainyard-fill-")
    assert {one["metadata"]["name"] for one in bindings} == due | {"trainyard-fill-told"}
    for binding in bindings:
        assert binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"] == [
            {"key": "trainyard.io/team", "operator": "Exists"},
            {"key": "trainyard.io/fill", "operator": "NotIn", "values": ["off"]},
        ]
    assert bindings[-1]["spec"]["validationActions"] == ["Warn"]


def test_a_cluster_that_serves_none_gets_none(objects: Objects) -> None:
    assert not of(objects, KIND) and not of(objects, "ValidatingAdmissionPolicy", "trainyard-fill-")


def test_never_is_nowhere(render: Rendering) -> None:
    assert not of(render(TEAMS, sets=["policies.fill.mode=never"], serves=SERVES), KIND)


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (["policies.fill.mode=always"], "policies.fill.mode is always, and this cluster"),
        (["policies.fill.mode=sometimes"], "at '/policies/fill/mode': value must be one of 'auto', 'always', 'never'"),
        (["policies.fill.images.a/b=trainerTorches"], "trainerTorches, the stand-in for a/b, is not a key of"),
        (["policies.fill.images.a/b=elsewhere.org/c:1"],
         "elsewhere.org/c:1, the stand-in for a/b, would be refused itself: pin it by digest, or add its"),
        (["global.contract.teamDefaults.fill.priorityClass=training-high"],
         "team vision would be given priority class training-high (fill.priorityClass), which is not one of its"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(render: Rendering, sets: list[str], says: str) -> None:
    assert says in render.refusal(TEAMS, sets=sets)


def test_a_site_s_values_are_in_the_policies(filling: Objects) -> None:
    for policy in of(filling, KIND):
        expressions = {one["name"]: one["expression"] for one in policy["spec"]["variables"]}
        if "site" in expressions:
            lists = json.loads(expressions["site"].replace("dyn(", "").replace(")", ""))
            assert lists["poolResources"] == ["nvidia.com/gpu", "x/gpu"], "nodes that stay come first"
            assert lists["poolTolerations"][1] == [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]
            names = lists["imageNames"]
            assert names == sorted(names, key=lambda name: (-len(name), name)), "what says more comes first"
            at = [names.index(one) for one in ("tensorflow/tensorflow:2.15", "tensorflow/tensorflow", "a/b:1")]
            ours = "site.invalid/trainyard/trainer-tensorflow"
            due = ["example.org/c/e:1", f"{ours}:0.4.0", "example.org/c/d:2"]
            assert [lists["imageReferences"][n] for n in at] == due
            due[1] = f"{ours}-cuda:0.4.0"
            assert [lists["cudaReferences"][n] for n in at] == due
            assert lists["imageReferences"][names.index("python")] == "site.invalid/trainyard/pipeline:0.4.0"
            assert lists["poolCuda"] == [False, False], "mock GPUs, and those of another vendor, compute with no image"
            assert json.loads(expressions["params"])["schedulerName"] == "volcano"


def test_what_namespaces_say(filling: Objects) -> None:
    spaces = {one["metadata"]["name"]: one["metadata"] for one in of(filling, "Namespace")}
    told = {name: defaults_in(spaces[name]["annotations"]) for name in ("vision", "speech", "counted")}
    amounts = {"cpu": "100m", "memory": "256Mi"}
    limits = {"cpu-limit": "8", "memory-limit": "16Gi"}
    assert told["vision"] == {"deadline": "3600", "keep": "900", **amounts, **limits}
    assert told["counted"] == {"deadline": "1800", "keep": "900", "priority": "training-normal", **amounts}
    off = {name for name in told if spaces[name]["labels"].get("trainyard.io/fill") == "off"}
    assert off == {"speech"}


def test_the_contract_tells_the_same(filling: Objects) -> None:
    """Lint and `adopt` read the same as the rules in the cluster."""
    published = contract_of(filling)
    spaces = {one["metadata"]["name"]: one["metadata"].get("annotations", {}) for one in of(filling, "Namespace")}
    for name, team in of_objects(filling).teams.items():
        assert defaults_in(offline.annotations_of(team)) == defaults_in(spaces[name])
    names = published["policies"]["fill"]["imageNames"]
    assert len(names) == len(set(names)) == 17, "fifteen of ours, two more of the site, which names one of ours itself"
    assert published["policies"]["fill"]["served"] is True, "lint judges what steps create as the rules see it"
