"""What members leave open: filled in by a real API server with the mutating policies, and by `trainyard adopt` alike.

The rules' own cases run without these policies (test_policies.py); here they are asked again with them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from conftest import HERE

from trainyard import contract
from trainyard.contract import Contract
from trainyard.policy import fill
from trainyard_dev import tools
from trainyard_dev.apiserver import Answer, ApiServer, running
from trainyard_dev.apiserver.install import complete_namespace, install
from trainyard_dev.chart import package
from trainyard_dev.policy.cases import WHO, ask, cases, changed, rules, stored
from trainyard_dev.policy.child_objects import Platform, child_objects

SERVES = [f"{fill.API}/{fill.KIND}"]
SETS = [
    "policies.fill.images.example\\.org/well/known=trainerTorch",
    "policies.fill.images.docker\\.io/well/known=trainerTorch",
    "policies.fill.images.well/known:2\\.15=trainerJax",
    "policies.fill.clusterStorageClasses={cluster-own}",
]
OWN = ("uid", "creationTimestamp", "managedFields", "generation", "resourceVersion", "selfLink", "name")
NOTES = (fill.TOLD, "kubernetes.io/limit-ranger")
IMAGE = "docker.io/trainyard/trainer-torch:0.3.0"

pytestmark = pytest.mark.skipif(
    tuple(int(part) for part in tools.tested_kubernetes().number.split(".")[:2]) < (1, 36),
    reason="MutatingAdmissionPolicy is served from Kubernetes 1.36 on",
)


def closed(server: ApiServer, namespace: str, name: str) -> None:
    """A service account whose pods get no token unless they ask for it."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    assert server.apply(account | {"automountServiceAccountToken": False}).ok


@pytest.fixture(scope="module")
def filling() -> Iterator[ApiServer]:
    """A server with the platform as a cluster has it that serves MutatingAdmissionPolicy."""
    objects = package.render("kind", values=[HERE / "teams.yaml", HERE / "options.yaml"], sets=SETS, serves=SERVES)
    objects += yaml.safe_load_all((HERE / "extra.yaml").read_text())
    with running() as found:
        install(found, objects)
        for name in ("default", "case-launcher"):  # as the setup job leaves the first one
            closed(found, "vision", name)
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Contract:
    """The contract of the same values."""
    values = yaml.safe_load((HERE / "teams.yaml").read_text())
    values |= yaml.safe_load((HERE / "options.yaml").read_text())
    values["policies"]["fill"] = {
        "images": {
            "example.org/well/known": "trainerTorch", "docker.io/well/known": "trainerTorch",
            "well/known:2.15": "trainerJax",
        },
        "clusterStorageClasses": ["cluster-own"],
    }  # fmt: skip
    file = tmp_path_factory.mktemp("site") / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return contract.load(file)


def plain() -> list[dict[str, Any]]:
    """The manifests of plain.yaml, without anchors."""
    return [copy.deepcopy(one) for one in yaml.safe_load_all((HERE / "plain.yaml").read_text())]


def titled(obj: dict[str, Any]) -> str:
    return f"{obj['kind']}-{obj['metadata'].get('name') or obj['metadata']['generateName']}"


PLAIN = pytest.mark.parametrize("manifest", plain(), ids=titled)


def create(server: ApiServer, obj: dict[str, Any], who: str = "member", namespace: str = "vision") -> Answer:
    made = copy.deepcopy(obj)
    made["metadata"]["namespace"] = namespace
    return server.create(made, identity=WHO[who], dry_run=True)


def told(answer: Answer) -> list[str]:
    """What an object says to have been filled in."""
    words = answer.body["metadata"].get("annotations", {}).get(fill.TOLD, "")
    return [one for one in words.split(", ") if one]


def same(body: dict[str, Any]) -> dict[str, Any]:
    """An object without what is each object's own, and without the order of tolerations."""
    done: dict[str, Any] = copy.deepcopy(body)
    done["metadata"] = {key: value for key, value in done["metadata"].items() if key not in OWN}
    notes = done["metadata"].pop("annotations", {})
    done["metadata"]["annotations"] = {key: value for key, value in notes.items() if key not in NOTES}
    tolerations = done.get("spec", {}).get("tolerations") if done["kind"] == "Pod" else None
    if tolerations:
        tolerations.sort(key=lambda one: one["key"])
    for volume in done.get("spec", {}).get("volumes", []) if done["kind"] == "Pod" else []:
        volume["name"] = volume["name"].split("kube-api-access")[0] or "token"
    if done["kind"] == "Job":  # what its controller finds its pods by
        done["metadata"].pop("labels", None)
        done["spec"].pop("selector", None)
        done["spec"].get("template", {}).get("metadata", {}).pop("labels", None)
    return done


