"""Writes a small ONNX file without ONNX's package: a perceptron, for tests, benches and the page of digits.

It writes only the fields of the format's messages that such a model needs, by their numbers in `onnx.proto`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

_FLOAT = 1  # TensorProto.FLOAT
_IR, _OPSET = 8, 13
_ROWS = "rows"


def perceptron(layers: Sequence[tuple[np.ndarray, np.ndarray]], source: str, target: str) -> bytes:
    """Returns a model `target = W_n · relu(… W_1 · source + b_1 …) + b_n` of FP32.

    Args:
        layers: weights of the shape [inputs, outputs], and biases [outputs], of each layer.
    """
    nodes, stored, name = [], [], source
    for at, (weights, bias) in enumerate(layers):
        last = at == len(layers) - 1
        out = target if last else f"sum{at}"
        nodes.append(_node("Gemm", [name, f"w{at}", f"b{at}"], out))
        stored += [_tensor(f"w{at}", weights), _tensor(f"b{at}", bias)]
        name = out
        if not last:
            nodes.append(_node("Relu", [out], f"act{at}"))
            name = f"act{at}"
    graph = b"".join(
        [
            *(_bytes(1, one) for one in nodes),
            _text(2, "perceptron"),
            *(_bytes(5, one) for one in stored),
            _bytes(11, _value(source, layers[0][0].shape[0])),
            _bytes(12, _value(target, layers[-1][0].shape[1])),
        ]
    )
    return _int(1, _IR) + _text(2, "trainyard") + _bytes(7, graph) + _bytes(8, _text(1, "") + _int(2, _OPSET))


def _node(kind: str, inputs: Sequence[str], output: str) -> bytes:
    return b"".join(_text(1, one) for one in inputs) + _text(2, output) + _text(4, kind)


def _tensor(name: str, array: np.ndarray) -> bytes:
    raw = np.ascontiguousarray(array, "<f4").tobytes()
    return b"".join(_int(1, one) for one in array.shape) + _int(2, _FLOAT) + _text(8, name) + _bytes(9, raw)


def _value(name: str, width: int) -> bytes:
    shape = _bytes(1, _text(2, _ROWS)) + _bytes(1, _int(1, width))
    return _text(1, name) + _bytes(2, _bytes(1, _int(1, _FLOAT) + _bytes(2, shape)))


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return struct.pack(f"{len(parts) + 1}B", *parts, value)
