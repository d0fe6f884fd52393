"""Models of each framework behind one call; a module is imported when its framework is served."""

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

# framework -> module here, and the image that brings what it imports
MODULES = {
    "pytorch": ("of_torch", "server-torch"),
    "tensorflow": ("of_tensorflow", "server-tensorflow"),
    "sklearn": ("of_sklearn", "server-sklearn"),
    "onnx": ("of_onnx", "server-sklearn"),
}


class Runner(Protocol):
    """A loaded model, called by one thread at a time; `device` is where it computes: CPU, or a GPU's name."""

    device: str

    def run(self, arrays: Arrays) -> dict[str, np.ndarray]:
        """The outputs by the card's names."""


def load(folder: Path, card: Card, threads: int) -> Runner:
    """The model of a folder whose files were checked.

    Args:
        threads: what the framework may compute with at once.

    Raises:
        CardError: the file is none of this framework, or has other inputs and outputs than the card.
    """
    name, image = MODULES[card.framework]
    try:
        module = importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        what = f"is {card.framework}, and {error.name} is not installed here"
        raise CardError(what, where=f"{folder}: framework", hint=f"serve it with the image {image}") from None
    try:
        runner: Runner = module.load(folder / card.file, card, threads)
    except CardError:
        raise
    except Exception as error:  # what frameworks raise of a file that isn't theirs has no common class
        what = f"can't be loaded by {card.framework}: {type(error).__name__}: {_first_line(error)}"
        raise CardError(what, where=str(folder / card.file), hint="save the model as docs/serving.md says") from error
    return runner


def mismatch(card: Card, what: str, found: object) -> CardError:
    """The card says other inputs or outputs than the model has."""
    wanted = ", ".join(one.name for one in getattr(card, what))
    return CardError(f"has the {what} {found}, and the card {wanted}", where=card.file, hint=f"write its {what}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:300]
