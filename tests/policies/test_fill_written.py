"""What members wrote themselves, images of the site's table, teams of their own ways: kept, judged or refused."""

from dataclasses import replace
from typing import Any

import pytest
from filled_in import IMAGE, NEEDS_MUTATING, closed, create, plain, titled, told

from trainyard.contract import Contract
from trainyard.policy import fill, offline
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.install import complete_namespace
from trainyard_dev.policy.cases import changed, stored

pytestmark = NEEDS_MUTATING


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
        ("/spec/template/spec/containers/0/image", "x.org/box", "from there, such as site.invalid/trainyard/pipeline"),
        ("/spec/template/spec/containers/0/image", "x.org/pytorch:2", f"use one from there, such as {IMAGE}"),
    ],
)
def test_a_contradiction_is_refused(filling: ApiServer, place: str, value: Any, says: str) -> None:
    answer = create(filling, changed(plain()[0], {place: value}))
    assert not answer.ok
    assert says in answer.message


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
        assert made["spec"]["template"]["spec"]["containers"][0]["image"] == f"site.invalid/trainyard/{due}:0.4.0"


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
    """A namespace that no upgrade has rewritten names the class, and the API server computes the number again."""
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
    name, says = "classes", {"deadlineSeconds": 100, "keepSeconds": 7, "priorityClass": "training-normal"}
    team = replace(site.team("vision"), name=name, fill=says)
    meta = {"name": name, "labels": {"trainyard.io/team": name}, "annotations": offline.annotations_of(team)}
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
