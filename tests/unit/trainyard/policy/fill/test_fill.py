"""The table of filled-in defaults, applied to manifests without an API server."""

import copy
import dataclasses
import json
from typing import Any

import pytest
import yaml

from trainyard import contract
from trainyard.contract import Contract, Team
from trainyard.errors import TrainyardError
from trainyard.kinds import JobSpec, TeamConfig, manifest, registry
from trainyard.policy import cel, fill, offline, rules
from trainyard.policy.fill import render

GPUS = {"limits": {"nvidia.com/gpu": 1}}
VISION = Team(
    "vision", ("vision", "training"), ("training-low", "training-normal"), 8, "100Gi",
    limits={"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"memory": "8Gi"}},
    fill={"deadlineSeconds": 3600, "keepSeconds": 600},
)  # fmt: skip


@pytest.fixture(scope="module")
def site() -> Contract:
    return contract.defaults()


def pod(**container: Any) -> dict[str, Any]:
    main = {"name": "main", "image": "site.invalid/trainyard/pipeline:0.4.0", **container}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [main]}}


def job(kind: registry.Kind, template: dict[str, Any]) -> dict[str, Any]:
    """The least manifest of a kind."""
    meta = {"metadata": {"name": "j"}}
    head = {"apiVersion": kind.api_version, "kind": kind.kind, **meta}
    if kind.replicas:
        return head | {"spec": {kind.replicas: {kind.roles[-1]: {"template": template}}}}
    if kind.part:
        return head | {"spec": {"tasks": [{"name": "worker", "template": template}]}}
    return head | {"spec": {"template": template}}


@pytest.mark.parametrize("kind", registry.KINDS, ids=lambda kind: kind.resource)
def test_no_rule_says_anything_of_a_job_that_was_filled_in(site: Contract, kind: registry.Kind) -> None:
    made = fill.filled(job(kind, {"spec": pod(resources=GPUS)["spec"]}), site, VISION)
    asks = offline.Request(offline.defaulted(made.obj, VISION), offline.Requester(queues=VISION.queues), VISION)
    advice = {one.name for one in rules.rules() if one.advice}  # by default it only warns
    assert [one for one in offline.violations(asks, site) if one.rule not in advice] == []
    assert fill.filled(made.obj, site, VISION).names == (), "nothing is left to fill in"


def test_a_namespace_that_no_upgrade_has_rewritten_says_the_same() -> None:
    former = {"trainyard.io/defaults": "deadline=3600,keep=600,cpu=200m,memory=1Gi,memoryLimit=8Gi"}
    asked = cel.compile(rules.shared()["defaults"])
    spaces = [{"metadata": {"annotations": notes}} for notes in (former, offline.annotations_of(VISION))]
    old, new = (asked({"namespaceObject": space}) for space in spaces)
    assert sorted(old) == sorted(pair for pair in new if pair != [""])


def test_the_object_itself_is_not_changed(site: Contract) -> None:
    given = pod(resources=GPUS)
    kept = copy.deepcopy(given)
    fill.filled(given, site, VISION)
    assert given == kept


def test_what_was_filled_in_is_noted_beside_what_was_noted_before(site: Contract) -> None:
    given = pod(resources=GPUS)
    given["metadata"]["annotations"] = {fill.TOLD: "queue", "own": "kept"}
    made = fill.filled(given, site, VISION)
    notes = made.obj["metadata"]["annotations"]
    assert notes["own"] == "kept"
    assert notes[fill.TOLD] == ", ".join(dict.fromkeys(["queue", *made.names]))
    assert fill.filled(made.obj, site, VISION).obj == made.obj


def test_times_and_amounts_are_the_team_s(site: Contract) -> None:
    made = fill.filled(job(registry.of_framework("job"), {"spec": pod(resources=GPUS)["spec"]}), site, VISION).obj[
        "spec"
    ]
    assert (made["activeDeadlineSeconds"], made["ttlSecondsAfterFinished"]) == (3600, 600)
    due = {
        "requests": {"nvidia.com/gpu": 1, "cpu": "200m", "memory": "1Gi"},
        "limits": {"nvidia.com/gpu": 1, "memory": "8Gi"},
    }
    assert made["template"]["spec"]["containers"][0]["resources"] == due


def test_a_large_request_is_its_own_limit(site: Contract) -> None:
    given = {"requests": {"nvidia.com/gpu": "2", "memory": "32Gi", "cpu": 4}}
    made = fill.filled(pod(resources=given), site, VISION).obj["spec"]["containers"][0]["resources"]
    assert made["limits"] == {"nvidia.com/gpu": "2", "memory": "32Gi"}


def test_who_says_that_the_image_is_not_root_keeps_its_user(site: Contract) -> None:
    given = pod()
    given["spec"]["securityContext"] = {"runAsNonRoot": True}
    made = fill.filled(given, site, VISION).obj["spec"]["securityContext"]
    assert made == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_a_pod_of_an_account_with_a_token_keeps_it(site: Contract) -> None:
    given = pod()
    given["spec"]["serviceAccountName"] = "pipeline"
    assert "automountServiceAccountToken" not in fill.filled(given, site, VISION).obj["spec"]


