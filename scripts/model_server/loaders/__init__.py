"""Loading of models of each framework with one function; a framework's module is only imported if it is served."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from model_server.contract import Card
from model_server.errors import CardError

Arrays = Mapping[str, np.ndarray]

CPU = "CPU"

# framework -> module here, and the image with its dependencies
MODULES = {
    "pytorch": ("of_torch", "server-torch"),
    "tensorflow": ("of_tensorflow", "server-tensorflow"),
    "sklearn": ("of_sklearn", "server-sklearn"),
    "onnx": ("of_onnx", "server-sklearn"),
}


class Runner(Protocol):
    """A loaded model, called by one thread at a time; `device` is the CPU, or the name of a GPU."""

    device: str

    def run(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """Computes the outputs, by the card's names."""


def load(folder: Path, card: Card, threads: int) -> Runner:
    """Loads the model of a folder whose files were checked.

    Args:
        threads: number of threads for the framework.

    Raises:
        CardError: the file is not of this framework, or its inputs or outputs differ from the card's.
    """
    name, image = MODULES[card.framework]
    try:
        module = importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        what = f"{card.framework} needs {error.name}, which is not installed"
        raise CardError(what, where=f"{folder}: framework", hint=f"use the image {image}") from None
    try:
        runner: Runner = module.load(folder / card.file, card, threads)
    except CardError:
        raise
    except Exception as error:  # frameworks' errors about invalid files have no common class
        what = f"can't be loaded by {card.framework}: {type(error).__name__}: {_first_line(error)}"
        raise CardError(what, where=str(folder / card.file), hint="see docs/serving.md for how to save it") from error
    return runner


def mismatch(card: Card, what: str, found: object) -> CardError:
    """The error for inputs or outputs that differ from the card's."""
    wanted = ", ".join(one.name for one in getattr(card, what))
    return CardError(f"the {what} are {found}, but the card says {wanted}", where=card.file, hint=f"correct {what}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]
