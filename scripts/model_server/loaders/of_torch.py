"""PyTorch models: TorchScript, or weights and a function that creates their module; on a GPU if there is one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from model_server.contract import Card
from model_server.errors import CardError
from model_server.loaders import CPU, Arrays, named

_WEIGHTS = ("state_dict", "model_state_dict", "model")  # keys of the weights in a training checkpoint


class TorchRunner:
    """A module in evaluation mode."""

    def __init__(self, module: Any, card: Card, device: torch.device) -> None:
        self.module, self.card, self.place = module, card, device
        self.device = torch.cuda.get_device_name(device) if device.type == "cuda" else CPU

    def run(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Computes the outputs by name; inputs are passed in the card's order."""
        given = [self._tensor(arrays[one.name]) for one in self.card.inputs]
        with torch.inference_mode():
            found = self.module(*given)
        return named.outputs(self.card, found, lambda one: one.detach().cpu().numpy())

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        writable = array if array.flags.writeable and array.flags.c_contiguous else np.array(array, order="C")
        return torch.from_numpy(writable).to(self.place)


def load(path: Path, card: Card, threads: int) -> TorchRunner:
    """Loads the module. Raises CardError if the weights don't match the builder's module."""
    torch.set_num_threads(threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not card.builder:
        return TorchRunner(torch.jit.load(str(path), map_location=device).eval(), card, device)
    module = _builder(path.parent, card.builder)()
    if not isinstance(module, torch.nn.Module):
        what = f"returns a {type(module).__name__}, not a module"
        raise CardError(what, where=f"builder: {card.builder}", hint="return a torch.nn.Module")
    weights = torch.load(str(path), map_location="cpu", weights_only=True)
    for key in _WEIGHTS:
        if isinstance(weights, dict) and isinstance(weights.get(key), dict):
            weights = weights[key]
            break
    try:
        module.load_state_dict(weights)
    except (RuntimeError, TypeError) as error:
        what = f"weights don't match the module of {card.builder}: {' '.join(str(error).split())[:300]}"
        raise CardError(what, where=str(path), hint="register the code that trained the model") from None
    return TorchRunner(module.to(device).eval(), card, device)


def _builder(folder: Path, said: str) -> Callable[[], Any]:
    """The builder function in the model's own file, whose digest was checked."""
    file, _, name = said.partition(":")
    spec = importlib.util.spec_from_file_location(f"model_{Path(file).stem}", folder / file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        raise CardError(f"has no function {name}", where=str(folder / file), hint="name the one that makes the module")
    return found
