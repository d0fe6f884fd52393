"""TensorFlow models: Keras files (.keras, .h5), and SavedModel folders with the signature serving_default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from model_server.contract import ANY, DATATYPES, Card
from model_server.errors import CardError
from model_server.loaders import CPU, Arrays, mismatch, named

SIGNATURE = "serving_default"


class TensorflowRunner:
    """A traced function of the card's inputs, in order."""

    def __init__(self, call: Callable[..., Any], card: Card) -> None:
        self.call, self.card = call, card
        self.device = next(map(_name, tf.config.list_physical_devices("GPU")), CPU)

    def run(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Computes the outputs by name."""
        found = self.call(*(tf.constant(arrays[one.name]) for one in self.card.inputs))
        return named.outputs(self.card, found, _plain)


def load(path: Path, card: Card, threads: int) -> TensorflowRunner:
    """Loads a file or folder. Raises CardError if a SavedModel's names differ from the card's."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    shapes = [
        tf.TensorSpec([None if length == ANY else length for length in one.shape], _kind(one.datatype))
        for one in card.inputs
    ]
    if not path.is_dir():
        model = tf.keras.models.load_model(path, compile=False)
        single = len(shapes) == 1
        call = tf.function(lambda *given: model(given[0] if single else list(given), training=False))
        return TensorflowRunner(call.get_concrete_function(*shapes), card)
    saved = tf.saved_model.load(str(path))
    if SIGNATURE not in saved.signatures:
        what = f"has no signature {SIGNATURE}, but {', '.join(saved.signatures) or 'none'}"
        raise CardError(what, where=str(path), hint="save the model with model.export(FOLDER)")
    signature = saved.signatures[SIGNATURE]
    names = [one.name for one in card.inputs]
    if set(signature.structured_input_signature[1]) != set(names):
        raise mismatch(card, "inputs", ", ".join(signature.structured_input_signature[1]))
    # The loaded object has to live as long as its signature.
    runner = TensorflowRunner(lambda *given: signature(**dict(zip(names, given, strict=True))), card)
    runner.saved = saved  # type: ignore[attr-defined]
    return runner


def _kind(datatype: str) -> Any:
    return tf.string if datatype == "BYTES" else tf.as_dtype(DATATYPES[datatype])


def _name(gpu: Any) -> str:
    return str(tf.config.experimental.get_device_details(gpu).get("device_name") or gpu.name)


def _plain(value: Any) -> np.ndarray:
    found = np.asarray(value)
    if found.dtype.kind in "OS":
        return np.array([one.decode() for one in found.ravel()], dtype=object).reshape(found.shape)
    return found
