"""How the end-to-end run reads jobs: their outcome, their gang, and why one did not end."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from held import Held

from trainyard.paths import ROOT
from trainyard.pipelines.local.dataset import Dataset
from trainyard_dev.cluster.config import Node
from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.checks import training
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import Recorder
from trainyard_dev.engine import Engine
from trainyard_dev.gpu.mock import MockGpuSpec

DATA = Dataset("MNIST", ROOT)


def condition(kind: str, status: str = "True", message: str = "") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": status, "message": message}]}}


@pytest.mark.parametrize(
    ("job", "outcome"),
    [
        ({}, ""),
        (condition("Running"), ""),
        (condition("Succeeded", "False"), ""),
        (condition("Succeeded"), "succeeded"),
        (condition("Complete"), "succeeded"),
        (condition("Failed", message="a pod failed"), "failed: a pod failed"),
        ({"status": {"state": {"phase": "Running"}}}, ""),
        ({"status": {"state": {"phase": "Completed"}}}, "succeeded"),
        ({"status": {"state": {"phase": "Aborted"}}}, "failed: aborted"),
        ({"status": {"state": {"phase": "Failed", "message": "no"}}}, "failed: no"),
    ],
)
def test_outcome(job: dict[str, Any], outcome: str) -> None:
    assert jobs.outcome(job) == outcome


def pod(name: str, gpus: int = 0, node: str = "", group: str = "g") -> dict[str, Any]:
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/name": "job"},
            "annotations": {"scheduling.k8s.io/group-name": group},
        },
        "spec": {"containers": [{"resources": resources}, {}], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending"},
    }


def test_gpus_of_a_pod() -> None:
    assert jobs.gpus(pod("a", 3)) == 3
    assert jobs.gpus(pod("a")) == 0


def poll(*items: dict[str, Any], trace: jobs.Trace | None = None) -> jobs.Trace:
    trace = trace or jobs.Trace("job")
    context: Any = SimpleNamespace(kube=Held(*items))
    jobs.poll(context, trace, {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}, "ns")
    return trace


GROUP = {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2}}


def test_a_gang_placed_as_one_never_counts_as_partial() -> None:
    trace = poll(pod("a", 1), pod("b", 1), GROUP)
    poll(pod("a", 1, "n1"), pod("b", 1, "n2"), GROUP, trace=trace)
    assert trace.most_gpus_partial == 0
    assert trace.nodes() == {"a": "n1", "b": "n2"}
    assert trace.group == GROUP


def test_gpus_held_by_half_a_gang_are_remembered() -> None:
    trace = poll(pod("a", 2, "n1"), pod("b", 1), GROUP)
    poll(pod("a", 2, "n1"), pod("b", 1, "n1"), GROUP, trace=trace)
    assert trace.most_gpus_partial == 2


def test_pods_and_groups_of_others_do_not_count() -> None:
    other = pod("x", 1, "n1")
    other["metadata"]["labels"] = {"app.kubernetes.io/name": "another"}
    trace = poll(other, pod("a", 1, group="mine"), GROUP, {"kind": "PyTorchJob", "metadata": {"name": "job"}})
    assert list(trace.pods) == ["a"]
    assert trace.group is None
    assert trace.job["kind"] == "PyTorchJob"


@pytest.mark.parametrize(
    ("file", "resource"),
    [
        ("pytorchjob.yaml", "pytorchjobs.kubeflow.org"),
        ("tfjob.yaml", "tfjobs.kubeflow.org"),
        ("mpijob.yaml", "mpijobs.kubeflow.org"),
        ("vcjob.yaml", "jobs.batch.volcano.sh"),
        ("cpu-job.yaml", "jobs.batch"),
    ],
)
def test_the_resource_of_each_example(file: str, resource: str) -> None:
    assert jobs.resource(yaml.safe_load((ROOT / "manifests/jobs" / file).read_text())) == resource


@pytest.mark.parametrize("kind", training.KINDS, ids=lambda kind: kind.file)
def test_examples_run_as_they_stand_and_only_the_bar_follows_the_data(kind: training.Kind) -> None:
    text = (ROOT / "manifests/jobs" / kind.file).read_text()
    assert training.manifest(kind, Dataset("Fashion-MNIST (package)", ROOT)) == yaml.safe_load(text)
    mnist = training.manifest(kind, Dataset("MNIST", ROOT))
    assert training._bar(mnist) == float(training.MNIST_BAR)
    assert training._bar(mnist) > training._bar(yaml.safe_load(text))


def test_horovod_has_two_slots_in_each_of_two_workers_on_two_nodes() -> None:
    job = training.manifest(training.HOROVOD, DATA)
    roles = job["spec"]["mpiReplicaSpecs"]
    args = roles["Launcher"]["template"]["spec"]["containers"][0]["args"]
    assert job["metadata"]["name"] == "trainer-horovod" and "--out=s3://runs/vision/trainer-horovod" in args
    assert (job["spec"]["slotsPerWorker"], roles["Worker"]["replicas"], args[args.index("-np") + 1]) == (2, 2, "4")
    assert "--backend=horovod" in args and "--backend=mpi4py" not in args
    worker = roles["Worker"]["template"]
    container = worker["spec"]["containers"][0]
    assert "/trainer-horovod:" in container["image"] and container["resources"]["limits"]["nvidia.com/gpu"] == 2
    [spread] = worker["spec"]["topologySpreadConstraints"]
    chosen = spread["labelSelector"]["matchLabels"].items()
    assert chosen <= worker["metadata"]["labels"].items()
    assert not chosen <= roles["Launcher"]["template"]["metadata"]["labels"].items()


def test_the_tfjob_of_articles_has_no_chief() -> None:
    job = training.manifest(training.NO_CHIEF, DATA)
    roles = job["spec"]["tfReplicaSpecs"]
    assert {role: (one["replicas"], one["restartPolicy"]) for role, one in roles.items()} == {
        "Worker": (4, "OnFailure"),
        "PS": (2, "OnFailure"),
    }
    assert job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] == training.NO_CHIEF.members == 6
    assert all("--out=s3://runs/vision/mnist-no-chief" in one["template"]["spec"]["containers"][0]["args"]
               for one in roles.values())  # fmt: skip


def test_a_job_without_pods_says_so() -> None:
    assert jobs._waiting(jobs.Trace("job")) == "it has no pod (see its events)"
    assert jobs._waiting(poll(pod("b"), pod("a", 1, "n"))) == "pods: a Running, b Pending"


@pytest.mark.parametrize(("code", "ending"), [(0, "Succeeded"), (3, "Failed")])
def test_a_pod_is_judged_by_its_exit_code_and_removed(code: int, ending: str) -> None:
    calls: list[str] = []

    class Kubectl:
        def __call__(self, *args: str, **kwargs: object) -> SimpleNamespace:
            calls.append(args[0])
            return SimpleNamespace(stdout="said\n")

        def apply(self, objects: list[dict[str, Any]], namespace: str) -> None:
            calls.append("apply")

        def get(self, *args: str) -> list[dict[str, Any]]:
            terminated = {"containerStatuses": [{"state": {"terminated": {"exitCode": code}}}]}
            return [{"status": {"phase": "Running", **terminated}}]  # the phase lags behind

    node = Node("n", "worker", {})
    engine, recorder = Engine("podman"), Recorder()
    kubectl: Any = Kubectl()
    context = Context("lab", engine, kubectl, recorder, [node], "mock", MockGpuSpec(), False, {}, DATA)
    assert context.run_pod({"metadata": {"name": "x"}}) == (ending, "said")
    assert calls == ["apply", "wait", "logs", "delete"]


def test_a_job_larger_than_the_machine_is_skipped_with_the_reason() -> None:
    recorder, kubectl = Recorder(), cast("Any", None)  # nothing may be asked of the cluster
    context = Context(
        "lab", Engine("podman"), kubectl, recorder, [], "real", MockGpuSpec(), False, {"n1": 1, "n2": 0}, DATA
    )
    training.train(context, training.KINDS[0])
    [check] = recorder.checks
    assert (check.status, check.reason) == ("skipped", "it needs 4 GPU(s) on 2 node(s), the cluster has 1 on 1")
