"""Sources of a task's arguments, in Argo's syntax."""

import json
from typing import Any

from trainyard.pipelines.ir.model import (
    CHANNEL,
    MISSING,
    REGARDLESS,
    Component,
    Constant,
    FinalStatus,
    FromInput,
    FromTask,
    Parameter,
    Source,
    Task,
)
from trainyard.pipelines.translate import constants, names, values
from trainyard.pipelines.translate.context import Context, Object
from trainyard.pipelines.translate.values import ABSENT, Value

FAILURES = 16_000  # bytes of Argo's report on failed pods: it is passed in the environment, and its quotes double


def parameter(ctx: Context, owner: Component, task: Task, source: Source, target: Parameter | None = None) -> Value:
    """The value of one argument of `task`, inside the DAG of `owner`; `target` is the parameter that gets it."""
    try:
        found = _parameter(ctx, owner, task, source, target)
        selector = getattr(source, "selector", "")
        return constants.selected(found, selector) if selector else found
    except constants.UnreadableError as error:
        hint = "pass it as an artifact, or compute it in a step"
        raise ctx.refuse_task(str(error), task, source.line, hint=hint) from None


def _parameter(ctx: Context, owner: Component, task: Task, source: Source, target: Parameter | None) -> Value:
    if isinstance(source, Constant):
        settings = ctx.settings
        root = f"s3://{settings.bucket}/{settings.team.name}/pipelines"

        def given(name: str) -> Value:
            if name not in task.parameters or task.parameters[name] is source:
                raise ctx.graph.dangling(f"the input {name}", task)
            return parameter(ctx, owner, task, task.parameters[name])

        return constants.value(source.value, task.name, root, given)
    if isinstance(source, FinalStatus):
        ctx.graph.task(owner, source.task, task)
        return _at_exit(source.task) if task is ctx.graph.exit else _final_status(source.task)
    if isinstance(source, FromInput):
        declared = owner.inputs.parameters.get(source.name)
        if declared is None:
            raise ctx.graph.dangling(f"the input {source.name}", task)
        found = values.input_parameter(source.name)
        if may_be_absent(declared) and target is not None and target.default not in (MISSING, None):
            default = values.quoted(values.to_text(target.default))
            return values.calculated(f"{found.code} == {values.quoted(ABSENT)} ? {default} : {found.code}")
        return found
    producer = ctx.graph.task(owner, source.task, task)
    component = ctx.graph.component(producer)
    if source.key not in component.outputs.parameters:
        raise ctx.graph.dangling(f"the output {source.key} of {source.task}", task)
    if task.strategy == REGARDLESS:
        default = ABSENT if target is None or target.default is MISSING else values.to_text(target.default)
        return values.output_or(names.task(source.task), source.key, default)
    return values.output_parameter(names.task(source.task), source.key)


def may_be_absent(declared: Parameter) -> bool:
    """Whether an input may have no value at all."""
    return declared.optional and declared.default in (MISSING, None)


def _final_status(producer: str) -> Value:
    name = names.task(producer)
    text = json.dumps({"state": values.tag(f"tasks.{name}.status"), "pipelineTaskName": producer})
    code = f'toJson({{"state": tasks[{values.quoted(name)}].status, "pipelineTaskName": {values.quoted(producer)} }})'
    return Value(code, text)


def _at_exit(producer: str) -> Value:
    """The status for the exit task, which Argo runs last: it has the failures of the whole run only."""
    failures = f"sprig.replace({values.quoted('{{')}, {values.quoted('{ {')}, workflow.failures[0:{FAILURES}])"
    fields = {"state": "workflow.status", "failures": failures, "pipelineTaskName": values.quoted(producer)}
    return values.calculated("toJson({" + ", ".join(f'"{key}": {code}' for key, code in fields.items()) + " })")


def artifact(
    ctx: Context, owner: Component, task: Task, name: str, source: Source
) -> tuple[list[Object], list[Object]]:
    """The parameters and artifacts of one artifact argument: the artifact and its digest, or the places of a list."""
    callee = ctx.graph.component(task)
    declared = callee.inputs.artifacts.get(name)
    if declared is None:
        return [], []
    is_list = ctx.graph.is_list(owner, source)
    if is_list != declared.is_list:
        what = "a list of artifacts" if is_list else "a single artifact"
        raise ctx.refuse_task(f"{what} for {name}", task, source.line, hint="use dsl.Collected with a List input")
    if isinstance(source, FromInput):
        outer = owner.inputs.artifacts.get(source.name)
        if outer is None:
            raise ctx.graph.dangling(f"the input {source.name}", task)
        sha, at = values.input_parameter(f"sha-{source.name}"), values.input_parameter(f"at-{source.name}")
        reference, optional = values.tag(f"inputs.artifacts.{source.name}"), outer.optional
    elif isinstance(source, FromTask):
        producer = ctx.graph.task(owner, source.task, task)
        ctx.graph.output_artifact(producer, source.key)
        node, optional = names.task(source.task), task.strategy == REGARDLESS
        get: Any = (lambda n, k: values.output_or(n, k, "")) if optional else values.output_parameter
        sha, at = get(node, f"sha-{source.key}"), get(node, f"at-{source.key}")
        reference = values.tag(f"tasks.{node}.outputs.artifacts.{source.key}")
    else:
        raise ctx.graph.dangling(f"a source for the artifact {name}", task)
    digest = {"name": f"sha-{name}", "value": sha.text}
    if is_list:
        return [{"name": f"at-{name}", "value": at.text}, digest], []
    entry: Object = {"name": name, "from": reference}
    if optional:
        entry["optional"] = True
    return [digest], [entry]


def reference(ctx: Context, owner: Component, task: Task, spec: dict[str, Any]) -> Source:
    """kfp's InputParameterSpec of a kubernetes setting as a source in `owner`'s DAG.

    It refers to names of the outermost pipeline; inside a loop or condition they arrive as inputs.
    """
    line = task.line
    if "taskOutputParameter" in spec:
        output = spec["taskOutputParameter"]
        producer, key = output.get("producerTask", ""), output.get("outputParameterKey", "")
        inner = f"{CHANNEL}{producer}-{key}"
        if owner.dag and producer not in owner.dag.tasks and inner in owner.inputs.parameters:
            return FromInput(inner, line=line)
        return FromTask(producer, key, line=line)
    if "componentInputParameter" in spec:
        name = spec["componentInputParameter"]
        for candidate in (name, f"{CHANNEL}{name}"):
            if candidate in owner.inputs.parameters:
                return FromInput(candidate, line=line)
        for candidate in (name, f"{CHANNEL}{name}"):
            if candidate in task.parameters:
                return task.parameters[candidate]
        return FromInput(name, line=line)
    value = spec.get("runtimeValue", {})
    if "constant" in value:
        return Constant(value["constant"], line=line)
    raise ctx.graph.dangling("a setting without a value", task)
