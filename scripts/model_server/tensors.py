"""Converts data of a request to an array of the card's datatype, and back to bytes."""

from __future__ import annotations

import math
import reprlib
import struct
from typing import Any

import numpy as np

from model_server.contract import DATATYPES, Tensor
from model_server.errors import RequestError

# numpy's type of lists of JSON values -> allowed datatypes
_KINDS = {
    "b": "booleans",
    "i": "integers",
    "u": "integers",
    "f": "numbers",
    "U": "strings",
    "O": "mixed values",
}
_SHOWN = 40
_REPR = reprlib.Repr()  # limits length and depth of any value
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 2 * _SHOWN
_REPR.maxlist = 12


def array(tensor: Tensor, data: Any, shape: tuple[int, ...] | None, where: str) -> np.ndarray:
    """Converts nested or flat lists of JSON values to an array of this shape; None: their own shape.

    Raises:
        RequestError: values have another datatype or are too large, or their number does not match the shape.
    """
    if not isinstance(data, list):
        raise RequestError(f"got {short(data)}", where=where, hint=f"send a list of {tensor.datatype}")
    made = _texts if tensor.datatype == "BYTES" else _numbers
    found = made(tensor, data, where)
    if shape is None or found.shape == shape:
        return found
    if found.ndim != 1 or found.size != math.prod(shape):
        what = f"has {found.size} values in shape {list(found.shape)}, but shape is {list(shape)}"
        raise RequestError(what, where=where, hint="send as many values as shape requires, flat or nested")
    return found.reshape(shape)


def from_bytes(tensor: Tensor, blob: memoryview, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Decodes raw data, little-endian and row-major; each string follows its four-byte length. Raises RequestError."""
    count = math.prod(shape)
    if tensor.datatype == "BYTES":
        return _split_texts(blob, count, where).reshape(shape)
    kind = np.dtype(DATATYPES[tensor.datatype]).newbyteorder("<")
    if len(blob) != count * kind.itemsize:
        what = f"is {len(blob)} bytes, but {list(shape)} of {tensor.datatype} takes {count * kind.itemsize}"
        raise RequestError(what, where=f"{where}.parameters.binary_data_size", hint="send the whole tensor")
    if tensor.datatype == "BOOL" and np.frombuffer(blob, np.uint8).max(initial=0) > 1:
        raise RequestError("contains bytes other than 0 and 1", where=where, hint="send one byte for each BOOL")
    return np.frombuffer(blob, kind).reshape(shape)


def to_bytes(tensor: Tensor, found: np.ndarray) -> bytes:
    """Encodes data in the format that `from_bytes` reads."""
    if tensor.datatype != "BYTES":
        return np.ascontiguousarray(found).astype(np.dtype(DATATYPES[tensor.datatype]).newbyteorder("<")).tobytes()
    blobs = [str(one).encode() for one in found.ravel()]
    return b"".join(struct.pack("<I", len(one)) + one for one in blobs)


def _numbers(tensor: Tensor, data: list[Any], where: str) -> np.ndarray:
    wanted = np.dtype(DATATYPES[tensor.datatype])
    try:
        found = np.asarray(data)
    except (ValueError, OverflowError) as error:
        hint = "send rows of one length"
        raise RequestError(f"is not a tensor: {str(error).partition('.')[0]}", where=where, hint=hint) from None
    kind = found.dtype.kind
    allowed = {"b": "b", "i": "iu", "u": "iu", "f": "fiu"}[wanted.kind]
    if kind not in allowed:
        said = _KINDS.get(kind, "values of another type")
        raise RequestError(f"contains {said}", where=where, hint=f"{tensor.name} is {tensor.datatype}")
    if wanted.kind in "iu" and found.size:
        limits = np.iinfo(wanted)
        least, most = int(found.min()), int(found.max())
        if least < limits.min or most > limits.max:
            hint = f"{tensor.datatype} holds {limits.min} to {limits.max}"
            raise RequestError(f"value out of range: {least if least < limits.min else most}", where=where, hint=hint)
    with np.errstate(over="ignore"):
        cast = found.astype(wanted, copy=False)
    if wanted.kind == "f" and not np.isfinite(cast).all():
        raise RequestError(f"contains numbers too large for {tensor.datatype}", where=where, hint="send smaller ones")
    return cast


def _texts(tensor: Tensor, data: list[Any], where: str) -> np.ndarray:
    found = np.asarray(data, dtype=object)
    if not all(isinstance(one, str) for one in found.ravel()):
        raise RequestError("not all values are strings", where=where, hint=f"{tensor.name} is BYTES: send strings")
    return found


def _split_texts(blob: memoryview, count: int, where: str) -> np.ndarray:
    found, at = [], 0
    while at < len(blob):
        end = at + 4
        length = struct.unpack_from("<I", blob, at)[0] if end <= len(blob) else len(blob)
        if end + length > len(blob):
            break
        found.append(bytes(blob[end : end + length]))
        at = end + length
    if at != len(blob) or len(found) != count:
        what = f"is not {count} strings, each preceded by its length in four bytes"
        raise RequestError(what, where=where, hint="send as many strings as shape requires")
    try:
        return np.array([one.decode() for one in found], dtype=object)
    except UnicodeDecodeError:
        raise RequestError("contains a string that is not UTF-8", where=where, hint="send UTF-8") from None


def short(value: Any) -> str:
    """A short representation of a value for errors."""
    text = _REPR.repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
