"""A model's card, `model.json`: the model's identity, inputs, outputs and origin.

The card is next to the model's file, and a server needs nothing else. Keys that are not listed here are ignored:
a model's owner may add others.

    {"name": "mnist", "version": "3f2a…", "framework": "onnx", "file": "model.onnx",
     "digest": "sha256:…",
     "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 784]}],
     "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}],
     "data": {…}, "code": "…", "run": "…", "metrics": {"accuracy": 0.97}}
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from model_server.errors import CardError

CARD = "model.json"
FRAMEWORKS = ("pytorch", "tensorflow", "sklearn", "onnx")

# The Open Inference Protocol's datatypes -> numpy's.
DATATYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BYTES": "object",  # strings
}
ANY = -1  # a dimension of any length; if first, it is the number of rows

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
VERSION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_BUILDER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\.py:[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Tensor:
    """An input or output; a dimension of any length is ANY in `shape`.

    `method` is the method of a scikit-learn model that computes this output: predict, predict_proba, …
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    method: str = ""

    @property
    def rows(self) -> bool:
        """Whether the first dimension counts rows, so that requests can share a batch."""
        return bool(self.shape) and self.shape[0] == ANY

    def document(self) -> dict[str, Any]:
        """The tensor as in the card and in the protocol's metadata."""
        said: dict[str, Any] = {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}
        return said | ({"method": self.method} if self.method else {})


@dataclass(frozen=True)
class Card:
    """Content of `model.json`.

    Attributes:
        file: the model's file, or folder (a SavedModel), below the card's own.
        digest: `sha256:…` of it, as computed by `digest_of`.
        builder: for PyTorch weights, `FILE.py:FUNCTION` that creates the module; its digest is in `files`.
        files: digests of additional files, by name.
        data, code, run, metrics: origin and quality of the model, for display only.
    """

    name: str
    version: str
    framework: str
    file: str
    digest: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    builder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    data: Any = None
    code: Any = None
    run: Any = None
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def batches(self) -> bool:
        """Whether requests can share a batch: every input and output counts rows."""
        return all(one.rows for one in (*self.inputs, *self.outputs))

    def document(self) -> dict[str, Any]:
        """The card as in `model.json`; unknown values are omitted."""
        said: dict[str, Any] = {
            "name": self.name,
            "version": self.version,
            "framework": self.framework,
            "file": self.file,
            "digest": self.digest,
            "inputs": [one.document() for one in self.inputs],
            "outputs": [one.document() for one in self.outputs],
        }
        more = {
            "builder": self.builder,
            "files": {name: {"sha256": digest.removeprefix("sha256:")} for name, digest in self.files.items()},
            "data": self.data,
            "code": self.code,
            "run": self.run,
            "metrics": dict(self.metrics),
        }
        return said | {key: value for key, value in more.items() if value not in (None, "", {})}


def read(folder: Path) -> Card:
    """Reads the card of a model's folder. Raises CardError."""
    file = folder / CARD
    try:
        document = json.loads(file.read_text())
    except FileNotFoundError:
        hint = "register the model, or pass the folder that contains its card"
        raise CardError(f"no {CARD}", where=str(folder), hint=hint) from None
    except (OSError, ValueError) as error:
        raise CardError(f"can't be read: {error}", where=str(file), hint="write it as JSON") from None
    return parse(document, str(file))


def parse(document: Any, where: str = CARD) -> Card:
    """Parses a card. Raises CardError, which names the field and its correct content."""
    if not isinstance(document, Mapping):
        raise CardError("not a JSON object", where=where, hint=f"write name, version, framework, … as {CARD}")
    said = _Fields(document, where)
    files = {file: _sha256(said, file, facts) for file, facts in said.mapping("files").items()}
    framework = said.one_of("framework", FRAMEWORKS)
    file = said.relative("file")
    builder = said.text("builder", _BUILDER, "FILE.py:FUNCTION", needed=False)
    if builder and framework != "pytorch":
        raise said.error("builder", f"applies to pytorch only, but framework is {framework}", "remove builder")
    if builder and builder.partition(":")[0] not in files:
        raise said.error("files", f"lacks {builder.partition(':')[0]}, the builder's file", "add its sha256")
    digest = said.text("digest", _DIGEST, "sha256: and 64 digits", needed=file not in files) or files[file]
    if file in files and files.pop(file) != digest:
        raise said.error("digest", f"differs from that of {file} in files", "remove the wrong digest")
    inputs, outputs = said.tensors("inputs"), said.tensors("outputs")
    if framework == "sklearn" and len(inputs) != 1:
        raise said.error("inputs", "scikit-learn supports only one", "combine all features in one tensor")
    return Card(
        said.text("name", NAME, "lower-case letters, digits, dots and hyphens, at most 63"),
        said.text("version", VERSION, "letters, digits, dots and hyphens, at most 63"),
        framework,
        file,
        digest,
        inputs,
        outputs,
        builder,
        files,
        document.get("data"),
        document.get("code"),
        document.get("run"),
        said.mapping("metrics"),
    )


