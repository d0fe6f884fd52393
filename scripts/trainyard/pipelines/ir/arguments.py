"""Arguments of a pipeline, converted from the command line's texts to the types that the pipeline declares."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from trainyard.errors import UsageError
from trainyard.pipelines.ir.model import Parameter, Pipeline

TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "STRING": ((str,), "text"),
    "NUMBER_INTEGER": ((int,), "a whole number"),
    "NUMBER_DOUBLE": ((int, float), "a number"),
    "BOOLEAN": ((bool,), "true or false"),
    "LIST": ((list,), "a JSON list"),
    "STRUCT": ((dict,), "a JSON object"),
}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def split(given: Sequence[str]) -> dict[str, str]:
    """Split `--param NAME=VALUE` into names and texts, without conversion.

    Raises:
        UsageError: one has no `=` or no name, or a name is given twice.
    """
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--param {one!r} is not NAME=VALUE", hint="write for example --param epochs=3")
        if name in found:
            raise UsageError(f"--param {name} is given twice")
        found[name] = value
    return found


def checked(pipeline: Pipeline, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arguments to the pipeline's types; a text is parsed as the expected type, an artifact is its URI.

    Raises:
        UsageError: names the argument, and those that the pipeline accepts.
    """
    inputs = pipeline.inputs
    known = {**inputs.parameters, **inputs.artifacts}
    found = {}
    for name, value in arguments.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise UsageError(f"the pipeline has no input {name}; its inputs: {names}", where=pipeline.file)
        declared = inputs.parameters.get(name)
        found[name] = _typed(pipeline, declared, value) if declared else str(value)
    if missing := [one for one in inputs.needed if one not in found]:
        example = "s3://bucket/key" if missing[0] in inputs.artifacts else "VALUE"
        hint = f"pass --param {missing[0]}={example}"
        raise UsageError(f"the pipeline needs a value for {', '.join(missing)}", where=pipeline.file, hint=hint)
    return found


def _typed(pipeline: Pipeline, declared: Parameter, value: Any) -> Any:
    if declared.type not in TYPES or value is None:
        return value
    kinds, title = TYPES[declared.type]
    found = _read(declared.type, value) if isinstance(value, str) and str not in kinds else value
    if isinstance(found, float) and kinds == (int,) and found.is_integer():
        found = int(found)
    if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
        raise UsageError(f"--param {declared.name}: expected {title}, got {found!r}", where=pipeline.file)
    if declared.literals and found not in declared.literals:
        words = ", ".join(str(one) for one in declared.literals)
        raise UsageError(f"--param {declared.name}: expected one of {words}, got {found!r}", where=pipeline.file)
    return found


def _read(kind: str, text: str) -> Any:
    """The value of a text, or the text itself if it is no value of that kind."""
    if kind == "BOOLEAN":
        return _BOOLEANS.get(text.lower(), text)
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return text
