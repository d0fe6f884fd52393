"""All kinds of training job: placed as a gang on the right devices, trained above a bar, results in the store."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.kinds import registry
from trainyard.kinds.images import trainers
from trainyard.names import GPU
from trainyard.paths import ROOT
from trainyard.pipelines.local.dataset import Dataset
from trainyard.policy.lint.pods import pods
from trainyard_dev.e2e import jobs, store
from trainyard_dev.e2e.checks import computed
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import DATA, GPUS, KINDS_CODE, TRAINS, check
from trainyard_dev.e2e.recorder import had, possible, require
from trainyard_dev.gpu.uuids import node_uuids
from trainyard_dev.versions import load

MANIFESTS = ROOT / "manifests" / "jobs"
TIMEOUT_S = 300
BAR = re.compile(r"--min-accuracy=([0-9.]+)")
MNIST_BAR = "0.85"  # the bars in the manifests are for Fashion-MNIST; MNIST is easier


@dataclass(frozen=True)
class Kind:
    """One training job and its expected results."""

    id: str
    title: str
    file: str
    members: int  # pods of the gang
    gpus: int  # GPUs of all pods together
    nodes: int = 1  # GPU nodes that must take part, at least
    image: str = ""  # from versions.yaml, instead of the example's trainer
    backend: str = ""  # the expected back end for averaging gradients
    ranks: int = 0  # expected size of the world; 0: any
    name: str = ""  # instead of the example's: another job with its own results
    change: Callable[[dict[str, Any]], None] | None = None  # changes to the example

    def images(self) -> tuple[str, ...]:
        """Images that the job needs, by their names in versions.yaml."""
        found = re.findall(r"image: \S+/([a-z-]+):", (MANIFESTS / self.file).read_text())
        return (self.image or found[0], *(["kubectl-delivery"] if self.file == "mpijob.yaml" else []))


def _two_slots(job: dict[str, Any]) -> None:
    """Two ranks with a GPU each in each of the two workers, which are on different nodes; Horovod averages."""
    job["spec"]["slotsPerWorker"] = 2
    launcher, worker = (job["spec"]["mpiReplicaSpecs"][role]["template"] for role in ("Launcher", "Worker"))
    args = launcher["spec"]["containers"][0]["args"]
    args[args.index("-np") + 1] = "4"
    args[args.index("--backend=mpi4py")] = "--backend=horovod"
    amounts = {"cpu": "300m", "memory": "768Mi", GPU: 2}
    worker["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": {"memory": "2Gi", GPU: 2}}
    worker["metadata"]["labels"]["role"] = "worker"
    worker["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"role": "worker"} | launcher["metadata"]["labels"]},
        }
    ]


def _without_chief(job: dict[str, Any]) -> None:
    """2 PS and 4 workers that restart after a failure, as articles have it: worker 0 decides when the job ends."""
    replicas = job["spec"]["tfReplicaSpecs"]
    del replicas["Chief"]
    replicas["Worker"]["replicas"], replicas["PS"]["replicas"] = 4, 2
    for role in replicas.values():
        role["restartPolicy"] = "OnFailure"
    job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 6


# Results that an example must show in addition to its own checks.
DUE: dict[str, dict[str, Any]] = {"pytorch": {"nodes": 2}, "mpi": {"ranks": 2}}


def _example(kind: registry.Kind) -> Kind:
    """The example of a kind, with the requests in its text."""
    text = (MANIFESTS / kind.file).read_text()
    made = pods(yaml.safe_load(text))
    return Kind(
        f"train.{kind.file.removesuffix('.yaml').removesuffix('-job')}",
        f"{kind.kind}: {text.partition(chr(10))[0].strip('# .')}",
        kind.file,
        members=sum(one.count for one in made),
        gpus=sum(one.count * int(one.gpus((GPU,))) for one in made),
        backend=kind.backend,
        **DUE.get(kind.framework, {}),
    )


EXAMPLES = tuple(_example(kind) for kind in registry.KINDS)
# Of the main job: kinds whose images are not built on demand.
KINDS = tuple(one for one in EXAMPLES if not any(load().images[image].demand for image in one.images()))
HOROVOD = Kind(
    "train.horovod",
    "MPIJob with Horovod: two ranks in each of two pods, on two nodes",
    "mpijob.yaml",
    3,
    4,
    2,
    image="trainer-horovod",
    backend="horovod-mpi",
    ranks=4,
    name="trainer-horovod",
    change=_two_slots,
)
NO_CHIEF = Kind(
    "train.no-chief",
    "TFJob without a chief: 2 parameter servers, 4 workers",
    "tfjob.yaml",
    6,
    4,
    backend="parameter-server",
    ranks=6,
    name="mnist-no-chief",
    change=_without_chief,
)
ALL = (*EXAMPLES, HOROVOD, NO_CHIEF)
TRAINER = "trainer-torch"


def manifest(kind: Kind, dataset: Dataset, *, cuda: bool = False) -> dict[str, Any]:
    """The example job as users apply it, except for the kind's changes; the accuracy bar depends on the data set.

    Args:
        cuda: its GPUs compute, so it uses the CUDA image, if there is one.
    """
    text = (MANIFESTS / kind.file).read_text()
    if dataset.name == "MNIST":
        text = BAR.sub(f"--min-accuracy={MNIST_BAR}", text)
    if kind.image:
        text = text.replace(load().image(TRAINER), load().image(kind.image))
    for image in with_cuda(kind, text) if cuda else ():
        text = text.replace(load().image(image), load().image(f"{image}-cuda"))
    job: dict[str, Any] = yaml.safe_load(text)
    if kind.name:
        job = yaml.safe_load(text.replace(job["metadata"]["name"], kind.name))
    if kind.change:
        job = json.loads(json.dumps(job))  # parts that the file has once become separate copies for each role
        kind.change(job)
    return job


def with_cuda(kind: Kind, text: str) -> list[str]:
    """Images in a job's text that have a CUDA variant, which such jobs use; none if it has no GPUs."""
    of_kind = registry.of_object(yaml.safe_load(text))
    able = [one for one in trainers(cuda=True) if kind.gpus and of_kind and of_kind.framework in one.runs]
    names = [one.name.removesuffix("-cuda") for one in able]
    return [name for name in names if load().image(name) in text]


