"""scikit-learn models saved by joblib or pickle.

Loading a file runs code in it, so its digest is checked before.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import threadpoolctl
from sklearn.exceptions import InconsistentVersionWarning

from model_server.contract import Card
from model_server.errors import CardError
from model_server.loaders import CPU, Arrays

PREDICT = "predict"


class SklearnRunner:
    """A model with a method for each output."""

    device = CPU

    def __init__(self, model: Any, source: str, methods: dict[str, str]) -> None:
        self.model, self.source, self.methods = model, source, methods

    def run(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Computes the outputs by name."""
        rows = arrays[self.source]
        return {name: np.asarray(getattr(self.model, method)(rows)) for name, method in self.methods.items()}


def load(path: Path, card: Card, threads: int) -> SklearnRunner:
    """Loads the model. Raises CardError if it lacks the method of an output."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = joblib.load(path)
    for one in caught:
        if isinstance(one.message, InconsistentVersionWarning):
            print(f"{path}: {str(one.message).partition('. ')[0]}", file=sys.stderr, flush=True)
            break
    methods = {one.name: one.method or PREDICT for one in card.outputs}
    for name, method in methods.items():
        if method.startswith("_") or not callable(getattr(model, method, None)):
            what = f"needs the method {method}, which {type(model).__name__} lacks"
            raise CardError(what, where=f"outputs: {name}", hint="write one of the model's methods")
    threadpoolctl.threadpool_limits(threads)
    return SklearnRunner(model, card.inputs[0].name, methods)
