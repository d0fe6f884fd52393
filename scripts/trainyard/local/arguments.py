"""Arguments of a pipeline, from text to the types that it declares."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from trainyard.errors import UsageError
from trainyard.ir.model import MISSING, Parameter, Pipeline

BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def parse(pipeline: Pipeline, given: Sequence[str]) -> dict[str, Any]:
    """All arguments of the pipeline, defaults included, from texts NAME=VALUE. Raises UsageError."""
    known = pipeline.inputs.parameters
    if pipeline.inputs.artifacts:
        names = ", ".join(pipeline.inputs.artifacts)
        raise UsageError(f"the pipeline takes artifacts ({names})", mend="import them inside it by dsl.importer")
    values: dict[str, Any] = dict(pipeline.arguments)
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--param {text} has no value", mend="write it as NAME=VALUE")
        if name not in known:
            mend = f"it takes {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"the pipeline {pipeline.name} has no parameter {name}", mend=mend)
        values[name] = value_of(known[name], value)
    for name, parameter in known.items():
        if name in values:
            continue
        if parameter.required:
            raise UsageError(f"the parameter {name} needs a value", mend=f"add --param {name}=…")
        if parameter.default is not MISSING and parameter.default is not None:
            values[name] = _typed(parameter, parameter.default)
    return values


def value_of(parameter: Parameter, text: str) -> Any:
    """A text as a value of the parameter's type. Raises UsageError."""
    if parameter.type == "STRING":
        return text
    reads: dict[str, tuple[Callable[[str], Any], str]] = {
        "NUMBER_INTEGER": (int, "a whole number"),
        "NUMBER_DOUBLE": (float, "a number"),
        "BOOLEAN": (lambda word: BOOLEANS[word.lower()], "true or false"),
        "LIST": (lambda word: _json(word, list), "a list in JSON"),
        "STRUCT": (lambda word: _json(word, dict), "an object in JSON"),
    }
    read, title = reads.get(parameter.type, (str, "text"))
    try:
        return read(text)
    except (ValueError, KeyError):
        raise UsageError(f"the parameter {parameter.name} is {title}, and {text!r} is none") from None


def _json(text: str, kind: type) -> Any:
    value = json.loads(text)
    if not isinstance(value, kind):
        raise ValueError(text)
    return value


def _typed(parameter: Parameter, value: Any) -> Any:
    """Defaults come out of protobuf as fractions."""
    return int(value) if parameter.type == "NUMBER_INTEGER" and isinstance(value, float) else value
