"""The trainers' two-layer perceptron as plain arrays: saved, loaded, scored and trained without any framework."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mnist import store
from mnist.data import CLASSES, PIXELS
from mnist.errors import TrainError

FILE = "model.npz"
HIDDEN = 128
LAYERS = ("weight0", "bias0", "weight1", "bias1")


@dataclass(frozen=True)
class Perceptron:
    """Weights of shape (out, in), as PyTorch keeps them, and biases of both layers."""

    weight0: np.ndarray
    bias0: np.ndarray
    weight1: np.ndarray
    bias1: np.ndarray

    def arrays(self) -> list[np.ndarray]:
        """All weights in the order of LAYERS."""
        return [getattr(self, name) for name in LAYERS]

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Scores of the classes for rows of pixels."""
        hidden = np.maximum(x @ self.weight0.T + self.bias0, 0)
        return hidden @ self.weight1.T + self.bias1

    def accuracy(self, x: np.ndarray, y: np.ndarray) -> float:
        """Share of images labelled right."""
        return accuracy(self.logits, x, y)


def accuracy(logits: Callable[[np.ndarray], np.ndarray], x: np.ndarray, y: np.ndarray) -> float:
    """Share of images that `logits` labels right."""
    return count_right(logits, x, y) / max(1, len(y))


def count_right(logits: Callable[[np.ndarray], np.ndarray], x: np.ndarray, y: np.ndarray) -> int:
    """How many images `logits` labels right, a thousand at a time."""
    return sum(int((logits(x[at : at + 1000]).argmax(1) == y[at : at + 1000]).sum()) for at in range(0, len(y), 1000))


def start(seed: int) -> Perceptron:
    """Random weights, the same for the same seed."""
    pick = np.random.default_rng(seed)

    def layer(out: int, into: int) -> np.ndarray:
        return (pick.standard_normal((out, into)) * np.sqrt(2.0 / into)).astype(np.float32)

    zeros = np.zeros
    return Perceptron(
        layer(HIDDEN, PIXELS), zeros(HIDDEN, np.float32), layer(CLASSES, HIDDEN), zeros(CLASSES, np.float32)
    )


def load(folder: str) -> Perceptron:
    """The model that a trainer left in a folder: s3://bucket/prefix or a path. Raises TrainError."""
    place = store.open_store(folder)
    return from_bytes(place.get(FILE), f"{folder.rstrip('/')}/{FILE}")


def gradients(model: Perceptron, x: np.ndarray, y: np.ndarray) -> tuple[float, list[np.ndarray]]:
    """Mean cross entropy of a batch and its gradients, in the order of LAYERS."""
    before = x @ model.weight0.T + model.bias0
    hidden = np.maximum(before, 0)
    scores = hidden @ model.weight1.T + model.bias1
    scores -= scores.max(1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(1, keepdims=True)
    rows = np.arange(len(y))
    loss = float(-np.log(chances[rows, y] + 1e-12).mean())
    chances[rows, y] -= 1
    chances /= np.float32(len(y))
    back = (chances @ model.weight1) * (before > 0)
    return loss, [back.T @ x, back.sum(0), chances.T @ hidden, chances.sum(0)]


def from_torch(state: Mapping[str, np.ndarray]) -> Perceptron:
    """The weights of `torch_model.build`, handed over as arrays."""
    return Perceptron(state["0.weight"], state["0.bias"], state["2.weight"], state["2.bias"])


def to_bytes(model: Perceptron) -> bytes:
    """The weights as an .npz file, the same bytes for the same weights."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in LAYERS:
            entry = io.BytesIO()
            np.lib.format.write_array(entry, np.ascontiguousarray(getattr(model, name)))
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), entry.getvalue())
    return buffer.getvalue()


def from_bytes(blob: bytes, where: str = FILE) -> Perceptron:
    """Reads an .npz file of `to_bytes`; raises TrainError when it holds something else."""
    try:
        with np.load(io.BytesIO(blob), allow_pickle=False) as found:
            model = Perceptron(*(found[name] for name in LAYERS))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise TrainError(f"this is not a model of ours ({', '.join(LAYERS)} as .npz)", where=where) from None
    if model.weight0.shape[1] != PIXELS or model.weight1.shape[0] != CLASSES:
        raise TrainError(
            f"a model for {model.weight0.shape[1]} inputs and {model.weight1.shape[0]} classes", where=where
        )
    return model
