"""Small models that learn handwritten digits, with their cards: what tests and the bench serve.

`python -m trainyard_dev.serving.models FOLDER` runs in the environment that has scikit-learn, whose package brings the
images: 8 x 8 pixels of 1,797 digits.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from model_server import contract
from trainyard_dev.serving import onnx_file

SIDE, PIXELS, CLASSES, HIDDEN, SEED = 8, 64, 10, 128, 20
TRAINED = 1500


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images of 64 numbers from 0 to 1 (FP32) and labels: for training, then for testing."""
    data = load_digits()
    images, labels = (data.data / 16).astype(np.float32), data.target.astype(np.int64)
    return images[:TRAINED], labels[:TRAINED], images[TRAINED:], labels[TRAINED:]


def card(folder: Path, name: str, framework: str, file: str, tensors: dict[str, Any], **more: Any) -> None:
    """Writes the card of a model whose file exists."""
    said = {"name": name, "version": "1", "framework": framework, "file": file}
    said |= {"digest": contract.digest_of(folder / file), **tensors, **more}
    (folder / contract.CARD).write_text(json.dumps(said, indent=2) + "\n")


def make(folder: Path) -> None:
    """Makes `sklearn/`, `onnx/` and `expected.json` in a folder; the last has images and the models' predictions."""
    images, labels, test, wanted = digits()
    logistic = LogisticRegression(max_iter=200).fit(images, labels)
    place = folder / "sklearn"
    place.mkdir(parents=True)
    joblib.dump(logistic, place / "model.joblib")
    outputs = [
        {"name": "label", "datatype": "INT64", "shape": [-1]},
        {"name": "probabilities", "datatype": "FP32", "shape": [-1, CLASSES], "method": "predict_proba"},
    ]
    rows = [{"name": "image", "datatype": "FP32", "shape": [-1, PIXELS]}]
    accuracy = float(logistic.score(test, wanted))
    tensors = {"inputs": rows, "outputs": outputs}
    card(place, "digits", "sklearn", "model.joblib", tensors, metrics={"accuracy": accuracy}, run="digits-1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is good enough
        network = MLPClassifier((HIDDEN,), max_iter=20, random_state=SEED).fit(images, labels)
    layers = list(zip(network.coefs_, network.intercepts_, strict=True))
    place = folder / "onnx"
    place.mkdir()
    (place / "model.onnx").write_bytes(onnx_file.perceptron(layers, "image", "logits"))
    logits = [{"name": "logits", "datatype": "FP32", "shape": [-1, CLASSES]}]
    card(place, "digits", "onnx", "model.onnx", {"inputs": rows, "outputs": logits})
    np.savez(folder / "weights.npz", *(array for layer in layers for array in layer))
    few = test[:20]
    expected = {
        "images": few.tolist(),
        "wanted": wanted[:20].tolist(),
        "label": logistic.predict(few).tolist(),
        "probabilities": logistic.predict_proba(few).tolist(),
        "logits": _logits(few, layers).tolist(),
        "accuracy": accuracy,
    }
    (folder / "expected.json").write_text(json.dumps(expected))


def _logits(images: np.ndarray, layers: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    found = images.astype(np.float64)
    for weights, bias in layers[:-1]:
        found = np.maximum(found @ weights + bias, 0)
    return found @ layers[-1][0] + layers[-1][1]


if __name__ == "__main__":
    make(Path(sys.argv[1]))
