"""Constants of a pipeline, which may contain kfp's placeholders, and kfp's selectors of parts of JSON."""

import re
from collections.abc import Callable
from typing import Any

from trainyard.pipelines.translate import values
from trainyard.pipelines.translate.values import Value

_PLACEHOLDER = re.compile(r"\{\{\$\.(?P<body>[^{}]*)\}\}")
_INPUT = re.compile(r"inputs\.parameters\[(['\"])(?P<name>.+?)\1\]$")
_SELECTOR = re.compile(r"parseJson\(string_value\)(?P<path>(?:\[(?:\"[^\"]*\"|'[^']*'|\d+)\])+)$")
_STEP = re.compile(r"\[(?:\"([^\"]*)\"|'([^']*)'|(\d+))\]")
WORKSPACE = "/kfp-workspace"
Input = Callable[[str], Value]


class UnreadableError(Exception):
    """A constant or selector that can't be translated: which part, and why."""


def value(constant: Any, task: str, root: str, given: Input) -> Value:
    """A constant argument of `task`.

    Args:
        root: the pipeline's root, for {{$.pipeline_root}}.
        given: returns the task's own input of a name, for {{$.inputs.parameters['name']}}.
    """
    if not _has_placeholder(constant):
        _check(constant)
        return values.literal(values.to_text(constant))
    if isinstance(constant, str):
        return values.joined(_parts(constant, task, root, given))
    return values.calculated(f"toJson({_code(constant, task, root, given)})")


def selected(source: Value, selector: str) -> Value:
    """A part of JSON text: a string unchanged, everything else as JSON."""
    match = _SELECTOR.match(selector.strip())
    if match is None:
        raise UnreadableError(f"the selector {selector}")
    path = "".join(
        f"[{index}]" if index else f"[{values.quoted(one or other)}]"
        for one, other, index in _STEP.findall(match["path"])
    )
    return values.calculated(f'map([fromJSON({source.code}){path}], type(#) == "string" ? # : toJson(#))[0]')


def code(constant: Any, task: str, root: str, given: Input) -> str:
    """An expression for any JSON value, with placeholders in its strings."""
    return _code(constant, task, root, given)


def _has_placeholder(constant: Any) -> bool:
    if isinstance(constant, dict):
        return any(_has_placeholder(one) for pair in constant.items() for one in pair)
    if isinstance(constant, list):
        return any(_has_placeholder(one) for one in constant)
    return isinstance(constant, str) and bool(_PLACEHOLDER.search(constant))


def _check(constant: Any) -> None:
    if len(values.to_text(constant)) > values.LARGEST:
        raise UnreadableError(
            f"a value of {len(values.to_text(constant)):,} bytes, where {values.LARGEST:,} are possible,"
        )
    if isinstance(constant, str) and "{{" in constant:
        raise UnreadableError("a text with {{, which Argo would replace")


def _parts(text: str, task: str, root: str, given: Input) -> list[Value]:
    found, at = [], 0
    for match in _PLACEHOLDER.finditer(text):
        if before := text[at : match.start()]:
            _check(before)
            found.append(values.literal(before))
        found.append(_placeholder(match["body"].strip(), task, root, given))
        at = match.end()
    if after := text[at:]:
        _check(after)
        found.append(values.literal(after))
    return found


def _placeholder(body: str, task: str, root: str, given: Input) -> Value:
    if match := _INPUT.match(body):
        return given(match["name"])
    run = {
        "pipeline_job_name": values.variable("workflow.name"),
        "pipeline_job_resource_name": values.variable("workflow.name"),
        "pipeline_job_uuid": values.variable("workflow.uid"),
        "pipeline_task_name": values.literal(task),
        "pipeline_task_uuid": values.joined([values.variable("workflow.uid"), values.literal(f"-{task}")]),
        "pipeline_root": values.joined([values.literal(f"{root}/"), values.variable("workflow.name")]),
        "pipeline_job_create_time_utc": values.variable("workflow.creationTimestamp.RFC3339"),
        "pipeline_job_schedule_time_utc": values.variable("workflow.creationTimestamp.RFC3339"),
        "workspace_path": values.literal(WORKSPACE),
    }
    if body not in run:
        raise UnreadableError("the placeholder " + values.tag(f"$.{body}"))
    return run[body]


def _code(constant: Any, task: str, root: str, given: Input) -> str:
    if isinstance(constant, dict):
        pairs = (f"{values.quoted(key)}: {_code(one, task, root, given)}" for key, one in constant.items())
        return "{" + ", ".join(pairs) + " }"
    if isinstance(constant, list):
        return "[" + ", ".join(_code(one, task, root, given) for one in constant) + "]"
    if isinstance(constant, str):
        if not constant:
            return '""'
        return values.joined(_parts(constant, task, root, given)).code
    if constant is None:
        return "nil"
    return values.to_json(constant)