def train(context: Context, kind: Kind) -> None:
    """Runs one kind to its end and checks all results; skips it if the machine has too few GPUs."""
    with context.recorder.check(kind.id, kind.title) as figures:
        has = [count for count in context.gpus.values() if count]
        enough = sum(has) >= kind.gpus and (len(has) >= kind.nodes or not kind.gpus)
        need = f"{kind.gpus} GPU(s) on {kind.nodes} node(s)"
        possible(enough, f"it needs {need}, the cluster has {sum(has)} on {len(has)}")
        job = manifest(kind, context.dataset, cuda=context.gpu == "real")
        try:
            trace = jobs.follow(context, job, NAMESPACE, kind.id, TIMEOUT_S)
            _check_gang(context, kind, trace, _priority(job), figures)
            with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as s3:
                results = _results(s3, trace.name)
                _check_devices(context, kind, trace, results, figures)
                metrics = _check_model(s3, trace.name, _bar(job), figures)
            gpus = kind.gpus if "-cuda:" in json.dumps(job) else 0
            computed.check(context, metrics, kind.backend, figures, gpus=gpus)
            ranks = figures["world_size"]
            require(kind.ranks in (0, ranks), f"{ranks} ranks trained together, not {kind.ranks}")
        finally:
            jobs.delete(context, job, NAMESPACE)


for one in ALL:
    check(
        one.id,
        main=one in KINDS,
        rank=TRAINS,
        needs=(DATA, "storage.dataset-cache") if one.file == "tfjob.yaml" else (DATA,),
        shares={GPUS},
        images=one.images(),
        inputs=KINDS_CODE,
    )(lambda context, kind=one: train(context, kind))


def _check_gang(context: Context, kind: Kind, trace: jobs.Trace, priority: str, figures: dict[str, Any]) -> None:
    """Queue, priority and size of the PodGroup as declared; every pod scheduled by Volcano on a node of its pool."""
    spec = had(trace.group, "no PodGroup was seen while the job ran")["spec"]
    figures |= {"queue": spec.get("queue"), "gang": spec.get("minMember"), "pods": len(trace.pods)}
    require(spec.get("queue") == NAMESPACE, f"the PodGroup is in queue {spec.get('queue')}, not {NAMESPACE}")
    require(
        spec.get("minMember") == kind.members,
        f"the PodGroup's minMember is {spec.get('minMember')}, not {kind.members}",
    )
    given = spec.get("priorityClassName")
    require(given == priority, f"the PodGroup's priority class is {given}, not {priority}")
    counted = int(spec.get("minResources", {}).get(GPU, 0)) if kind.gpus else 0
    require(counted == kind.gpus, f"the gang has {counted} GPUs, not {kind.gpus}")
    require(len(trace.pods) == kind.members, f"the job had {len(trace.pods)} pods, not {kind.members}")
    placed = trace.nodes()
    figures["nodes"] = sorted(set(placed.values()))
    figures["gpus_held_while_incomplete"] = trace.most_gpus_partial
    for name, pod in trace.pods.items():
        require(pod["spec"]["schedulerName"] == "volcano", f"{name} was scheduled by {pod['spec']['schedulerName']}")
        on_gpu_node = placed.get(name) in context.gpu_nodes
        if jobs.gpus(pod):
            require(on_gpu_node, f"{name} requests a GPU but ran on {placed.get(name)}")
        else:
            require(not on_gpu_node, f"{name} requests no GPU but ran on the GPU node {placed.get(name)}")
    used = {node for node in placed.values() if node in context.gpu_nodes}
    require(len(used) >= kind.nodes or not kind.gpus, f"{len(used)} GPU node(s) took part, not {kind.nodes}")


