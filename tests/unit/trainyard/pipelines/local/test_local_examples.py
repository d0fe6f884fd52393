"""The example pipelines on this machine, from their data to a model, and the error where they can't run."""

import gzip
import importlib
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from kfp import dsl

from model_server import contract
from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.pipelines.local import folders

pytestmark = pytest.mark.long


def images(folder: Path) -> Path:
    """A data set that a perceptron learns in a second: the class is a bright row."""
    pick = np.random.default_rng(1)
    target = folder / "mnist"
    target.mkdir(parents=True)
    for stem, count in (("train", 1200), ("t10k", 300)):
        labels = pick.integers(0, 10, count).astype(np.uint8)
        pixels = pick.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for at, label in enumerate(labels):
            pixels[at, 2 * label + 4 : 2 * label + 6] = 250
        for kind, array, magic in (("images-idx3", pixels, 2051), ("labels-idx1", labels, 2049)):
            head = struct.pack(f">{1 + array.ndim}I", magic, *array.shape)
            (target / f"{stem}-{kind}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    return folder


def command(tmp_path: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """The command line, as a user calls it, in an empty folder."""
    data = tmp_path / "data"
    if not data.exists():
        images(data)
    path = f"{ROOT / 'scripts'}"
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": path, "TRAINYARD_DATA": str(data)}
    argv = (sys.executable, "-m", "trainyard", "run", *argv)
    return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False)


def test_mnist_from_data_to_a_registered_model(tmp_path: Path) -> None:
    file = str(ROOT / "pipelines" / "mnist.py")
    done = command(tmp_path, "--local", file, "-p", "samples=1200", "-p", "nodes=3", "-p", "minimum=0.9")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ignored locally: GPUs (1 per node requested)" in done.stdout and "3 ranks on this machine" in done.stdout
    (card,) = (tmp_path / "out" / "local" / "buckets" / "runs" / "local" / "models" / "mnist").glob("*/model.json")
    facts = json.loads(card.read_text())
    assert facts["version"] == card.parent.name and facts["accuracy"] > 0.9
    assert facts["files"]["model.npz"]["bytes"] == (card.parent / "model.npz").stat().st_size
    assert f"model = '{facts['uri']}'" in done.stdout
    again = command(tmp_path, "--local", file, "-p", "samples=1200", "-p", "nodes=3", "-p", "minimum=1.5")
    assert again.returncode == 1
    assert again.stderr.startswith(
        f"error: step evaluate failed: accuracy {facts['accuracy']:.4f} is below the bar of 1.5000"
    )


def test_from_data_to_a_version_that_the_server_takes(tmp_path: Path) -> None:
    file = str(ROOT / "pipelines" / "serve.py")
    done = command(tmp_path, "--local", file, "-p", "samples=1200", "-p", "nodes=2", "-p", "minimum=0.9")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing is in service to compare it with" not in done.stdout and "0.9 is required: it may" in done.stdout
    (card,) = (tmp_path / "out" / "local" / "buckets" / "runs" / "local" / "models" / "digits").glob("*/model.json")
    read = contract.read(card.parent)
    contract.check(card.parent, read)
    assert read.metrics["accuracy"] > 0.9 and read.inputs[0].shape == (-1, 784)
    assert f"ignored locally: digits@{read.version} is not served" in done.stdout
    again = command(tmp_path, "--local", file, "-p", "samples=1200", "-p", "nodes=2", "-p", "minimum=1.5")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "1.5 is required: it stays out" in again.stdout and "is not served" not in again.stdout


def test_sweep_by_halving_keeps_the_best(tmp_path: Path) -> None:
    file = str(ROOT / "pipelines" / "sweep.py")
    done = command(tmp_path, "--local", file, "-p", "method=halving", "-p", "trials=4", "-p", "samples=1200")
    assert done.returncode == 0, done.stdout + done.stderr
    (run_folder,) = (tmp_path / "out" / "local").glob("sweep-*")
    (last,) = run_folder.glob("*judge-3")
    assert (last / "plot").read_text().count("<circle") == 4 + 2 + 1
    done = command(tmp_path, "--local", file, "-p", "method=luck", "-p", "samples=1200")
    assert done.returncode == 1 and "unknown method 'luck'; use random, grid or halving" in done.stderr


def _example_modules() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in ("sweep", "mnist", "components")]


