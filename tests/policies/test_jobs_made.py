"""Jobs that trainyard makes of short specs are admitted, and so is all that operators make of them."""

from typing import Any

import pytest
import yaml
from conftest import HERE

from trainyard import contract
from trainyard.kinds import JobSpec, Mount, TeamConfig, manifest
from trainyard.training import transfer
from trainyard_dev.policy.check import Site

FULL = {
    "code": "vision/code/x.tar.gz",
    "code_sha256": "0" * 64,
    "output": "vision/jobs/try",
    "checkpoints": "ckpt",
    "mounts": (Mount("shared", "/data", True),),
    "env": {"KEY": {"secret": "own", "key": "token"}, "LR": "0.1"},
    "retries": 2,
}


@pytest.fixture(scope="module")
def team_config() -> TeamConfig:
    return TeamConfig.of(contract.load(HERE / "teams.yaml"), "vision")


def violations(vision: Site, made: dict[str, Any]) -> list[Any]:
    verdicts = vision.check([yaml.safe_load(yaml.safe_dump(made))])
    assert "Pod" in {verdict.kind for verdict in verdicts}
    return [(verdict.kind, verdict.name, verdict.findings) for verdict in verdicts if verdict.findings]


@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize("more", [{}, FULL], ids=["bare", "with everything"])
@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mpi", "volcano", "job"])
def test_jobs_of_every_kind_are_admitted(
    vision: Site, team_config: TeamConfig, framework: str, gpus: int, more: dict[str, Any]
) -> None:
    nodes = 1 if framework == "job" else 3
    extra = {"parameter_servers": 1} if framework == "tensorflow" else {}
    spec = JobSpec("try", ("python", "train.py"), framework, nodes=nodes, gpus=gpus, cpu="12", **more, **extra)
    assert violations(vision, manifest(spec, team_config)) == []


def test_a_job_of_the_whole_allowance_is_admitted(vision: Site, team_config: TeamConfig) -> None:
    spec = JobSpec("try", ("python", "train.py"), nodes=team_config.team.max_gpus, gpus=1)
    assert violations(vision, manifest(spec, team_config)) == []


def test_the_pod_of_a_transfer_is_admitted(vision: Site, team_config: TeamConfig) -> None:
    for claim in ("", "workspace"):
        assert violations(vision, transfer.manifest(team_config, "trainyard-transfer-0a1b2c3d", claim)) == []
