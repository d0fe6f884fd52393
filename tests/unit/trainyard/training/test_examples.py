"""The example folders, as `trainyard train` makes jobs of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from train_cluster import VALUES

from trainyard import contract
from trainyard.errors import UsageError
from trainyard.kinds import TeamConfig
from trainyard.paths import ROOT
from trainyard.training import launch, settings

PARALLEL = ("elastic", "fsdp")


@pytest.mark.parametrize("name", PARALLEL)
def test_lint_finds_nothing_in_an_example_and_its_settings_save_snapshots(name: str, tmp_path: Path) -> None:
    folder = ROOT / "examples" / name
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    known = contract.load(values)
    ready = launch.prepare(
        folder,
        settings.merged(folder, None, {}, ()),
        TeamConfig.of(known, "speech"),
        tmp_path / "code.tar.gz",
    )
    assert launch.linted(ready, known) == [] and ready.notes == ()
    assert ready.spec.checkpoints and ready.manifest["kind"] == "PyTorchJob"


def test_an_elastic_job_passes_the_rule_of_gangs_with_less_than_the_whole(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    known = contract.load(values)
    given = {"command": ["python", "train.py"], "nodes": 4, "minNodes": 2, "gpus": 1, "framework": "pytorch"}
    ready = launch.prepare(tmp_path, given, TeamConfig.of(known, "speech"), tmp_path / "code.tar.gz")
    assert launch.linted(ready, known) == []
    ready.manifest["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 1
    with pytest.raises(UsageError, match="minAvailable is 1, the job has 4 replicas"):
        launch.linted(ready, known)
