"""A made-up run, for the tests and for working on the page."""

from dataclasses import replace
from typing import Any

from trainyard_dev.report.model import Check, Gpu, Run, Span
from trainyard_dev.versions import load

START = 1_780_000_000.0
PINS = {name: f"v{version}" for name, version in load().raw["components"].items()} | {
    name: tool.version for name, tool in load().tools.items()
}
MOCKS = [
    "The GPUs are mock (a mock NVML library behind the real NVIDIA device plugin): allocation, scheduling and recovery "
    "are proved, CUDA and NCCL are not. Training ran on the CPU over gloo.",
    "The kernel has no NFS client: nodes mounted NFS v3 by a userspace mount.nfs, so kernel locks and caches are not "
    "proved.",
    "csi-driver-nfs did not run; volumes came from our own provisioner.",
]


def sample(*, failing: bool = False, warm: bool = False) -> Run:
    """A realistic run: cold (images built first) or ``warm``, all passed or ``failing`` in TFJob."""
    run = Run(
        started=START,
        ended=START,
        versions={
            "trainyard": load().raw["trainyard"],
            "Kubernetes": PINS["kubernetes"],
            "Volcano": PINS["volcano"],
            "training-operator": PINS["training-operator"],
            "NVIDIA device plugin": PINS["device-plugin"],
            "Helm": PINS["helm"],
        },
        images={
            "docker.io/volcanosh/vc-scheduler:v1.14.1": "built here",
            "ghcr.io/kubeflow/training-v1/training-operator:v1-93c5489": "built here",
            "nvcr.io/nvidia/k8s-device-plugin:v0.19.3": "built here",
            "site.invalid/trainyard/trainer-torch:0.4.0": "built here",
        },
        image_source="build",
        gpu=Gpu("mock", "2 nodes of 4 NVIDIA A100-SXM4-80GB, by a mock NVML library"),
        mocks=list(MOCKS),
        environment={
            "Machine": "2 cores, 24 GiB memory",
            "Kernel": "6.18.44",
            "Engine": "podman 4.3.1, runc, cgroup v1",
            "Python": "3.11.7",
            "Data": "MNIST, 70,000 images",
            "Cache": "warm" if warm else "cold",
        },
    )
    at = _stages(run, 6.0 if warm else 1460.0)
    ended = _jobs(run, at, failing)
    run.spans.append(Span("checks", "storage, nodes, gang", ended, ended + 48))
    run.checks += _promises(failing)
    run.ended = ended + 50
    return run


def _stages(run: Run, images: float) -> float:
    at = START + 2
    run.spans.append(Span("images", "binaries", at, at + images * 0.7))
    run.spans.append(Span("images", "images", at + images * 0.7, at + images))
    at += images
    for phase, seconds in (("nodes", 31.0), ("network", 9.0), ("mock GPUs", 4.0)):
        run.spans.append(Span("cluster", phase, at, at + seconds))
        at += seconds
    run.spans.append(Span("install", "helm install", at, at + 52, "one command, first time"))
    run.checks += [
        _good("cluster.up", "Four nodes are Ready", 44.0, nodes=4, kubernetes=PINS["kubernetes"]),
        _good("install.wait", "One helm install --wait brings everything up", 52.1, pods_ready=13, release_KiB=212),
    ]
    return at + 52


JOBS = (
    (
        "train.pytorchjob",
        "PyTorchJob, DDP of 1 master and 3 workers",
        0.9423,
        41,
        "master-0 worker-0 worker-1 worker-2",
    ),
    ("train.tfjob", "TFJob, 1 parameter server and 2 workers", 0.9361, 58, "ps-0 worker-0 worker-1"),
    ("train.mpijob", "MPIJob, launcher and 2 workers", 0.9287, 33, "worker-0 worker-1"),
    ("train.vcjob", "Volcano Job of 2 workers", 0.9390, 29, "worker-0 worker-1"),
    ("train.cpu", "CPU-only Job, off the GPU nodes", 0.9312, 22, ""),
)
GANG = "9/0 tasks in gang unschedulable: pod group is not ready, 9 Pending, 9 minAvailable.\n" + "0/4 nodes: no. " * 9
BACKENDS = {
    "train.pytorchjob": "gloo",
    "train.tfjob": "parameter-server",
    "train.mpijob": "mpi4py",
    "train.vcjob": "gloo",
    "train.cpu": "none",
}
PHASES = ("queued", "placed", "pulling", "placed", "running")


