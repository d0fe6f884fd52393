"""PyTorch's and TensorFlow's models, where the environment has them: TRAINYARD_SERVER_PYTHON names one that does."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import ask, refused

from model_server import contract
from trainyard.paths import ROOT
from trainyard_dev.serving import environment
from trainyard_dev.serving.process import Server

Start = Callable[..., Server]
ROWS = [[0.5, -1.0, 2.0], [0.0, 1.0, -0.5]]
INPUT = [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
OUTPUT = [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}]

NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(3, 2)
        self.drop = torch.nn.Dropout(0.9)
    def forward(self, x):
        return self.drop(torch.relu(self.one(x)))
def build():
    return Net()
def nothing():
    return None
class Threads(Net):
    def forward(self, x):
        return x.new_full((len(x), 2), torch.get_num_threads())
def small():
    return torch.nn.Linear(3, 1)
"""
TORCH = """
import json, sys, torch
sys.path.insert(0, sys.argv[1])
from net import build
torch.manual_seed(1)
net = build().eval()
torch.save(net.state_dict(), sys.argv[1] + "/weights.pt")
torch.save({"model": net.state_dict(), "epochs": 3}, sys.argv[1] + "/checkpoint.pt")
torch.jit.script(net).save(sys.argv[1] + "/script.pt")
print(json.dumps(net(torch.tensor(json.loads(sys.argv[2]))).tolist()))
"""
KERAS = """
import json, sys, numpy, keras
keras.utils.set_random_seed(1)
net = keras.Sequential([keras.Input((3,), name="x"), keras.layers.Dense(2, name="y"), keras.layers.Dropout(0.9)])
net.save(sys.argv[1] + "/model.keras")
net.save(sys.argv[1] + "/model.h5")
net.export(sys.argv[1] + "/saved", verbose=False)
print(json.dumps(net(numpy.array(json.loads(sys.argv[2]), "float32"), training=False).numpy().tolist()))
"""


def ran(code: str, folder: Path) -> Any:
    """What the bare framework says of ROWS; its files lie in the folder afterwards."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "scripts"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    argv = [environment.python(), "-c", code, folder, json.dumps(ROWS)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def write(folder: Path, framework: str, file: str, **more: Any) -> Path:
    said = {"name": "net", "version": "1", "framework": framework, "file": file, "inputs": INPUT, "outputs": OUTPUT}
    said |= {"digest": contract.digest_of(folder / file), **more}
    (folder / contract.CARD).write_text(json.dumps(said))
    return folder


def files(folder: Path) -> dict[str, Any]:
    return {"net.py": {"sha256": contract.digest_of(folder / "net.py").removeprefix("sha256:")}}


def answers(server: Server, wanted: Any) -> None:
    said = ask(server, "POST", "/predict", {"instances": ROWS})
    assert said.status == 200, said.body
    for found, row in zip(said.json["predictions"], wanted, strict=True):
        assert found == pytest.approx(row, rel=1e-5)


@pytest.fixture
def torch(interpreter: Path, tmp_path: Path) -> tuple[Path, Any]:
    if reason := environment.lacks("torch"):
        pytest.skip(reason)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "net.py").write_text(NET)
    return tmp_path / "model", ran(TORCH, tmp_path / "model")


@pytest.mark.parametrize("file", ["script.pt", "weights.pt", "checkpoint.pt"])
def test_pytorch_answers_as_the_library(torch: tuple[Path, Any], launch: Start, file: str) -> None:
    folder, wanted = torch
    more = {} if file == "script.pt" else {"builder": "net.py:build", "files": files(folder)}
    answers(launch(write(folder, "pytorch", file, **more)), wanted)


@pytest.mark.parametrize("threads", [1, 2])
def test_pytorch_computes_with_the_threads_that_it_was_given(
    torch: tuple[Path, Any], launch: Start, threads: int
) -> None:
    folder, _ = torch
    server = launch(
        write(folder, "pytorch", "weights.pt", builder="net.py:Threads", files=files(folder)), THREADS=str(threads)
    )
    said = ask(server, "POST", "/predict", {"instances": ROWS})
    assert said.json["predictions"] == [[threads, threads]] * 2


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        ("net.py:small", "weights don't match the module of net.py:small"),
        ("net.py:nothing", "builder: net.py:nothing: returns a NoneType, not a module"),
        ("net.py:other", "has no function other. name the one that makes the module."),
    ],
)
def test_a_builder_that_does_not_fit_is_refused(
    torch: tuple[Path, Any], launch: Start, builder: str, words: str
) -> None:
    folder, _ = torch
    refused(launch, write(folder, "pytorch", "weights.pt", builder=builder, files=files(folder)), words)


def test_a_builder_that_was_changed_does_not_run(torch: tuple[Path, Any], launch: Start, tmp_path: Path) -> None:
    folder, _ = torch
    write(folder, "pytorch", "weights.pt", builder="net.py:build", files=files(folder))
    (folder / "net.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + NET)
    refused(launch, folder, "net.py: changed after registration")
    assert not (tmp_path / "ran").exists()


def test_weights_that_are_code_are_refused(torch: tuple[Path, Any], launch: Start, tmp_path: Path) -> None:
    folder, _ = torch
    code = "import os, sys, torch\nclass Bad:\n    def __reduce__(self): return (os.mkdir, (sys.argv[2],))\n"
    code += "torch.save({'one': Bad()}, sys.argv[1])"
    subprocess.run([environment.python(), "-c", code, folder / "bad.pt", tmp_path / "ran"], check=True)
    write(folder, "pytorch", "bad.pt", builder="net.py:build", files=files(folder))
    refused(launch, folder, "bad.pt: can't be loaded by pytorch: UnpicklingError")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("file", ["model.keras", "model.h5", "saved"])
def test_tensorflow_answers_as_the_library(interpreter: Path, tmp_path: Path, launch: Start, file: str) -> None:
    if reason := environment.lacks("tensorflow"):
        pytest.skip(reason)
    folder = tmp_path / "model"
    folder.mkdir()
    wanted = ran(KERAS, folder)
    write(folder, "tensorflow", file, **({"outputs": [OUTPUT[0] | {"name": "output_0"}]} if file == "saved" else {}))
    answers(launch(folder), wanted)
