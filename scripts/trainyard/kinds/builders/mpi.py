"""MPIJob: a launcher that starts ranks in the workers with mpirun."""

from typing import Any

from trainyard.kinds import pods
from trainyard.kinds.builders.common import replica, run_policy
from trainyard.kinds.mpi_words import MPIRUN, split, starts_ranks
from trainyard.kinds.pods import Part, literal, template
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig

# The operator passes the host file and the remote shell in variables that only Open MPI 4 reads. Version 5 needs
# these, or it would start every rank in the launcher. A member's own image may have either version.
OPEN_MPI_5 = {"PRTE_MCA_plm_ssh_agent": "/etc/mpi/kubexec.sh", "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile"}


def build(spec: JobSpec, team_config: TeamConfig, queue: str) -> dict[str, Any]:
    """Builds the job's spec."""
    launcher = template(spec, team_config, Part("mpi", tuple(literal(_mpirun(spec))), works=False, token=True))
    for name, value in OPEN_MPI_5.items():
        launcher["spec"]["containers"][0]["env"].append({"name": name, "value": value})
    # Workers wait for the launcher to start ranks in them. They share one template: the first uploads the results.
    worker = Part("mpi", ("sleep", "infinity"), gpus=True, uploads=True, waits=True, uploader="-worker-0")
    replicas = {
        "Launcher": replica(1, launcher, spec),
        "Worker": {**replica(spec.nodes, template(spec, team_config, worker), spec), "restartPolicy": "Never"},
    }
    return {
        "slotsPerWorker": spec.ranks_per_node,
        "runPolicy": run_policy(spec, team_config, queue, spec.nodes + 1),
        "mpiReplicaSpecs": replicas,
    }


def _mpirun(spec: JobSpec) -> list[str]:
    """One process for each slot of each worker; a command that calls mpirun itself only gets the working directory."""
    home = ["-wdir", pods.home(spec)] if pods.home(spec) else []
    if starts_ranks(spec.command) and (own := split(spec.command)).starter in MPIRUN:
        return [spec.command[0], *([] if own.last("wdir") else home), *spec.command[1:]]
    words = ["mpirun", "-np", str(spec.nodes * spec.ranks_per_node), "--bind-to", "none", "--map-by", "slot"]
    # Restrict the ranks' traffic, and orterun's own messages, to the pod network.
    for key, value in (("btl", "tcp,self"), ("btl_tcp_if_include", "eth0"), ("oob_tcp_if_include", "eth0")):
        words += ["--mca", key, value]
    return [*words, *home, *pods.announced(spec, spec.command)]
