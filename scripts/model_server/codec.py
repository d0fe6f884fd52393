"""Decodes requests to arrays, each checked against the card, and encodes arrays to answers.

Two formats: the Open Inference Protocol's tensors, with its binary data extension, and plain `{"instances": [...]}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson

from model_server.contract import ANY, DATATYPES, Card, Tensor
from model_server.errors import RequestError
from model_server.tensors import array, from_bytes, short, to_bytes

Arrays = dict[str, np.ndarray]
_DIGITS = 12  # maximum digits of a byte count


@dataclass(frozen=True)
class Request:
    """A request's arrays by input, and the requested outputs: name -> whether in binary form."""

    arrays: Arrays
    outputs: dict[str, bool] = field(default_factory=dict)
    id: str = ""


def document(body: bytes) -> dict[str, Any]:
    """Parses a body as a JSON object. Raises RequestError."""
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(f"invalid JSON: {error}", where="body", hint="send a JSON object") from None
    if not isinstance(said, dict):
        raise RequestError("not a JSON object", where="body", hint="send a JSON object")
    return said


def infer_request(card: Card, body: bytes, header_length: str = "") -> Request:
    """Decodes a request of the Open Inference Protocol.

    Args:
        header_length: the header Inference-Header-Content-Length: number of JSON bytes before the binary tensors.
    """
    head, tail = _parts(body, header_length)
    said = document(head)
    inputs = said.get("inputs")
    if not isinstance(inputs, list) or not all(isinstance(one, dict) for one in inputs):
        raise RequestError("missing or not a list", where="inputs", hint="send a list of {name, datatype, shape, data}")
    wanted, arrays = {one.name: one for one in card.inputs}, {}
    for at, one in enumerate(inputs):
        where, name = f"inputs[{at}]", one.get("name")
        tensor = wanted.get(name) if isinstance(name, str) else None
        if tensor is None or name in arrays:
            hint = f"send each of {', '.join(wanted)} once"
            raise RequestError(f"got {short(name)}", where=f"{where}.name", hint=hint)
        shape = _shape(tensor, one, where)
        size = _parameters(one, where).get("binary_data_size")
        if size is None:
            arrays[tensor.name] = array(tensor, one.get("data"), shape, f"{where}.data")
            continue
        if not isinstance(size, int) or not 0 <= size <= len(tail):
            hint = f"{len(tail)} bytes follow the JSON"
            raise RequestError(f"got {short(size)}", where=f"{where}.parameters.binary_data_size", hint=hint)
        arrays[tensor.name] = from_bytes(tensor, tail[:size], shape, where)
        tail = tail[size:]
    if tail:
        hint = "give each input its parameters.binary_data_size"
        raise RequestError(f"has {len(tail)} bytes that belong to no input", where="body", hint=hint)
    identity = said.get("id", "")
    if not isinstance(identity, str):
        raise RequestError(f"got {short(identity)}", where="id", hint="send a string")
    return Request(_whole(card, arrays), _outputs(card, said), identity)


def predict_request(card: Card, body: bytes) -> Request:
    """Decodes a plain request: a list of rows, or of {input: row} if the model has several inputs."""
    rows = document(body).get("instances")
    if not isinstance(rows, list) or not rows:
        raise RequestError("missing or empty", where="instances", hint="send a list with a row for each prediction")
    if not card.batches:
        hint = "use the Open Inference Protocol, /v2/models/NAME/infer"
        raise RequestError("not supported: this model's tensors have a fixed length", where="instances", hint=hint)
    if len(card.inputs) == 1 and not isinstance(rows[0], dict):
        tensor = card.inputs[0]
        return Request({tensor.name: _stacked(tensor, rows, "instances")})
    arrays: Arrays = {}
    names = {one.name for one in card.inputs}
    for at, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != names:
            hint = f"send an object with {', '.join(sorted(names))}"
            raise RequestError("does not match the model's inputs", where=f"instances[{at}]", hint=hint)
    for tensor in card.inputs:
        arrays[tensor.name] = _stacked(tensor, [row[tensor.name] for row in rows], f"instances[*].{tensor.name}")
    return Request(arrays)


def infer_answer(card: Card, request: Request, outputs: Arrays) -> tuple[bytes, int]:
    """The protocol's answer, and the number of JSON bytes before binary tensors; 0 if there are none."""
    said: list[dict[str, Any]] = []
    tail: list[bytes] = []
    for tensor in card.outputs:
        if request.outputs and tensor.name not in request.outputs:
            continue
        found = outputs[tensor.name]
        one: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(found.shape)}
        if request.outputs.get(tensor.name):
            blob = to_bytes(tensor, found)
            one["parameters"] = {"binary_data_size": len(blob)}
            tail.append(blob)
        else:
            one["data"] = _plain(tensor, found.ravel())
        said.append(one)
    answer: dict[str, Any] = {"model_name": card.name, "model_version": card.version, "outputs": said}
    if request.id:
        answer["id"] = request.id
    head = orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)
    return b"".join((head, *tail)), len(head) if tail else 0


