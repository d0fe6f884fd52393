"""The exporter's series of a cluster's objects."""

import re
from typing import Any

import pytest
from exporter_objects import CONTRACT, FULL, GPU, NOW, ago, gang, job, meta, node, owned, pod, workflow

from trainyard import names
from trainyard.kinds import registry
from trainyard.observe import pods as product
from trainyard.pipelines.runs import model as product_runs
from trainyard_agent.api import ApiError
from trainyard_agent.exporter import model, read_jobs, read_pods, reasons, series
from trainyard_agent.exporter.looking import Collector

PATHS = {
    "nodes": "/api/v1/nodes", "pods": "/api/v1/pods", "quotas": "/api/v1/resourcequotas",
    "claims": "/api/v1/persistentvolumeclaims", "jobs": "/apis/kubeflow.org/v1/pytorchjobs",
    "vcjobs": "/apis/batch.volcano.sh/v1alpha1/jobs", "batch": "/apis/batch/v1/jobs",
    "workflows": "/apis/argoproj.io/v1alpha1/workflows",
    "gangs": "/apis/scheduling.volcano.sh/v1beta1/podgroups", "queues": "/apis/scheduling.volcano.sh/v1beta1/queues",
}  # fmt: skip


KINDS = [f"{kind.api_version}/{kind.plural}" for kind in registry.KINDS]


class Api:
    """Lists of objects."""

    namespace = "trainyard-system"

    def __init__(self, objects: dict[str, list[Any]]) -> None:
        self.objects = {PATHS[name]: found for name, found in objects.items()}

    def call(self, method: str, path: str, *, query: dict[str, str], most: int) -> dict[str, Any]:
        return {"kind": "List", "items": self.objects.get(path, []), "metadata": {"resourceVersion": "1"}}


def look(**objects: list[Any]) -> Collector:
    looking = Collector(Api(objects), CONTRACT, KINDS)  # type: ignore[arg-type]
    for kept in looking._kept:
        kept.list()
    return looking


def samples(looking: Collector, name: str) -> dict[str, float]:
    """By labels as they stand between the braces."""
    found = {}
    for line in looking.page(CONTRACT, NOW.timestamp()).splitlines():
        if hit := re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line):
            assert (hit[1] or "") not in found, line
            found[hit[1] or ""] = float(hit[2])
    return found


OF_A = 'team="vision",queue="vision",job="a",kind="PyTorchJob",person="unknown"'


def test_a_job_that_runs_holds_what_it_asks_for_and_does_not_wait() -> None:
    workers = [pod(f"a-worker-{number}", "a", gpus=2, on="n1", gang="a") for number in (0, 1)]
    looking = look(jobs=[job("a", gpus=2)], pods=workers, gangs=[gang("a", "a", phase="Running")], nodes=[node("n1")])
    assert samples(looking, "trainyard_job_info") == {f'{OF_A},phase="running"': 1}
    assert samples(looking, "trainyard_job_gpus_asked") == {OF_A: 4}
    assert samples(looking, "trainyard_job_gpus_held") == {OF_A: 4}
    assert samples(looking, "trainyard_job_wait_seconds") == {}
    assert samples(looking, "trainyard_pod_job") == {
        f'namespace="vision",pod="a-worker-{number}",{OF_A}': 1 for number in (0, 1)
    }
    on_node = 'node="n1",pool="gpu",model="H100",what='
    assert samples(looking, "trainyard_node_gpus") == {
        f'{on_node}"capacity"': 4, f'{on_node}"allocatable"': 4, f'{on_node}"held"': 4,
    }  # fmt: skip
    of_gang = 'team="vision",queue="vision",job="a",state='
    assert samples(looking, "trainyard_gang_members") == {
        f'{of_gang}"least"': 2, f'{of_gang}"wanted"': 2, f'{of_gang}"running"': 2, f'{of_gang}"pending"': 0,
    }  # fmt: skip


QUOTA = {"metadata": meta("team"), "status": {"hard": {"requests.nvidia.com/gpu": "4", "limits.cpu": "1500m"},
                                             "used": {"requests.nvidia.com/gpu": "4", "limits.cpu": "1"}}}  # fmt: skip
TWO = [pod("a-worker-0", "a", gang="a"), pod("a-worker-1", "a", gang="a")]


