"""MPIJob: a launcher that starts ranks in workers by mpirun."""

from __future__ import annotations

from typing import Any

from trainyard.kinds import pods
from trainyard.kinds.builders.common import replica, run_policy
from trainyard.kinds.pods import Part, literal, template
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig


def build(spec: JobSpec, team_config: TeamConfig, queue: str) -> dict[str, Any]:
    """The job's spec."""
    launcher = Part("mpi", tuple(literal(_mpirun(spec))), works=False, token=True)
    # Workers wait for the launcher to start ranks in them. Their template is one: the first uploads the results.
    worker = Part("mpi", ("sleep", "infinity"), gpus=True, uploads=True, waits=True, uploader="-worker-0")
    replicas = {
        "Launcher": replica(1, template(spec, team_config, launcher), spec),
        "Worker": {**replica(spec.nodes, template(spec, team_config, worker), spec), "restartPolicy": "Never"},
    }
    return {
        "slotsPerWorker": spec.ranks_per_node,
        "runPolicy": run_policy(spec, team_config, queue, spec.nodes + 1),
        "mpiReplicaSpecs": replicas,
    }


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
    return [*words, *pods.announced(spec, spec.command)]
