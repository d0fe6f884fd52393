"""PyTorchJob: a master and workers, one rank per GPU; if elastic, only workers, under torchrun."""

from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import registry
from trainyard.kinds.builders.common import PYTHONS, master_job, replica, run_policy
from trainyard.kinds.pods import Part, literal, template
from trainyard.kinds.spec import JobSpec
from trainyard.kinds.team_config import TeamConfig

TORCHRUN = ("-m", "torch.distributed.run")
REJOIN = Path(__file__).parent.with_name("rejoin.py")
# When a node fails, its peers' ranks fail in mid-step, and torchrun counts that like an error of the script.
LOSSES = 5
# Seconds that ranks wait for more nodes once the minimum is reached; torchrun's default of 30 would be idle time.
GATHER_S = 5


def build(spec: JobSpec, team_config: TeamConfig, queue: str) -> dict[str, Any]:
    """Builds the job's spec."""
    body = _elastic(spec, team_config, queue) if spec.min_nodes else master_job(spec, team_config, queue)
    # Without this field the operator sets `auto`: torchrun then starts a rank for every core of a node without GPUs.
    return body | {"nprocPerNode": str(spec.ranks_per_node)}


def _elastic(spec: JobSpec, team_config: TeamConfig, queue: str) -> dict[str, Any]:
    """Workers that torchrun joins and rejoins. Worker 0 hosts the rendezvous and is rank 0.

    The scheduler places pods by index, so worker 0 comes first. A master has no index.
    """
    kind = registry.of_framework(spec.framework)
    part = Part(kind.container, tuple(_rejoining(spec)), gpus=True, uploads=True, uploader="-worker-0")
    pod = template(spec, team_config, part)
    pod["spec"].pop("topologySpreadConstraints", None)  # a free GPU is used on any node
    return {
        "runPolicy": run_policy(spec, team_config, queue, spec.min_nodes),
        "elasticPolicy": {
            "minReplicas": spec.min_nodes,
            "maxReplicas": spec.nodes,
            "maxRestarts": max(spec.retries, LOSSES),
            "rdzvBackend": "c10d",
            "rdzvConf": [{"key": "last_call_timeout", "value": str(GATHER_S)}],
        },
        # A pod that was evicted ended by a signal, and is created again; a pod that failed by itself ends the job.
        kind.replicas: {"Worker": replica(spec.nodes, pod, spec) | {"restartPolicy": "ExitCode"}},
    }


def _rejoining(spec: JobSpec) -> list[str]:
    """`python train.py` under torchrun, which reads the operator's PET_… variables, and torchrun under `rejoin`.

    Leaves a command unchanged that is neither Python nor torchrun.
    """
    first, *rest = spec.command
    name = first.rpartition("/")[2]
    if name == "torchrun":
        return literal(["python3", "-c", REJOIN.read_text(), *spec.command])
    if name not in PYTHONS or not rest:
        return literal(spec.command)
    if rest[0].startswith("-") and rest[0] != "-m":
        what = f"{rest[0]} is between python and the script, where torchrun would read it as its own option"
        raise UsageError(what, where=spec.name, hint="use python train.py …, or call torchrun yourself")
    own = rest if tuple(rest[:2]) == TORCHRUN else [*TORCHRUN, *rest]
    return literal([first, "-c", REJOIN.read_text(), first, *own])
