"""Warms a model up with one row and with a full batch, and compares its answers with the card."""

from __future__ import annotations

import numpy as np

from model_server.codec import fits
from model_server.contract import ANY, DATATYPES, Card, Tensor
from model_server.errors import CardError
from model_server.loaders import Runner


def warm(runner: Runner, card: Card, max_batch: int) -> None:
    """Calls the model twice, to complete what it only does on the first call.

    Raises:
        CardError: it fails, or the answer has another name, datatype or shape than the card.
    """
    for rows in dict.fromkeys((1, max_batch if card.batches else 1)):
        given = {one.name: _zeros(one, rows) for one in card.inputs}
        try:
            outputs = runner.run(given)
        except CardError:
            raise
        except Exception as error:  # each framework has its own errors
            shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in given.items())
            what = f"the model fails with zeros for {shapes}: {type(error).__name__}: {str(error)[:300]}"
            raise CardError(what, where="inputs", hint="correct the datatypes and shapes in the card") from error
        for one in card.outputs:
            _check(one, outputs.get(one.name), rows)


def datatype_of(found: np.ndarray) -> str:
    """The protocol's name of an array's datatype; "" if it has none."""
    if found.dtype.kind in "OU":
        return "BYTES"
    return next((name for name, kind in DATATYPES.items() if found.dtype == kind and name != "BYTES"), "")


def _zeros(one: Tensor, rows: int) -> np.ndarray:
    shape = [rows if at == 0 and one.rows else 1 if length == ANY else length for at, length in enumerate(one.shape)]
    if one.datatype == "BYTES":
        return np.full(shape, "", dtype=object)
    return np.zeros(shape, DATATYPES[one.datatype])


def _check(one: Tensor, found: np.ndarray | None, rows: int) -> None:
    where = f"outputs: {one.name}"
    if found is None:
        raise CardError("not an output of the model", where=where, hint="use the model's own output names")
    if datatype_of(found) != one.datatype:
        what = f"is {datatype_of(found) or found.dtype}, but the card says {one.datatype}"
        raise CardError(what, where=where, hint="write what the model returns")
    if not fits(one.shape, found.shape) or (one.rows and found.shape[0] != rows):
        what = f"has the shape {list(found.shape)} for {rows} rows, but the card says {list(one.shape)}"
        raise CardError(what, where=where, hint="write what the model returns")