def digest_of(path: Path) -> str:
    """`sha256:…` of a file's bytes; of a folder, of its files' relative names and digests in order."""
    if not path.is_dir():
        with path.open("rb") as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
    lines = sorted(f"{one.relative_to(path).as_posix()} {digest_of(one)}\n" for one in path.rglob("*") if one.is_file())
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def check(folder: Path, card: Card) -> None:
    """Raises CardError unless every file of the card exists and has the card's digest."""
    for name, wanted in {card.file: card.digest, **card.files}.items():
        path = folder / name
        if not path.exists():
            raise CardError("not found, although the card names it", where=str(path), hint="register the model again")
        if not path.resolve().is_relative_to(folder.resolve()):
            raise CardError("points outside the model's folder", where=str(path), hint="replace the link with the file")
        if (found := digest_of(path)) != wanted:
            what = f"changed after registration: digest {found}, the card has {wanted}"
            raise CardError(what, where=str(path), hint="register the model again, or serve another version")


class _Fields:
    """Access to the fields of a document, by expected type."""

    def __init__(self, document: Mapping[str, Any], where: str) -> None:
        self.document, self.where = document, where

    def error(self, name: str, what: str, hint: str) -> CardError:
        return CardError(what, where=f"{self.where}: {name}", hint=hint)

    def text(self, name: str, pattern: re.Pattern[str], form: str, *, needed: bool = True) -> str:
        value = self.document.get(name, "")
        if value == "" and not needed:
            return ""
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self.error(name, f"is {value!r}" if value != "" else "is missing", f"write {form}")
        return value

    def one_of(self, name: str, known: Sequence[str]) -> str:
        value = self.document.get(name)
        if value not in known:
            raise self.error(name, f"is {value!r}", f"write one of {', '.join(known)}")
        return str(value)

    def relative(self, name: str) -> str:
        value = self.document.get(name)
        if not isinstance(value, str) or not _inside(value):
            raise self.error(name, f"is {value!r}", "write the name of a file or folder beside the card")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.document.get(name) or {}
        if not isinstance(value, Mapping):
            raise self.error(name, f"is {value!r}", "write an object")
        return dict(value)

    def tensors(self, name: str) -> tuple[Tensor, ...]:
        value = self.document.get(name)
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise self.error(name, "missing or not a list", "write a list of {name, datatype, shape}")
        found = tuple(self._tensor(f"{name}[{at}]", one) for at, one in enumerate(value))
        if len({one.name for one in found}) < len(found):
            raise self.error(name, "has a duplicate name", "give each its own")
        return found

    def _tensor(self, at: str, value: Any) -> Tensor:
        if not isinstance(value, Mapping):
            raise self.error(at, f"is {value!r}", "write {name, datatype, shape}")
        name, datatype, shape = value.get("name"), value.get("datatype"), value.get("shape")
        if not isinstance(name, str) or not name:
            raise self.error(f"{at}.name", f"is {name!r}", "write a string")
        if datatype not in DATATYPES:
            raise self.error(f"{at}.datatype", f"is {datatype!r}", f"write one of {', '.join(DATATYPES)}")
        if not isinstance(shape, Sequence) or isinstance(shape, str) or not shape or not all(map(_length, shape)):
            hint = f"write a list of lengths, {ANY} for any length, such as [{ANY}, 784]"
            raise self.error(f"{at}.shape", f"is {shape!r}", hint)
        method = value.get("method", "")
        if not isinstance(method, str):
            raise self.error(f"{at}.method", f"is {method!r}", "write predict, predict_proba, …")
        return Tensor(name, str(datatype), tuple(shape), method)


def _length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and (value > 0 or value == ANY)


def _inside(value: str) -> bool:
    path = PurePosixPath(value)
    return bool(value) and not path.is_absolute() and ".." not in path.parts and "\\" not in value and value != CARD


def _sha256(said: _Fields, file: str, facts: Any) -> str:
    digest = facts.get("sha256") if isinstance(facts, Mapping) else None
    if not _inside(file) or not isinstance(digest, str) or not _DIGEST.fullmatch(f"sha256:{digest}"):
        raise said.error(f"files.{file}", f"is {facts!r}", 'write {"sha256": …} of a file beside the card')
    return f"sha256:{digest}"