def _jobs(run: Run, at: float, failing: bool) -> float:
    for index, (lane, title, accuracy, seconds, names) in enumerate(JOBS):
        broken = failing and lane == "train.tfjob"
        pods = names.split()
        start = at + index * 2
        edges = [start]
        for took in (1.0 if index < 2 else 12.0 * index - 8, 2, 5, 2, seconds):
            edges.append(edges[-1] + took)
        for phase, low, high in zip(PHASES, edges, edges[1:], strict=False):
            run.spans.append(Span(lane, phase, low, high, f"{max(1, len(pods))} pods"))
        run.spans.append(Span(lane, "failed" if broken else "done", edges[-1], edges[-1]))
        devices = {p: f"GPU-{index}{n}c0ffee-0000-4000-8000-00000000000{n}" for n, p in enumerate(pods)} or "none asked"
        figures = {"bar": 0.9, "queue": "training", "checkpoint_MiB": 1.7, "devices": devices,
                   "backend": BACKENDS[lane], "device": "cpu", "accuracy": accuracy}  # fmt: skip
        check = Check(lane, title, "passed", "", edges[-1] - start, figures)
        if broken:
            reason = "accuracy 0.411 is below the bar of 0.90 after 3 epochs\nlast line: <step 1200 loss=nan & lr=0.1>"
            check = replace(check, status="failed", reason=reason, figures={**figures, "accuracy": 0.4114})
            run.cause = "train.tfjob reached accuracy 0.411, below the required 0.90; look at the loss in its logs."
        run.checks.append(check)
    run.checks += [
        _good(
            "gang.refused", "A gang that doesn't fit holds no GPU", 15.2, members=9, gpus_held=0, scheduler_says=GANG
        ),
        _good("nodes.late-gpu-node", "A GPU node that joins later is labelled and tainted", 21.7, gpus=4),
        _good("storage.rwx", "Two pods on two nodes share one volume", 9.4, MiB_written=64, MiB_per_s=118.4),
        Check("storage.csi", "csi-driver-nfs serves a shared volume", "skipped", "its image needs a registry"),
    ]
    return max(s.end for s in run.spans)


def _promises(failing: bool) -> list[Check]:
    """Checks of a multi-team platform's promises beyond training."""
    denial = (
        'queues.scheduling.volcano.sh "vision" is forbidden: the namespace speech may use the queues speech, shared'
    )
    rule, who = "admission policy trainyard-queue-of-team", "member of speech"
    theft = {"who": who, "tried": "read an object under vision/ of the bucket datasets"}
    bucket = Check(
        "attack.bucket", "Another team's bucket prefix", "passed", "", 0.4,
        {**theft, "refused_by": "S3 policy", "message": "Access Denied."},
    )  # fmt: skip
    if failing:
        bucket = replace(bucket, status="failed", reason="the object could be read", figures=theft)
    return [
        _good("teams.two", "Two teams have their namespace, queue, quota and keys", 3.0, teams=2, quotas=4),
        _good("policies.cases", "Each rule denies what it is for", 21.0, rules=24, cases=131),
        _good(
            "attack.queue", "Another team's queue", 0.3, who=who, tried="run a PyTorchJob in the queue vision",
            refused_by=rule, message=denial,
        ),
        bucket,
        _good("upgrade.job-survives", "A job survives the upgrade from 0.2.0", 64.0, steps_before=120, steps_after=911),
        _good("airgap.train", "With all egress denied, a job still trains", 48.0, accuracy=0.931),
        _good("uninstall.data", "CRDs and data stay when the release goes", 31.0, buckets=3, claims=4),
    ]  # fmt: skip


def _good(check: str, title: str, seconds: float, **figures: Any) -> Check:
    return Check(check, title, "passed", "", seconds, figures)