@PLAIN
def test_a_plain_manifest_is_taken_and_says_what_was_filled_in(filling: ApiServer, manifest: dict[str, Any]) -> None:
    answer = create(filling, manifest)
    assert answer.ok, answer.message
    assert told(answer)


@PLAIN
def test_without_the_mutating_policies_it_is_refused(server: ApiServer, manifest: dict[str, Any]) -> None:
    """So that the test above can't pass for manifests that need nothing."""
    assert not create(server, manifest).ok


@PLAIN
def test_adopt_does_the_same(filling: ApiServer, server: ApiServer, site: Contract, manifest: dict[str, Any]) -> None:
    """One manifest, sent as it is and sent after `adopt`, is one and the same object; adopted, it lacks nothing."""
    sent = create(filling, manifest)
    adopted = fill.filled(manifest, site, site.team("vision"))
    again, elsewhere = create(filling, adopted.obj), create(server, adopted.obj)
    assert again.ok and elsewhere.ok, again.message or elsewhere.message
    assert told(again) == told(elsewhere) == list(adopted.names), "adopt has noted it, and nothing is left"
    assert same(sent.body) == same(again.body) == same(elsewhere.body)
    by_limits = ["resources"] if manifest["kind"] == "Pod" else []  # the team's LimitRange was there first
    assert [one for one in adopted.names if one in told(sent) or one not in by_limits] == told(sent)


@PLAIN
def test_what_controllers_make_of_it_is_taken(filling: ApiServer, manifest: dict[str, Any]) -> None:
    platform = Platform("trainyard-system", "trainyard", "volcano", "docker.io/trainyard/platform:0.3.0",
                        "docker.io/trainyard/kubectl-delivery:0.3.0")  # fmt: skip
    made = create(filling, manifest).body
    for child, maker in child_objects(made, platform):
        answer = filling.create(child, identity=maker, dry_run=True)
        assert answer.ok, answer.message
        assert told(answer) == [], "the job's template had it all"


def test_what_a_member_wrote_stays(filling: ApiServer) -> None:
    own = {
        "/spec/template/spec/tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "/spec/template/spec/securityContext": {"runAsNonRoot": True, "runAsUser": 4711},
        "/spec/template/spec/priorityClassName": "training-low",
        "/spec/template/metadata/annotations": {"scheduling.volcano.sh/queue-name": "training"},
        "/spec/activeDeadlineSeconds": 60,
    }
    answer = create(filling, changed(plain()[0], own))
    assert answer.ok, answer.message
    spec, pod = answer.body["spec"], answer.body["spec"]["template"]["spec"]
    assert pod["tolerations"] == own["/spec/template/spec/tolerations"]
    assert "nodeSelector" not in pod, "who names the taint has chosen nodes"
    due = {"runAsUser": 4711, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["securityContext"] == due
    assert (pod["priorityClassName"], spec["activeDeadlineSeconds"]) == ("training-low", 60)
    assert spec["template"]["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "training"


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("/spec/template/metadata/annotations", {"scheduling.volcano.sh/queue-name": "speech"}, "queue speech is not"),
        ("/spec/template/spec/schedulerName", "mine", "schedulerName is mine"),
        ("/spec/template/spec/priorityClassName", "training-high", "priority class training-high is not for this team"),
        ("/spec/template/spec/automountServiceAccountToken", True, "set automountServiceAccountToken to false"),
        ("/spec/activeDeadlineSeconds", 9999999, "a deadline of 9999999 seconds is too long"),
        ("/spec/ttlSecondsAfterFinished", 99999999, "the finished job would stay for 99999999"),
        ("/spec/template/spec/containers/0/image", "busybox", "from there, such as docker.io/trainyard/pipeline"),
        ("/spec/template/spec/containers/0/image", "pytorch/pytorch:2", f"use one from there, such as {IMAGE}"),
    ],
)
def test_a_contradiction_is_refused(filling: ApiServer, place: str, value: Any, says: str) -> None:
    answer = create(filling, changed(plain()[0], {place: value}))
    assert not answer.ok
    assert says in answer.message