def test_the_best_of_an_earlier_round_stays_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "pipelines"))
    for name in _example_modules():  # the trainer images' package is called mnist, too
        monkeypatch.delitem(sys.modules, name)
    judge = importlib.import_module("sweep").judge.python_func
    for name in _example_modules():
        del sys.modules[name]

    def trained(name: str, accuracy: float) -> dsl.Model:
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
        facts = {"trial": 0, "lr": 0.001, "batch_size": 64, "epochs": 1, "accuracy": accuracy}
        return dsl.Model(uri=str(tmp_path / name), metadata=facts)

    for leader, best in (("late", 0.8), ("early", 0.95)):
        kept = dsl.Model(uri=str(tmp_path / f"kept-{leader}"))
        found = judge(
            models=[trained(f"a-{leader}", 0.7), trained(f"b-{leader}", 0.9)],
            seen=[{"trial": 0, "lr": 0.001, "batch_size": 64, "epochs": 1, "accuracy": best}],
            model=kept,
            metrics=dsl.Metrics(),
            plot=dsl.HTML(uri=str(tmp_path / f"plot-{leader}")),
            leader=trained(leader, best),
        )
        assert found[0] == kept.metadata["accuracy"] == max(best, 0.9)
        assert (tmp_path / f"kept-{leader}" / "name").read_text() == ("early" if leader == "early" else "b-late")


def test_compress_tells_accuracy_before_and_after(tmp_path: Path) -> None:
    done = command(
        tmp_path, "--local", str(ROOT / "pipelines" / "compress.py"), "-p", "samples=1200", "-p", "shares=[0.5]"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy_before = " in done.stdout and "kind = 'quantized to int8'" in done.stdout


def test_finetune_begins_with_the_registered_model_and_registers_what_is_better(tmp_path: Path) -> None:
    first = str(ROOT / "pipelines" / "mnist.py")
    file = str(ROOT / "pipelines" / "finetune.py")
    done = command(tmp_path, "--local", file, "-p", "samples=600")
    assert done.returncode == 1 and "no model mnist is registered" in done.stderr
    done = command(tmp_path, "--local", first, "-p", "samples=200", "-p", "lr=0.00002", "-p", "minimum=0")
    assert done.returncode == 0, done.stdout + done.stderr
    models = tmp_path / "out" / "local" / "buckets" / "runs" / "local" / "models" / "mnist"
    (base,) = (json.loads(card.read_text()) for card in models.glob("*/model.json"))
    new = ["-p", "skip=200", "-p", "samples=1000", "-p", "epochs=3"]
    done = command(tmp_path, "--local", file, *new)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"begins with the model of {base['uri']}" in done.stdout and "registered = True" in done.stdout
    before = re.search(r"accuracy_before = ([0-9.]+)", done.stdout)
    assert before and float(before[1]) == pytest.approx(base["accuracy"], abs=1e-5)
    (tuned,) = (card for card in (json.loads(path.read_text()) for path in models.glob("*/model.json")) if card != base)
    assert tuned["base"] == base["uri"] and tuned["accuracy"] > base["accuracy"] and tuned["data"]["skip"] == 200
    done = command(tmp_path, "--local", file, *new, "-p", "gain=0.9")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"model = '{tuned['uri']}'" in done.stdout and "registered = False" in done.stdout


def test_wrong_usage_and_failing_ranks(tmp_path: Path) -> None:
    file = str(ROOT / "pipelines" / "mnist.py")
    assert command(tmp_path, file).returncode == 2
    assert command(tmp_path, "--local", "missing.py").returncode == 2
    done = command(tmp_path, "--local", file, "-p", "samples=1200", "-p", "lr=much")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    done = command(tmp_path, "--local", file, "-p", "samples=1200", "-p", "nodes=20")
    assert done.returncode == 1 and "20 ranks, at most 8 run on this machine" in done.stderr
    done = command(tmp_path, "--local", file, "-p", "samples=1300")
    assert "1300 samples asked for, 1200 there" in done.stderr


def test_without_any_copy_of_the_data_the_hint_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainyard.pipelines.local import dataset

    def nothing() -> None:
        raise TrainyardError("`apt-get download dataset-fashion-mnist` failed with code 100")

    monkeypatch.setattr(dataset, "find", nothing)
    places = folders.make(tmp_path, "mine")
    with pytest.raises(TrainyardError, match=r"no copy of it .*put the four files of MNIST into .*set TRAINYARD_DATA"):
        folders.offer_shared_data(places, yaml.safe_dump({"a": "s3://datasets/shared/mnist"}))
    assert folders.offer_shared_data(places, "s3://datasets/mine") == ""