def predict_answer(card: Card, outputs: Arrays) -> bytes:
    """A prediction for each row: a value or list, or {output: value} if the model has several outputs."""
    plain = {one.name: _plain(one, outputs[one.name]) for one in card.outputs}
    if len(plain) == 1:
        (predictions,) = plain.values()
    else:
        listed = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in plain.items()}
        predictions = [dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True)]
    return orjson.dumps({"predictions": predictions}, option=orjson.OPT_SERIALIZE_NUMPY)


def metadata(card: Card) -> dict[str, Any]:
    """The protocol's metadata of a model."""
    platforms = {"onnx": "onnxruntime_onnx", "tensorflow": "tensorflow_savedmodel", "pytorch": "pytorch_libtorch"}

    def tensors(some: Sequence[Tensor]) -> list[dict[str, Any]]:
        return [{"name": one.name, "datatype": one.datatype, "shape": list(one.shape)} for one in some]

    return {
        "name": card.name,
        "versions": [card.version],
        "platform": platforms.get(card.framework, card.framework),
        "inputs": tensors(card.inputs),
        "outputs": tensors(card.outputs),
    }


def _parts(body: bytes, header_length: str) -> tuple[bytes, memoryview]:
    if not header_length:
        return body, memoryview(b"")
    if not header_length.isdecimal() or len(header_length) > _DIGITS or int(header_length) > len(body):
        hint = f"the body has {len(body)} bytes"
        raise RequestError(f"got {short(header_length)}", where="Inference-Header-Content-Length", hint=hint)
    return body[: int(header_length)], memoryview(body)[int(header_length) :]


def _parameters(said: Mapping[str, Any], where: str) -> dict[str, Any]:
    found = said.get("parameters") or {}
    if not isinstance(found, dict):
        raise RequestError(f"got {short(found)}", where=f"{where}.parameters", hint="send an object")
    return found


def _shape(tensor: Tensor, said: Mapping[str, Any], where: str) -> tuple[int, ...]:
    if said.get("datatype") != tensor.datatype:
        raise RequestError(
            f"got {short(said.get('datatype'))}", where=f"{where}.datatype", hint=f"{tensor.name} is {tensor.datatype}"
        )
    shape = said.get("shape")
    hint = f"{tensor.name} is {list(tensor.shape)}, {ANY} for any length"
    if not isinstance(shape, list) or not all(type(one) is int and one > 0 for one in shape):
        raise RequestError(f"got {short(shape)}", where=f"{where}.shape", hint=hint)
    if not fits(tensor.shape, shape):
        raise RequestError(f"got {short(shape)}", where=f"{where}.shape", hint=hint)
    return tuple(shape)


def fits(wanted: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether the shape matches the card's."""
    return len(wanted) == len(shape) and all(a in (ANY, b) for a, b in zip(wanted, shape, strict=True))


def _stacked(tensor: Tensor, rows: list[Any], where: str) -> np.ndarray:
    found = array(tensor, rows, None, where)
    if not fits(tensor.shape, found.shape):
        one = list(tensor.shape[1:]) or "one value"
        raise RequestError(f"invalid shape {list(found.shape)}", where=where, hint=f"a row of {tensor.name} is {one}")
    return found


def _whole(card: Card, arrays: Arrays) -> Arrays:
    if missing := [one.name for one in card.inputs if one.name not in arrays]:
        raise RequestError(f"lack {', '.join(missing)}", where="inputs", hint="send every input of the model")
    if card.batches and len({len(one) for one in arrays.values()}) > 1:
        counts = ", ".join(f"{name} {len(one)}" for name, one in arrays.items())
        raise RequestError(f"have different numbers of rows: {counts}", where="inputs", hint="send equally many rows")
    return arrays


def _outputs(card: Card, said: Mapping[str, Any]) -> dict[str, bool]:
    every = _parameters(said, "request").get("binary_data_output") is True
    known = [one.name for one in card.outputs]
    asked = said.get("outputs")
    if asked is None or asked == []:
        return dict.fromkeys(known, True) if every else {}
    if not isinstance(asked, list) or not all(isinstance(one, dict) for one in asked):
        raise RequestError(f"got {short(asked)}", where="outputs", hint="send a list of {name}")
    wanted: dict[str, bool] = {}
    for at, one in enumerate(asked):
        if one.get("name") not in known:
            hint = f"use {', '.join(known)}"
            raise RequestError(f"got {short(one.get('name'))}", where=f"outputs[{at}].name", hint=hint)
        wanted[one["name"]] = _parameters(one, f"outputs[{at}]").get("binary_data", every) is True
    return wanted


def _plain(tensor: Tensor, found: np.ndarray) -> Any:
    """Data for orjson: arrays of numbers unchanged, strings and half-precision floats as lists."""
    if tensor.datatype in ("BYTES", "FP16"):
        return found.tolist()
    return np.ascontiguousarray(found, DATATYPES[tensor.datatype])