@pytest.mark.parametrize(
    ("why", "objects"),
    [
        ("quota", {"pods": [], "quotas": [QUOTA]}),
        ("quota", {"pods": [pod("a-worker-0", "a", gang="a")], "quotas": [QUOTA], "gangs": [gang("a", "a")]}),
        ("queue", {"pods": TWO, "gangs": [gang("a", "a", phase="Pending")]}),
        ("queue", {"pods": TWO, "gangs": [gang("a", "a", said="queue resource quota insufficient: cpu")]}),
        ("gpus", {"pods": TWO, "gangs": [gang("a", "a", said=f"2/2 tasks in gang; {reasons.ORIGIN}x: {FULL}")]}),
        ("gpus", {"pods": [pod("a-worker-0", "a", said=FULL), pod("a-worker-1", "a", said=FULL)]}),
        ("nodes", {"pods": [pod("a-worker-0", "a", said="0/4 nodes are available: 4 Insufficient cpu.")]}),
        ("nodes", {"pods": TWO, "gangs": [gang("a", "a", said=f"{reasons.ORIGIN}my-queue-0: 4 node(s) had taints")]}),
        ("gang", {"pods": TWO[:1], "gangs": [gang("a", "a", said="pod group is not ready, 2 minAvailable")]}),
        ("image", {"pods": [pod("a-worker-0", "a", on="n1", phase="Pending", waits="ImagePullBackOff"), TWO[1]]}),
        ("other", {"pods": [pod(name, "a", on="n1", phase="Pending", waits="ContainerCreating") for name in "xy"]}),
        ("other", {"pods": [pod("a-worker-0", "a", on="n1", phase="Pending", waits="CreateContainerConfigError")]}),
    ],
)  # fmt: skip
def test_why_a_job_waits_is_one_word(why: str, objects: dict[str, list[Any]]) -> None:
    looking = look(jobs=[job("a")], **objects)
    assert samples(looking, "trainyard_job_wait_seconds") == {f'{OF_A},reason="{why}"': 100}


def test_a_job_whose_pods_come_anew_waits_since_then() -> None:
    workers = [pod("a-worker-0", "a", on="n1"), pod("a-worker-1", "a", said=FULL, age=30)]
    looking = look(jobs=[job("a", age=5000)], pods=workers)
    assert samples(looking, "trainyard_job_wait_seconds") == {f'{OF_A},reason="gpus"': 30}


def test_an_elastic_job_runs_with_its_least_pods() -> None:
    looking = look(
        jobs=[job("a", workers=3, spec={"elasticPolicy": {"minReplicas": 1}})], pods=[pod("w", "a", on="n1")]
    )
    assert list(samples(looking, "trainyard_job_info")) == [f'{OF_A},phase="running"']
    assert samples(looking, "trainyard_job_gpus_asked") == {OF_A: 3}


@pytest.mark.parametrize(("ends", "phase"), [("Succeeded", "succeeded"), ("Failed", "failed")])
def test_a_job_that_is_over_asks_for_nothing_and_its_gang_says_nothing(ends: str, phase: str) -> None:
    left = [pod("a-worker-0", "a", on="n1", phase="Succeeded", gang="a")]
    queue = {"metadata": meta("vision")}
    looking = look(jobs=[job("a", ends=ends)], pods=left, gangs=[gang("a", "a", phase="Inqueue")], queues=[queue])
    assert list(samples(looking, "trainyard_job_info")) == [f'{OF_A},phase="{phase}"']
    for name in ("job_gpus_asked", "job_gpus_held", "job_wait_seconds", "gang_phase", "pod_job"):
        assert samples(looking, f"trainyard_{name}") == {}
    assert samples(looking, "trainyard_queue_waiting_jobs") == {'queue="vision"': 0}


@pytest.mark.parametrize(
    ("pods", "phase"),
    [
        ([pod("x", "a", on="n1", phase="Succeeded"), pod("y", "a", on="n1")], "running"),
        ([pod("x", "a", on="n1", phase="Succeeded"), pod("y", "a", on="n1", phase="Failed")], "ending"),
    ],
)
def test_a_job_some_of_whose_pods_have_ended_does_not_wait(pods: list[Any], phase: str) -> None:
    looking = look(jobs=[job("a")], pods=pods)
    assert list(samples(looking, "trainyard_job_info")) == [f'{OF_A},phase="{phase}"']
    assert samples(looking, "trainyard_job_wait_seconds") == {}


def test_a_run_between_two_steps_does_not_wait_and_one_whose_step_has_no_place_does() -> None:
    of = {"kind": "Workflow", "version": "argoproj.io/v1alpha1"}
    steps = [pod("b-1", "b", on="n1", phase="Succeeded", **of), pod("c-1", "c", said=FULL, age=7, **of)]
    looking = look(workflows=[workflow("a"), workflow("b"), workflow("c"), workflow("d", "Pending")], pods=steps)
    waits = {re.search(r'job="(\w+)".*reason="(\w+)"', one).groups(): seconds  # type: ignore[union-attr]
             for one, seconds in samples(looking, "trainyard_job_wait_seconds").items()}  # fmt: skip
    assert waits == {("c", "gpus"): 7, ("d", "other"): 100}


