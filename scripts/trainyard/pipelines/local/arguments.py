"""Arguments of a pipeline that runs on this machine: all of them, with defaults filled in."""

from collections.abc import Sequence
from typing import Any

from trainyard.errors import UsageError
from trainyard.pipelines.ir.arguments import checked, split
from trainyard.pipelines.ir.model import MISSING, Pipeline


def parse(pipeline: Pipeline, given: Sequence[str]) -> dict[str, Any]:
    """All arguments of the pipeline, including defaults, from texts NAME=VALUE. Raises UsageError."""
    if pipeline.inputs.artifacts:
        names = ", ".join(pipeline.inputs.artifacts)
        raise UsageError(f"the pipeline takes artifacts ({names})", hint="import them inside it by dsl.importer")
    found = checked(pipeline, {**pipeline.arguments, **split(given)})
    for name, parameter in pipeline.inputs.parameters.items():
        if name not in found and parameter.default is not MISSING and parameter.default is not None:
            found[name] = parameter.default
        if name in found:
            found[name] = _number(parameter.type, found[name])
    return found


def _number(kind: str, value: Any) -> Any:
    """The number in the type of kfp's annotation: protobuf returns fractions, JSON whole numbers where possible."""
    if kind == "NUMBER_INTEGER" and isinstance(value, float):
        return int(value)
    return float(value) if kind == "NUMBER_DOUBLE" and isinstance(value, int) else value