def _results(s3: store.Store, job: str) -> dict[str, dict[str, Any]]:
    """The ranks' result files of a job, by pod name."""
    names = [name for name in s3.names("runs", f"{NAMESPACE}/{job}/") if "/rank-" in name]
    return {found["hostname"]: found for found in (s3.read_json("runs", name) for name in names)}


def _check_devices(
    context: Context, kind: Kind, trace: jobs.Trace, results: dict[str, dict[str, Any]], figures: dict[str, Any]
) -> None:
    """Each pod saw exactly the devices that it requested, real ones of its node, and no two pods the same."""
    seen: dict[str, str] = {}
    for name, pod in trace.pods.items():
        asked = jobs.gpus(pod)
        if name not in results:
            require(not asked, f"{name} wrote no rank file")
            continue
        result = results[name]
        node, devices = trace.nodes()[name], result["visible_devices"]
        require(result["node"] == node, f"{name} reports that it ran on {result['node']}, Kubernetes reports {node}")
        require(len(devices) == asked, f"{name} requested {asked} GPU(s) but saw {devices or 'none'}")
        require(
            len(result["device_nodes"]) == asked,
            f"{name} requested {asked} GPU(s) but has the device nodes {result['device_nodes']}",
        )
        if context.gpu == "mock" and asked:
            known = node_uuids(node, context.spec.count)
            require(set(devices) <= set(known), f"{name} saw {devices}, which are not GPUs of {node}")
            expected = sorted(f"/dev/nvidia{known.index(device)}" for device in devices)
            require(
                sorted(result["device_nodes"]) == expected,
                f"{name} has {result['device_nodes']}, its GPUs are {expected}",
            )
        for device in devices:
            require(device not in seen, f"{device} was allocated to both {seen.get(device)} and {name}")
            seen[device] = name
    require(len(seen) == kind.gpus, f"{len(seen)} different GPUs were seen by all pods, not {kind.gpus}")
    figures["gpus"] = len(seen)
    if seen:
        figures["devices"] = {
            name: [d for d, owner in seen.items() if owner == name] for name in sorted(set(seen.values()))
        }


def _check_model(s3: store.Store, job: str, bar: float, figures: dict[str, Any]) -> dict[str, Any]:
    """Accuracy above the bar; the checkpoint in the store has exactly the bytes that the trainer wrote."""
    metrics = s3.read_json("runs", f"{NAMESPACE}/{job}/metrics.json")
    figures |= {
        "accuracy": round(metrics["accuracy"], 4),
        "bar": bar,
        "world_size": metrics["world_size"],
        "train_seconds": round(metrics["train_seconds"], 1),
    }
    require(metrics["accuracy"] >= bar, f"accuracy {metrics['accuracy']:.4f} is below the bar {bar}")
    written = metrics["checkpoint"]
    blob = s3.read("runs", written["uri"].removeprefix("s3://runs/"))
    figures["checkpoint_bytes"] = len(blob)
    digest = hashlib.sha256(blob).hexdigest()
    require(digest == written["sha256"], f"the checkpoint {written['uri']} differs from what the trainer wrote")
    return metrics


def _priority(job: dict[str, Any]) -> str:
    found = re.search(r"priorityClassName: (\S+)", yaml.safe_dump(job))
    return had(found, f"the job {job['metadata']['name']} declares no priority class")[1]


def _bar(job: dict[str, Any]) -> float:
    found = BAR.search(yaml.safe_dump(job))
    return float(had(found, f"the job {job['metadata']['name']} states no accuracy bar")[1])