def test_a_gang_runs_with_the_least_of_its_members() -> None:
    looking = look(jobs=[job("a", policy={"schedulingPolicy": {"minAvailable": 1}})], pods=[pod("x", "a", on="n1")])
    assert [re.search('phase="(.*)"', one)[1] for one in samples(looking, "trainyard_job_info")] == ["running"]  # type: ignore[index]


def test_a_stopped_job_does_not_wait() -> None:
    looking = look(jobs=[job("a", policy={"suspend": True})])
    assert list(samples(looking, "trainyard_job_info")) == [f'{OF_A},phase="stopped"']
    assert samples(looking, "trainyard_job_wait_seconds") == {}


def test_jobs_of_two_kinds_with_one_name_are_two() -> None:
    task = {"replicas": 2, "template": {"spec": {"activeDeadlineSeconds": 600}}}
    spec = {"queue": "training", "tasks": [task]}
    volcano = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta("a"), "spec": spec}
    plain = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("a"), "spec": {"template": {"spec": {}}}}
    worker = pod("a-master-0", "a", kind="Job", version="batch.volcano.sh/v1alpha1", on="n1")
    worker["spec"]["activeDeadlineSeconds"] = 600
    looking = look(vcjobs=[volcano], batch=[plain], pods=[worker])
    found = {re.search(r'queue="(\w+)".*kind="(\w+)"', one).groups() if "queue" in one else one  # type: ignore[union-attr]
             for one in samples(looking, "trainyard_job_info")}  # fmt: skip
    assert found == {("training", "VolcanoJob"), 'team="vision",job="a",kind="Job",person="unknown",phase="waiting"'}
    place = 'team="vision",job="a",kind="VolcanoJob"'
    assert samples(looking, "trainyard_job_deadline_timestamp_seconds") == {place: NOW.timestamp() - 40 + 600}


def test_who_made_a_job_is_who_submitted_its_run() -> None:
    run = workflow("r", annotations={read_pods.SUBMITTER: 'ada "the" first'})
    step = job("a", labels={read_jobs.RUN: "r"})
    alone = job("b", annotations={read_pods.SUBMITTER: "bob"})
    of_run = pod("r-1", "r", kind="Workflow", version="argoproj.io/v1alpha1", on="n1")
    looking = look(workflows=[run], jobs=[step, alone], pods=[of_run])
    found = {re.search(r'job="(\w+)"', one)[1]: re.search(r'person="(.*?)",phase', one)[1]  # type: ignore[index]
             for one in samples(looking, "trainyard_job_info")}  # fmt: skip
    assert found == {"a": r"ada \"the\" first", "b": "bob", "r": r"ada \"the\" first"}


def test_what_is_no_teams_is_counted_on_its_node_alone() -> None:
    looking = look(pods=[pod("x", on="n1", team="kube-system")], nodes=[node("n1")])
    assert samples(looking, "trainyard_pod_job") == {}
    assert samples(looking, "trainyard_node_gpus")['node="n1",pool="gpu",model="H100",what="held"'] == 1


def test_a_pod_of_its_own_is_a_job() -> None:
    looking = look(pods=[pod("notebook", on="n1", gpus=1, notes={read_pods.QUEUE: "training"})])
    labels = 'team="vision",queue="training",job="notebook",kind="Pod",person="unknown"'
    assert samples(looking, "trainyard_job_gpus_held") == {labels: 1}


