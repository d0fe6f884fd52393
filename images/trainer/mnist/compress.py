"""Smaller models: weights as bytes (dynamic quantization), and small weights left out (pruning).

PyTorch does it where it is installed; otherwise numpy computes the same: weights as int8 with one scale a layer,
activations scaled for each batch, and the smallest weights of a layer set to zero.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from mnist import perceptron
from mnist.errors import TrainError
from mnist.perceptron import Perceptron

Logits = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Small:
    """A compressed model: its outputs, its bytes on disk, and the library that made it."""

    logits: Logits
    blob: bytes
    by: str


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return find_spec("torch") is not None


def quantize(model: Perceptron) -> Small:
    """Weights as int8; activations are quantized while the model runs."""
    return _quantize_torch(model) if has_torch() else _quantize_numpy(model)


def prune(model: Perceptron, share: float) -> tuple[Perceptron, Small]:
    """The smallest `share` (0 to 1) of each layer's weights set to zero; stored gzipped, where zeros cost little."""
    if not 0 <= share < 1:
        raise TrainError(f"the share of weights to prune is {share}", hint="take a number from 0 to below 1")
    layers, by = (_prune_torch(model, share), "PyTorch") if has_torch() else (_prune_numpy(model, share), "numpy")
    pruned = Perceptron(layers[0], model.bias0, layers[1], model.bias1)
    return pruned, Small(pruned.logits, gzip.compress(perceptron.to_bytes(pruned), mtime=0), by)


def _quantize_numpy(model: Perceptron) -> Small:
    parts = {"bias0": model.bias0, "bias1": model.bias1}
    for name in ("weight0", "weight1"):
        parts[name], parts[f"{name}_scale"] = _int8(getattr(model, name))

    def multiply(x: np.ndarray, name: str) -> np.ndarray:
        whole, scale = _int8(x)
        product = whole.astype(np.int32) @ parts[name].T.astype(np.int32)
        return product.astype(np.float32) * (scale * parts[f"{name}_scale"])

    def logits(x: np.ndarray) -> np.ndarray:
        hidden = np.maximum(multiply(x, "weight0") + parts["bias0"], 0)
        return multiply(hidden, "weight1") + parts["bias1"]

    buffer = io.BytesIO()
    np.savez(buffer, **parts)
    return Small(logits, buffer.getvalue(), "numpy")


def _int8(array: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """Integers from -127 to 127 and the scale that restores the values."""
    scale = np.float32(np.abs(array).max() / 127 or 1)
    return np.round(array / scale).astype(np.int8), scale


def _prune_numpy(model: Perceptron, share: float) -> list[np.ndarray]:
    layers = []
    for weights in (model.weight0, model.weight1):
        count = round(share * weights.size)
        kept = weights.copy().ravel()
        kept[np.argpartition(np.abs(kept), count)[:count]] = 0
        layers.append(kept.reshape(weights.shape))
    return layers


def _network(model: Perceptron):
    import torch

    from mnist import torch_model

    network = torch_model.build(torch.device("cpu"))
    torch_model.load(network, model)
    return network.eval()


def _quantize_torch(model: Perceptron) -> Small:
    import torch

    small = torch.quantization.quantize_dynamic(_network(model), {torch.nn.Linear}, dtype=torch.qint8)
    buffer = io.BytesIO()
    torch.save(small.state_dict(), buffer)

    def logits(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return small(torch.from_numpy(x)).numpy()

    return Small(logits, buffer.getvalue(), "PyTorch")


def _prune_torch(model: Perceptron, share: float) -> list[np.ndarray]:
    from torch.nn.utils import prune as torch_prune

    network = _network(model)
    for layer in (network[0], network[2]):
        torch_prune.l1_unstructured(layer, "weight", amount=share)
        torch_prune.remove(layer, "weight")
    return [network[0].weight.detach().numpy(), network[2].weight.detach().numpy()]
