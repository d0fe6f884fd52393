"""ONNX models with ONNX Runtime: on a GPU if the runtime has one, else on CPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from model_server.contract import Card
from model_server.errors import CardError
from model_server.loaders import CPU, Arrays, mismatch

_WANTED = ("CUDAExecutionProvider", "CPUExecutionProvider")


class OnnxRunner:
    """A session that computes the card's outputs by name."""

    device = CPU

    def __init__(self, session: onnxruntime.InferenceSession, outputs: list[str]) -> None:
        self.session, self.outputs = session, outputs

    def run(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Computes the outputs by name. Raises CardError if one is not a tensor."""
        found = dict(zip(self.outputs, self.session.run(self.outputs, dict(arrays)), strict=True))
        for name, value in found.items():
            if not isinstance(value, np.ndarray):
                hint = "convert the model with zipmap=False"
                raise CardError(f"returns a {type(value).__name__} for {name}, no tensor", where="outputs", hint=hint)
        return found


def load(path: Path, card: Card, threads: int) -> OnnxRunner:
    """Loads a session. Raises CardError if its names differ from the card's."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    have = onnxruntime.get_available_providers()
    providers = [one for one in _WANTED if one in have]
    session = onnxruntime.InferenceSession(str(path), options, providers=providers)
    inputs = [one.name for one in session.get_inputs()]
    if set(inputs) != {one.name for one in card.inputs}:
        raise mismatch(card, "inputs", ", ".join(inputs))
    outputs = [one.name for one in session.get_outputs()]
    if not {one.name for one in card.outputs} <= set(outputs):
        raise mismatch(card, "outputs", ", ".join(outputs))
    return OnnxRunner(session, [one.name for one in card.outputs])