def test_queues_quotas_and_claims() -> None:
    queue = {"metadata": {**meta("training"), "namespace": None},
             "spec": {"parent": "root", "deserved": {"cpu": "2k", GPU: "8"},
                      "guarantee": {"resource": {"memory": "1Gi"}}},
             "status": {"state": "Open", "allocated": {GPU: "3", "cpu": "no number"}}}  # fmt: skip
    claim = {"metadata": meta("data"), "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    waits = [gang("one", phase="Pending", queue="training"), gang("two", phase="Running", queue="training")]
    looking = look(queues=[queue], quotas=[QUOTA], claims=[claim], gangs=waits)
    of = 'queue="training",team="everyone",resource='
    assert samples(looking, "trainyard_queue_resource") == {
        f'{of}"memory",what="guarantee"': 2**30, f'{of}"cpu",what="deserved"': 2000,
        f'{of}"{GPU}",what="deserved"': 8, f'{of}"{GPU}",what="allocated"': 3,
    }  # fmt: skip
    assert samples(looking, "trainyard_queue_state") == {'queue="training",parent="root",state="Open"': 1}
    assert samples(looking, "trainyard_queue_waiting_jobs") == {'queue="training"': 1}
    assert samples(looking, "trainyard_quota")['team="vision",quota="team",resource="limits.cpu",what="hard"'] == 1.5
    assert samples(looking, "trainyard_claim_bytes") == {'team="vision",claim="data",what="asked"': 2**30}


def test_runs_are_counted_as_they_end_and_not_again() -> None:
    before, now = workflow("old", "Failed", took=30), workflow("new")
    looking = look(workflows=[before, now])
    place = 'team="vision",pipeline="train"'
    assert samples(looking, "trainyard_runs_total")[f'{place},outcome="failed"'] == 0
    assert samples(looking, "trainyard_run_seconds") == {place: 30}
    ended = {**workflow("new", "Succeeded", took=90), "metadata": {**now["metadata"], "resourceVersion": "2"}}
    kept = looking._by_name["workflows"]
    kept.take({"type": "MODIFIED", "object": ended})
    counts = {f'{place},outcome="{outcome}"': float(outcome == "succeeded")
              for outcome in ("succeeded", "failed", "error", "stopped")}  # fmt: skip
    assert samples(looking, "trainyard_runs_total") == counts
    kept.take({"type": "DELETED", "object": ended})
    assert samples(looking, "trainyard_runs_total") == counts
    assert samples(looking, "trainyard_run_seconds") == {place: 90}


def test_runs_that_are_seen_late_or_again_have_not_ended_now() -> None:
    looking = Collector(Api({"workflows": [workflow("a", "Succeeded")]}), CONTRACT, KINDS)  # type: ignore[arg-type]
    place, kept = 'team="vision",pipeline="train"', looking._by_name["workflows"]
    assert samples(looking, "trainyard_runs_total") == {}, "a page that could not wait for them"
    kept.list()
    assert samples(looking, "trainyard_runs_total")[f'{place},outcome="succeeded"'] == 0
    kept._failed(ApiError(403, "not now"), 1.0)
    samples(looking, "trainyard_runs_total")
    kept.list()
    assert samples(looking, "trainyard_runs_total")[f'{place},outcome="succeeded"'] == 0


def test_what_cannot_be_read_is_left_out_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    broken = job("broken")
    broken["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = {"no": "number"}
    looking = look(jobs=[broken, job("a")])
    assert list(samples(looking, "trainyard_job_info")) == [f'{OF_A},phase="waiting"']
    assert (
        "jobs/pytorchjobs.kubeflow.org: vision/broken can't be read and is not counted: TypeError"
        in capsys.readouterr().out
    )


def test_names_of_members_neither_break_a_line_nor_fill_a_page() -> None:
    assert series.escaped('a"b\\c\nd') == r"a\"b\\c\nd"
    assert len(series.escaped("x" * 5000)) == series.LONGEST
    looking = look(pods=[pod("p", on="n1", notes={read_pods.SUBMITTER: "x" * 200_000})])
    assert len(looking.page(CONTRACT, NOW.timestamp())) < 5000


def test_pods_with_long_names_are_told_apart_and_a_person_is_printed() -> None:
    long = "x" * 252
    notes = {read_pods.SUBMITTER: "ada\x1b[2J\u202e\nbob"}
    looking = look(pods=[pod(f"{long}{end}", on="n1", notes=notes if end == "b" else {}) for end in "ab"])
    found = samples(looking, "trainyard_pod_job")
    assert len({re.search(r'pod="(\w+)"', one)[1] for one in found}) == 2  # type: ignore[index]
    assert any('person="ada?[2J??bob"' in one for one in found)
    forged = pod("p", "a\x1b]0;x\x07", kind="Pod\n# TYPE up gauge", on="n1", notes={read_pods.QUEUE: "q\r"})
    [labels] = samples(look(pods=[forged]), "trainyard_pod_job")
    assert 'queue="q?",job="a?]0;x?",kind="Pod?# TYPE up gauge"' in labels


def test_every_series_has_its_help_and_type_before_it() -> None:
    text = look(jobs=[job("a")], nodes=[node("n1")]).page(CONTRACT, NOW.timestamp())
    known = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            known = line.split()[2]
        elif line.startswith("# TYPE "):
            assert line.split()[2:] == [known, series.ALL[known][0]]
        else:
            assert re.match(r"(\w+)", line)[1] == known  # type: ignore[index]
    assert text.endswith("\n")
    assert ago(0) == "2026-05-04T12:00:00Z"


def test_kinds_and_words_are_those_of_the_product() -> None:
    assert set(reasons.NO_IMAGE) == set(product.IMAGE)
    assert (read_jobs.PIPELINE, read_pods.SUBMITTER) == (product_runs.PIPELINE, names.SUBMITTER)
    named = [model.kind_of(kind.group, kind.kind) for kind in registry.KINDS]
    assert len(named) == len(set(named))
    assert owned("Job", "a", "batch/v1")[0]["controller"] is True