def test_the_pool_that_a_selector_describes(site: Contract) -> None:
    raw = copy.deepcopy(site.raw)
    raw["policies"]["fill"] = {
        "poolResources": ["nvidia.com/gpu", "nvidia.com/gpu"],
        "poolLabels": [{"pool": "gpu"}, {"pool": "gpu", "size": "large"}],
        "poolTolerations": [[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                            [{"key": "large", "operator": "Exists", "effect": "NoSchedule"}]],
    }  # fmt: skip
    raw["policies"]["parameters"] |= {"gpuTaints": "nvidia.com/gpu,large"}
    found = contract.read.contract(raw, "test")
    given = pod(resources=GPUS)
    assert fill.filled(given, found, VISION).obj["spec"]["nodeSelector"] == {"pool": "gpu"}
    given["spec"]["nodeSelector"] = {"pool": "gpu", "size": "large"}
    made = fill.filled(given, found, VISION).obj["spec"]
    assert ([one["key"] for one in made["tolerations"]], made["nodeSelector"]) == (
        ["large"],
        {"pool": "gpu", "size": "large"},
    )


def test_an_image_stands_in_by_what_its_pool_computes_with(site: Contract) -> None:
    raw = copy.deepcopy(site.raw)
    raw["policies"]["fill"] |= {
        "poolResources": ["nvidia.com/gpu", "nvidia.com/gpu"],
        "poolLabels": [{"pool": "real"}, {"pool": "mock"}],
        "poolTolerations": [[], []],
        "poolCuda": [True, False],
        "imageNames": ["pytorch/pytorch"],
        "imageReferences": ["site.invalid/trainyard/trainer-torch:0.4.0"],
        "cudaReferences": ["site.invalid/trainyard/trainer-torch-cuda:0.4.0"],
    }
    found = contract.read.contract(raw, "test")
    image = {"image": "pytorch/pytorch:2.4"}

    def taken(given: dict[str, Any]) -> str:
        made = fill.filled(given, found, VISION)
        assert made.images[0][0] == "pytorch/pytorch:2.4"
        return made.images[0][1].rpartition("/")[2]

    assert taken(pod(**image, resources=GPUS)) == "trainer-torch-cuda:0.4.0"
    assert taken(pod(**image)) == "trainer-torch:0.4.0", "no GPU computes for it"
    mock = pod(**image, resources=GPUS)
    mock["spec"]["nodeSelector"] = {"pool": "mock"}
    assert taken(mock) == "trainer-torch:0.4.0"
    step = {"name": "a", "container": {**image, "resources": GPUS}}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}}
    assert taken(head | {"spec": {"entrypoint": "a", "templates": [step]}}) == "trainer-torch-cuda:0.4.0"


@pytest.mark.parametrize("kind", registry.KINDS, ids=lambda kind: kind.resource)
def test_a_job_of_train_lacks_nothing_that_is_filled_in(site: Contract, kind: registry.Kind) -> None:
    """Its times and its class are the team's, as they would be if somebody had left them out."""
    team = dataclasses.replace(VISION, fill={**VISION.fill, "priorityClass": "training-low"}, pools=site.pools)
    found = dataclasses.replace(site, teams={"vision": team})
    spec = JobSpec("digits", ("python",), framework=kind.framework, gpus=1)
    made = manifest(spec, TeamConfig.of(found, "vision"))
    assert fill.filled(made, found, team).names == ()
    text = json.dumps(made)
    assert "training-low" in text and "training-normal" not in text
    assert '"activeDeadlineSeconds": 3600' in text and '"ttlSecondsAfterFinished": 600' in text


def test_of_other_kinds_nothing_is_known(site: Contract) -> None:
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}
    assert fill.filled(given, site, VISION) == fill.Filled(given)


def test_an_object_of_another_shape_is_named(site: Contract) -> None:
    given = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd"}, "spec": {"containers": ["main"]}}
    with pytest.raises(TrainyardError, match=r"Pod odd: nothing can be filled in: .* `trainyard lint` to see"):
        fill.filled(given, site, VISION)


def test_every_job_that_the_rules_look_at_belongs_to_a_group() -> None:
    looked = {
        (group, name)
        for policy in offline.policies()
        if policy.name in ("api-token", "workflow-bounds", "claim-class", "podgroup-queue")
        for group, name, _ in policy.looks
    }
    assert {one for one in looked if not any(group.looks_at(*one) for group in fill.groups())} == set()


def test_groups_share_no_kind() -> None:
    kinds = [(api, name) for group in fill.groups() for rule in group.rules for api in rule["apiGroups"]
             for name in rule["resources"]]  # fmt: skip
    assert len(kinds) == len(set(kinds))


def test_a_policy_is_asked_about_new_objects_only_and_never_stands_in_the_way() -> None:
    for policy in fill.policies():
        spec = policy["spec"]
        assert {one for rule in spec["matchConstraints"]["resourceRules"] for one in rule["operations"]} == {"CREATE"}
        assert spec["failurePolicy"] == "Ignore", "the rules refuse what could not be filled in"
        assert len(spec["mutations"]) == 1


def test_pointers_are_escaped() -> None:
    assert "scheduling.volcano.sh~1queue-name" in yaml.safe_dump(list(fill.policies()))
    assert render.quoted("a/b", "c~d") == "'/a~1b/c~0d'"
