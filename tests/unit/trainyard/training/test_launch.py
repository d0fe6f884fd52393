"""What is derived from a folder and its settings before sending: kind, image, command, places and warnings."""

from pathlib import Path

import pytest

from trainyard.contract import Contract
from trainyard.errors import UsageError
from trainyard.kinds import TeamConfig
from trainyard.paths import ROOT
from trainyard.training import launch, settings


def test_no_command_and_no_framework_for_several_nodes_are_said(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no command to run"):
        launch.prepare(folder, {}, team_config, tmp_path / "x")
    (folder / "train.py").write_text("import numpy")
    with pytest.raises(UsageError, match="it is unknown how 2 nodes find each other"):
        launch.prepare(folder, {"command": ["python", "train.py"], "nodes": 2}, team_config, tmp_path / "x")


def test_a_keras_script_becomes_a_tfjob_on_the_image_that_has_keras(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    (folder / "train.py").write_text("import keras\nimport h5py\nfrom mnist import data\n")
    made = launch.prepare(folder, {"command": ["python", "train.py"]}, team_config, tmp_path / "x")
    chief = made.manifest["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]["containers"][0]
    assert "/trainer-tensorflow:" in chief["image"] and "TFJob (train.py imports keras) on" in made.advice[0].text
    assert chief["command"][0] == "python" and chief["command"][-3:] == ["tensorflow", "python", "train.py"]


def test_another_image_of_the_platform_is_taken_and_told_and_its_python_says_the_device(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    (folder / "train.py").write_text("import transformers\ndef f():\n    import wandb\n")
    made = launch.prepare(folder, {"command": ["torchrun", "train.py"]}, team_config, tmp_path / "x")
    master = made.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    assert "/trainer-transformers:" in master["image"]
    headline, doubt = made.advice
    assert "(train.py imports transformers; image trainer-transformers, which has transformers)" in headline.text
    assert master["command"][0] == "python3" and master["command"][-2:] == ["torchrun", "train.py"]
    said = "train.py:3 imports wandb, which the image trainer-transformers lacks; write wandb into"
    assert doubt.text.startswith(said)


def test_of_another_image_nothing_is_known_and_only_python_says_the_device(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    (folder / "train.py").write_text("import torch, anything\n")
    given = {"image": "team/image:1", "command": ["torchrun", "train.py"]}
    for command, due in ((["torchrun", "train.py"], "torchrun"), (["python", "train.py"], "python")):
        made = launch.prepare(folder, {**given, "command": command}, team_config, tmp_path / "x")
        words = made.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["command"]
        assert words[0] == due and (len(words) > 2) == (due == "python")


def test_a_script_that_saves_beside_itself_is_warned_of(folder: Path, team_config: TeamConfig, tmp_path: Path) -> None:
    (folder / "train.py").write_text("import keras\nmodel = keras.Sequential()\nmodel.save('my_model.h5')\n")
    made = launch.prepare(folder, {"command": ["python", "train.py"]}, team_config, tmp_path / "x")
    due = "train.py:3 saves my_model.h5, which is lost with the pod; save it below results/, given by TRAINYARD_RESULTS"
    assert made.advice[1:] == (launch.Advice("warning", due),)


def test_the_same_code_has_the_same_place_and_each_run_its_own(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    given = {"command": ["python", "train.py"], "checkpoints": "ckpt"}
    one, two = (launch.prepare(folder, given, team_config, tmp_path / "x", resume="old-run") for _ in range(2))
    assert one.spec.code == two.spec.code == f"speech/code/{one.code.sha256}.tar.gz"
    assert one.spec.name != two.spec.name and one.spec.output == f"speech/jobs/{one.spec.name}"
    fetch = one.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["initContainers"][0]["args"]
    assert "--restore=runs/speech/jobs/old-run/ckpt=ckpt" in fetch
    assert "(train.py imports torch)" in one.advice[0].text


@pytest.mark.parametrize("name", ["elastic", "fsdp"])
def test_lint_finds_nothing_in_an_example_and_its_settings_save_snapshots(
    name: str, known: Contract, team_config: TeamConfig, tmp_path: Path
) -> None:
    example = ROOT / "examples" / name
    ready = launch.prepare(example, settings.merged(example, None, {}, ()), team_config, tmp_path / "code.tar.gz")
    assert launch.linted(ready, known) == [] and [one.level for one in ready.advice] == [launch.SENT]
    assert ready.spec.checkpoints and ready.manifest["kind"] == "PyTorchJob"


def test_an_elastic_job_passes_the_rule_of_gangs_with_less_than_the_whole(
    folder: Path, known: Contract, team_config: TeamConfig, tmp_path: Path
) -> None:
    given = {"command": ["python", "train.py"], "nodes": 4, "minNodes": 2, "gpus": 1, "framework": "pytorch"}
    ready = launch.prepare(folder, given, team_config, tmp_path / "code.tar.gz")
    assert launch.linted(ready, known) == []
    ready.manifest["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] = 1
    with pytest.raises(UsageError, match="minAvailable is 1, the job has 4 replicas"):
        launch.linted(ready, known)