@pytest.mark.parametrize("rule", rules())
def test_what_the_rules_take_is_left_alone_and_what_they_refuse_stays_refused(filling: ApiServer, rule: str) -> None:
    """Of the cases of a rule only those that say `filled` are taken now: what was missing there was filled in."""
    wrong = []
    for case in cases(rule):
        if case.update is not None or case.delete is not None:
            continue
        answer = ask(filling, case)
        if case.allowed:
            # A Workflow without a queue is taken, and its steps would not be.
            due = (["queue"], []) if case.base.endswith("workflow") else ([],)
            if not answer.ok or told(answer) not in due:
                wrong.append(f"{case}: {answer.message or told(answer)}")
        elif answer.ok != case.filled:
            wrong.append(f"{case}: {'taken, with ' + ', '.join(told(answer)) if answer.ok else answer.message}")
    assert "\n".join(wrong) == ""


def test_a_team_opts_out(filling: ApiServer) -> None:
    labels = {"trainyard.io/team": "plain", "trainyard.io/fill": "off"}
    notes = {"trainyard.io/queues": "vision", "trainyard.io/max-gpus-per-job": "8"}
    meta = {"name": "plain", "labels": labels, "annotations": notes}
    with stored(filling, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}):
        complete_namespace(filling, "plain")
        refused = create(filling, plain()[0], "editor", "plain")
        assert "ValidatingAdmissionPolicy" in refused.message
        assert "denied request" in refused.message


def test_an_image_of_the_site_s_table(filling: ApiServer, site: Contract) -> None:
    manifest = changed(plain()[0], {"/spec/template/spec/containers/0/image": "example.org/well/known:2.15-gpu"})
    answer = create(filling, manifest)
    assert answer.ok, answer.message
    assert answer.body["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE
    assert "image" in told(answer)
    due = f"example.org/well/known:2.15-gpu -> {IMAGE}"
    assert answer.body["metadata"]["annotations"]["trainyard.io/image-stands-in"] == due
    assert any(due in warning for warning in answer.warnings)
    adopted = fill.filled(manifest, site, site.team("vision"))
    assert adopted.images == (("example.org/well/known:2.15-gpu", IMAGE),)
    pinned = "example.org/well/known@sha256:" + "0" * 64
    kept = create(filling, changed(plain()[0], {"/spec/template/spec/containers/0/image": pinned}))
    assert kept.body["spec"]["template"]["spec"]["containers"][0]["image"] == pinned
    assert not kept.warnings


@pytest.mark.parametrize(
    ("image", "due"),
    [
        ("well/known:2.15", "trainer-jax"),
        ("docker.io/well/known:2.15", "trainer-jax"),
        ("well/known:2.16", "trainer-torch"),
        ("docker.io/well/known", "trainer-torch"),
    ],
)
def test_the_entry_that_says_most_of_an_image_is_taken(
    filling: ApiServer, site: Contract, image: str, due: str
) -> None:
    manifest = changed(plain()[0], {"/spec/template/spec/containers/0/image": image})
    answer, adopted = create(filling, manifest), fill.filled(manifest, site, site.team("vision"))
    for made in (answer.body, adopted.obj):
        assert made["spec"]["template"]["spec"]["containers"][0]["image"] == f"docker.io/trainyard/{due}:0.3.0"


@pytest.mark.parametrize(
    "image", ["example.org/well/known-too:1", "example.org/well/known/own:1", "own.org/example.org/well/known:1"]
)
def test_an_image_that_only_looks_like_one_of_the_table_is_refused(filling: ApiServer, image: str) -> None:
    answer = create(filling, changed(plain()[0], {"/spec/template/spec/containers/0/image": image}))
    assert not answer.ok and "trainyard-image-source" in answer.message and image in answer.message


def test_marks_that_a_member_writes_switch_nothing_off(filling: ApiServer) -> None:
    """Where it is filled in the namespace says, which members don't write; what was filled in comes to their words."""
    marks = {"/metadata/labels": {"trainyard.io/fill": "off"}, "/metadata/annotations": {fill.TOLD: "nothing"}}
    answer = create(filling, changed(plain()[0], marks))
    assert answer.ok, answer.message
    assert {"queue", "schedulerName", "tolerations"} <= set(told(answer))
    elsewhere = {**marks, "/spec/template/spec/containers/0/image": "evil.org/own:1"}
    assert "trainyard-image-source" in create(filling, changed(plain()[0], elsewhere)).message


def test_amounts_that_a_member_wrote_are_judged_where_others_were_filled_in(filling: ApiServer) -> None:
    own = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": 1, "memory": "900Gi"}}
    answer = create(filling, changed(plain()[0], {"/spec/template/spec/containers/0/resources": own}))
    assert "container mnist may use 900Gi of memory and requests 1Gi" in answer.message


def test_nobody_gets_a_queue_that_they_may_not_use(filling: ApiServer) -> None:
    """The editor may write everything in the team's namespace, but use none of its queues."""
    job = next(one for one in plain() if one["kind"] == "PyTorchJob")
    answer = create(filling, job, "editor")
    assert "eve may not use queue vision" in answer.message


def test_gpus_counted_by_class(filling: ApiServer) -> None:
    """The class is filled in as the namespace says it, and the API server computes the number anew."""
    labels = {"trainyard.io/team": "counted"}
    notes = {
        "trainyard.io/queues": "vision", "trainyard.io/priority-classes": "training-normal",
        "trainyard.io/max-gpus-per-job": "8", "trainyard.io/class-quotas": "training-normal",
        "trainyard.io/defaults": "deadline=100,keep=7,priority=training-normal",
    }  # fmt: skip
    meta = {"name": "counted", "labels": labels, "annotations": notes}
    with stored(filling, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}):
        complete_namespace(filling, "counted")
        closed(filling, "counted", "default")
        limits = {"/spec/containers/0/resources/limits/cpu": "2"}  # elsewhere the team's LimitRange has one
        given = changed(next(one for one in plain() if titled(one) == "Pod-gpu-pod"), limits)
        pod = create(filling, given, "editor", "counted")
        assert pod.ok, pod.message
        assert (pod.body["spec"]["priorityClassName"], pod.body["spec"]["priority"]) == ("training-normal", 1000)
        assert pod.body["spec"]["activeDeadlineSeconds"] == 100
        cpu = create(filling, next(one for one in plain() if titled(one) == "Pod-cpu-pod"), "editor", "counted")
        assert cpu.ok and "priorityClassName" not in cpu.body["spec"], cpu.message


