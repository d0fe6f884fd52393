"""The trained network in the model server's format: a file, and model.json, which describes inputs and outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mnist import perceptron
from mnist.data import CLASSES, PIXELS
from mnist.perceptron import Perceptron

FILE, CARD = "model.pt", "model.json"


def write(model: Perceptron, folder: str, accuracy: float, data: Mapping[str, Any]) -> None:
    """Writes both files into a folder. In a local run on a machine without PyTorch the file has the weights alone."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if find_spec("torch") is None:
        (target / FILE).write_bytes(perceptron.to_bytes(model))
    else:
        _script(model, target / FILE)
    card = {
        "framework": "pytorch",
        "file": FILE,
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, PIXELS]}],
        "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, CLASSES]}],
        "metrics": {"accuracy": accuracy},
        "data": dict(data),
    }
    (target / CARD).write_text(json.dumps(card, indent=2, sort_keys=True) + "\n")


def _script(model: Perceptron, file: Path) -> None:
    """Writes TorchScript, which needs none of this code to run."""
    import torch

    from mnist import torch_model

    network = torch_model.build(torch.device("cpu"))
    torch_model.load(network, model)
    torch.jit.script(network.eval()).save(str(file))
