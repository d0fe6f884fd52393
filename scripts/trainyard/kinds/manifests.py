"""Manifests of the five kinds of job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainyard.kinds import pods
from trainyard.kinds.facts import Facts
from trainyard.kinds.pods import Part, literal, template
from trainyard.kinds.spec import JOB, MPI, PYTORCH, TENSORFLOW, VOLCANO, JobSpec
from trainyard.names import QUEUE

Object = dict[str, Any]
PYTHONS = ("python", "python3")
RANKS = Path(__file__).with_name("ranks.py")
PORT = 23456


def manifest(spec: JobSpec, facts: Facts) -> Object:
    """The job as the API server takes it, in the team's namespace.

    Raises:
        UsageError: the team may not have its queue, priority class or number of GPUs, or there is no such pool.
    """
    queue = spec.queue or facts.queues[0]
    facts.check(queue, spec.priority, spec.gpus * spec.nodes)
    build = {PYTORCH: _pytorch, TENSORFLOW: _tensorflow, MPI: _mpi, VOLCANO: _volcano, JOB: _job}[spec.framework]
    version, kind, body = build(spec, facts, queue)
    meta: Object = {"name": spec.name, "namespace": facts.team, "labels": pods.labels(spec)}
    if spec.owner:
        meta["ownerReferences"] = [dict(spec.owner)]
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": body}


def _pytorch(spec: JobSpec, facts: Facts, queue: str) -> tuple[str, str, Object]:
    command = tuple(_started(spec))
    master = Part("pytorch", command, gpus=True, keeps=True)
    replicas = {"Master": _replica(1, template(spec, facts, master), spec)}
    if spec.nodes > 1:
        worker = template(spec, facts, Part("pytorch", command, gpus=True))
        replicas["Worker"] = _replica(spec.nodes - 1, worker, spec)
    body: Object = {"runPolicy": _policy(spec, facts, queue, spec.nodes), "pytorchReplicaSpecs": replicas}
    if spec.ranks_per_node > 1:
        body["nprocPerNode"] = str(spec.ranks_per_node)
    return "kubeflow.org/v1", "PyTorchJob", body


def _tensorflow(spec: JobSpec, facts: Facts, queue: str) -> tuple[str, str, Object]:
    command = tuple(literal(spec.command))
    chief = template(spec, facts, Part("tensorflow", command, gpus=True, keeps=True))
    replicas = {"Chief": _replica(1, chief, spec)}
    if spec.nodes > 1:
        worker = template(spec, facts, Part("tensorflow", command, gpus=True))
        replicas["Worker"] = _replica(spec.nodes - 1, worker, spec)
    if spec.parameter_servers:
        server = template(spec, facts, Part("tensorflow", command))
        replicas["PS"] = _replica(spec.parameter_servers, server, spec)
    members = spec.nodes + spec.parameter_servers
    return (
        "kubeflow.org/v1",
        "TFJob",
        {
            "runPolicy": _policy(spec, facts, queue, members),
            "tfReplicaSpecs": replicas,
        },
    )


def _mpi(spec: JobSpec, facts: Facts, queue: str) -> tuple[str, str, Object]:
    launcher = Part("mpi", tuple(literal(_mpirun(spec))), works=False, token=True)
    # Workers wait for the launcher to start ranks in them. Their template is one: the first keeps the results.
    worker = Part("mpi", ("sleep", "infinity"), gpus=True, keeps=True, keeper="-worker-0")
    replicas = {
        "Launcher": _replica(1, template(spec, facts, launcher), spec),
        "Worker": {**_replica(spec.nodes, template(spec, facts, worker), spec), "restartPolicy": "Never"},
    }
    return (
        "kubeflow.org/v1",
        "MPIJob",
        {
            "slotsPerWorker": spec.ranks_per_node,
            "runPolicy": _policy(spec, facts, queue, spec.nodes + 1),
            "mpiReplicaSpecs": replicas,
        },
    )


def _volcano(spec: JobSpec, facts: Facts, queue: str) -> tuple[str, str, Object]:
    command = tuple(_started(spec))
    tasks = [("master", 1, True)] + ([("worker", spec.nodes - 1, False)] if spec.nodes > 1 else [])
    made = []
    for name, replicas, keeps in tasks:
        pod = template(spec, facts, Part("main", command, gpus=True, keeps=keeps))
        # A Volcano Job has no deadline of its own, its pods do.
        pod["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": spec.deadline}
        made.append({"name": name, "replicas": replicas, "template": pod})
    body: Object = {
        "schedulerName": facts.scheduler,
        "queue": queue,
        "minAvailable": spec.nodes,
        "maxRetry": spec.retries + 1,
        "ttlSecondsAfterFinished": spec.keep,
        "plugins": {
            "pytorch": ["--master=master", "--worker=worker", f"--port={PORT}"],
            "env": [],
            # A DNS name per pod, also before it is ready. The team's network policy decides, not one of the plugin's.
            "svc": ["--publish-not-ready-addresses=true", "--disable-network-policy=true"],
        },
        "policies": [
            {"event": "PodFailed", "action": "RestartJob" if spec.retries else "AbortJob"},
            {"event": "PodEvicted", "action": "RestartJob"},
        ],
        "tasks": made,
    }
    if priority := spec.priority or facts.priority:
        body["priorityClassName"] = priority
    return "batch.volcano.sh/v1alpha1", "Job", body


def _job(spec: JobSpec, facts: Facts, queue: str) -> tuple[str, str, Object]:
    pod = template(spec, facts, Part("main", tuple(literal(spec.command)), gpus=True, keeps=True))
    pod["spec"]["restartPolicy"] = "Never"
    # Volcano makes the PodGroup of a pod that has none; this names its queue.
    pod["metadata"]["annotations"] = {QUEUE: queue}
    return (
        "batch/v1",
        "Job",
        {
            "backoffLimit": spec.retries,
            "activeDeadlineSeconds": spec.deadline,
            "ttlSecondsAfterFinished": spec.keep,
            "template": pod,
        },
    )


def _replica(count: int, pod: Object, spec: JobSpec) -> Object:
    return {"replicas": count, "restartPolicy": "OnFailure" if spec.retries else "Never", "template": pod}


def _policy(spec: JobSpec, facts: Facts, queue: str, members: int) -> Object:
    gang: Object = {"queue": queue, "minAvailable": members}
    if priority := spec.priority or facts.priority:
        gang["priorityClass"] = priority
    return {
        # Finished pods stay for their logs; what still runs when the job has ended holds no GPU any longer.
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": spec.keep,
        "activeDeadlineSeconds": spec.deadline,
        # The operator ends the job when restarts reach this number, so one more than there may be.
        "backoffLimit": spec.retries + 1,
        "schedulingPolicy": gang,
    }


def _started(spec: JobSpec) -> list[str]:
    """`python train.py` with several ranks a node is started by `ranks`; any other command as it is."""
    words = list(spec.command)
    if spec.ranks_per_node == 1 or words[0].rpartition("/")[2] not in PYTHONS or len(words) == 1:
        return literal(words)
    if words[1:3] == ["-m", "torch.distributed.run"]:
        return literal(words)
    return literal([words[0], "-c", RANKS.read_text(), str(spec.ranks_per_node), *words[1:]])


def _mpirun(spec: JobSpec) -> list[str]:
    """One process for each slot of each worker; a command that calls mpirun itself is left alone."""
    if spec.command[0] in ("mpirun", "mpiexec"):
        return list(spec.command)
    words = ["mpirun", "-np", str(spec.nodes * spec.ranks_per_node), "--bind-to", "none", "--map-by", "slot"]
    # Ranks talk over the pods' network; orterun's own messages too.
    for key, value in (("btl", "tcp,self"), ("btl_tcp_if_include", "eth0"), ("oob_tcp_if_include", "eth0")):
        words += ["--mca", key, value]
    if pods.home(spec):
        words += ["-wdir", pods.home(spec)]
    return [*words, *spec.command]