@pytest.mark.parametrize("kind", ["TFJob", "Job"])
def test_a_team_s_class_and_times(filling: ApiServer, site: Contract, kind: str) -> None:
    """What a pod template says of its class stays, and is the job's; a finished job stays as long as the team says."""
    given = next(one for one in plain() if one["kind"] == kind and one["apiVersion"] != "batch/v1")
    part = "tfReplicaSpecs/Worker" if kind == "TFJob" else "tasks/0"
    own = changed(given, {f"/spec/{part}/template/spec/priorityClassName": "training-low"})
    name, told_of_it = "classes", "deadline=100,keep=7,priority=training-normal"
    team = replace(site.team("vision"), name=name, defaults=told_of_it)
    notes = {f"trainyard.io/{key}": value for key, value in {
        "queues": ",".join(team.queues), "priority-classes": ",".join(team.priority_classes),
        "max-gpus-per-job": "8", "defaults": told_of_it,
    }.items()}  # fmt: skip
    meta = {"name": name, "labels": {"trainyard.io/team": name}, "annotations": notes}
    with stored(filling, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}):
        complete_namespace(filling, name)
        closed(filling, name, "default")
        answer = create(filling, own, "admin", name)
    assert answer.ok, answer.message
    for made in (answer.body, fill.filled(own, site, team).obj):
        spec = made["spec"]
        policy = spec.get("runPolicy", spec)
        assert policy["ttlSecondsAfterFinished"] == 7
        roles = spec["tfReplicaSpecs"].values() if kind == "TFJob" else spec["tasks"]
        classes = [role["template"]["spec"].get("priorityClassName") for role in roles]
        assert "training-low" in classes
        if kind == "TFJob":
            assert policy["schedulingPolicy"]["priorityClass"] == "training-low"
        else:
            assert set(classes) <= {"training-low", "training-normal"}


def test_a_claim_with_the_class_that_the_cluster_gives(filling: ApiServer) -> None:
    """Written by nobody, as far as can be told, it is replaced; in a note of kubectl apply it is the member's."""
    claim = next(one for one in plain() if one["kind"] == "PersistentVolumeClaim")
    given = changed(claim, {"/spec/storageClassName": "cluster-own"})
    answer = create(filling, given)
    assert answer.ok, answer.message
    assert answer.body["spec"]["storageClassName"] == "trainyard-shared"
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"spec":{"storageClassName":"cluster-own"}}'}
    written = create(filling, changed(given, {"/metadata/annotations": note}))
    assert "storage class cluster-own is not for teams" in written.message


def test_nothing_is_filled_in_outside_of_teams(filling: ApiServer) -> None:
    pod = next(one for one in plain() if titled(one) == "Pod-cpu-pod")
    answer = create(filling, pod, "admin", "default")
    assert answer.ok and not told(answer)


def test_no_policy_has_type_warnings_at_creation(filling: ApiServer) -> None:
    """Each is there and compiles: a policy that doesn't would silently fill in nothing."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    names = {one["metadata"]["name"] for one in filling.call("GET", path).body["items"]}
    assert names == {f"{fill.PREFIX}{group.name}" for group in fill.groups()}
