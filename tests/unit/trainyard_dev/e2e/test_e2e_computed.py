"""Device and back end of a training: the CPU with mock GPUs, and what is expected there and on real ones."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.kinds import mpi_launch
from trainyard.pipelines.local.dataset import Dataset
from trainyard_dev.e2e import releases, selection
from trainyard_dev.e2e.checks import computed, frameworks, training
from trainyard_dev.e2e.recorder import CheckError


def judged(gpu: str, device: str, ran: str, due: str, gpus: int = 0) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    context: Any = SimpleNamespace(gpu=gpu)
    computed.check(context, {"device": device, "backend": ran}, due, figures, gpus=gpus)
    return figures


def test_every_training_has_a_back_end_that_is_due() -> None:
    for kind in training.ALL:
        assert kind.backend, kind.id
    assert all(script.backend for script in frameworks.SCRIPTS)


@pytest.mark.parametrize(
    ("gpu", "device", "ran", "due"),
    [
        ("mock", "cpu", "gloo", "gloo"),
        ("mock", "CPU:0", "none", "none"),
        ("mock", "cpu", "anything", ""),
        ("real", "cuda:0", "nccl", "gloo"),
        ("real", "GPU:0", "none", "none"),
        ("real", "cpu", "gloo", "gloo"),
        ("real", "cuda:1", "horovod-nccl", "horovod-mpi"),
    ],
)
def test_what_is_due_passes_and_is_shown(gpu: str, device: str, ran: str, due: str) -> None:
    assert judged(gpu, device, ran, due) == {"device": device, "backend": ran}


@pytest.mark.parametrize(
    ("gpu", "device", "ran", "due", "says"),
    [
        ("mock", "cuda:0", "nccl", "gloo", "the job computed on cuda:0 instead of the CPU"),
        ("mock", "cpu", "mpi4py", "horovod-mpi", "backend was mpi4py, not horovod-mpi as expected on cpu"),
        ("real", "cuda:0", "gloo", "gloo", "backend was gloo, not nccl as expected on cuda:0"),
        ("mock", "cpu", "none", "gloo", "backend was none"),
    ],
)
def test_another_is_an_error(gpu: str, device: str, ran: str, due: str, says: str) -> None:
    with pytest.raises(CheckError, match=says):
        judged(gpu, device, ran, due)


def test_gpus_that_compute_and_are_held_for_nothing_are_an_error() -> None:
    with pytest.raises(CheckError, match=r"the job computed on cpu instead of its 2 GPU\(s\)"):
        judged("real", "cpu", "gloo", "gloo", 2)
    assert judged("real", "cuda:0", "nccl", "gloo", 2) and judged("mock", "cpu", "gloo", "gloo", 2)


@pytest.mark.parametrize("kind", training.ALL, ids=lambda kind: kind.id)
def test_a_job_on_real_gpus_has_the_image_with_cuda_where_there_is_one(kind: training.Kind) -> None:
    mock, real = (json.dumps(training.manifest(kind, Dataset("MNIST", Path()), cuda=cuda)) for cuda in (False, True))
    due = kind.id in ("train.pytorchjob", "train.tfjob", "train.vcjob", "train.no-chief")
    assert "-cuda:" not in mock and ("-cuda:" in real) == due
    assert not due or not any(f"trainyard/{name}:" in real for name in ("trainer-torch", "trainer-tensorflow"))


def test_a_run_on_real_gpus_takes_images_with_cuda() -> None:
    ids = ["train.pytorchjob", "train.jaxjob"]
    assert "trainer-torch-cuda" not in selection.images(ids)
    assert {"trainer-torch-cuda", "trainer-torch"} <= selection.images(ids, cuda=True)
    assert "gpuImages: cuda" in releases.REAL_GPUS.read_text()


@pytest.mark.parametrize("script", frameworks.SCRIPTS, ids=lambda script: script.id)
def test_what_a_script_says_follows_from_its_command(script: frameworks.Script) -> None:
    given = {"command": list(script.command), "nodes": script.nodes, "gpus": script.gpus}
    made, said = mpi_launch.translated(given, Path())
    assert said.startswith(script.says) and bool(said) == bool(script.says)
    assert made.get("processes", script.gpus) == script.gpus


def test_each_script_is_a_folder_of_the_examples_and_their_docs_name_it() -> None:
    text = (frameworks.ROOT / "docs" / "train.md").read_text()
    folders = {path.parent.name for path in frameworks.EXAMPLES.glob("mnist-*/train.py")}
    assert folders == {script.folder for script in frameworks.SCRIPTS}
    assert all(f"`{folder}`" in text for folder in folders)
