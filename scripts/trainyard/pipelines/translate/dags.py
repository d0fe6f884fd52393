"""Components that are DAGs: tasks with their order and arguments, and outputs."""

from functools import partial

from trainyard.pipelines.ir.model import REGARDLESS, Component, FromInput, FromTask, Retry, Task
from trainyard.pipelines.translate import (
    conditions,
    interfaces,
    loops,
    names,
    outputs,
    sources,
    step_parts,
    steps,
    values,
)
from trainyard.pipelines.translate.context import Context, Object, carried
from trainyard.pipelines.translate.errors import Unsupported


def template(ctx: Context, component: Component, *, retry: Retry | None = None, looped: bool = False) -> str:
    """The template of a DAG component. `looped`: its outputs are lists of one, which the loop around it collects."""
    key = ["dag", component.name, retry, looped]
    name, _ = ctx.template(key, component.name, lambda: (_body(ctx, component, retry, looped), None))
    return name


def _body(ctx: Context, component: Component, retry: Retry | None, looped: bool) -> Object:
    if component.dag is None:
        raise Unsupported(
            "a ParallelFor over a single step",
            user=component.name,
            where=ctx.where(component.line),
            hint="put the step into a loop's body as kfp's ParallelFor does",
        )
    found: Object = {}
    if interface := interfaces.inputs(component, ctx.graph.used(component)):
        found["inputs"] = interface
    tasks = {name: task for name, task in component.dag.tasks.items() if task is not ctx.graph.exit}
    dag: Object = {"tasks": [_task(ctx, component, task) for task in tasks.values()]}
    if any(task.strategy == REGARDLESS for task in tasks.values()):
        # Argo judges a DAG by its last tasks alone: a failed task whose successor ran anyway would not count.
        dag["target"] = " ".join(names.task(name) for name in tasks)
        dag["failFast"] = False
    found["dag"] = dag
    if given := outputs.of_dag(ctx, component, looped):
        found["outputs"] = given
    if retry:
        found["retryStrategy"] = step_parts.retry_strategy(retry)
    return found


def at_exit(ctx: Context) -> str:
    """The template that Argo runs at the end of the run; empty if the pipeline has no exit task.

    A list of steps instead of a graph: when a run is stopped, Argo fails graphs at once, even those of its exit.
    """
    root, task = ctx.pipeline.root, ctx.graph.exit
    if task is None:
        return ""
    taken = interfaces.inputs(root, ctx.graph.used(root))

    def body() -> tuple[Object, None]:
        return {**({"inputs": taken} if taken else {}), "steps": [[_task(ctx, root, task)]]}, None

    return ctx.template(["exit", task.name], "at-exit", body)[0]


def _task(ctx: Context, owner: Component, task: Task) -> Object:
    component = ctx.graph.component(task)
    found: Object = {"name": names.task(task.name)}
    extra: list[Object] = []
    before: list[str] = []
    if task.loop:
        found["template"] = loops.template(ctx, task, component, partial(template, ctx, component, looped=True))
    elif component.dag is not None:
        found["template"] = template(ctx, component, retry=task.retry)
    else:
        found["template"], extra, before = steps.template(ctx, owner, task, component)
    earlier = () if task is ctx.graph.exit else dict.fromkeys([*task.needs, *before])
    if order := [_done(ctx, owner, task, name) for name in earlier]:
        found["depends"] = " && ".join(order)
    if task.condition:
        found["when"] = "{{=" + _condition(ctx, owner, task, component) + "}}"
    if arguments := _arguments(ctx, owner, task, component, extra):
        found["arguments"] = arguments
    return found


def _done(ctx: Context, owner: Component, task: Task, producer: str) -> str:
    ctx.graph.task(owner, producer, task)
    name = names.task(producer)
    if task.strategy == REGARDLESS:
        ends = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted")
        return "(" + " || ".join(f"{name}.{end}" for end in ends) + ")"
    return f"{name}.Succeeded"


def _condition(ctx: Context, owner: Component, task: Task, component: Component) -> str:
    def value(name: str) -> values.Value:
        if name not in task.parameters:
            raise ctx.graph.dangling(f"the input {name}", task)
        return sources.parameter(ctx, owner, task, task.parameters[name])

    def kind(name: str) -> str:
        declared = component.inputs.parameters.get(name)
        return declared.type if declared else "STRING"

    try:
        return conditions.code(task.condition, value, kind)
    except conditions.UnknownConditionError as error:
        reason, hint = f"not understood from `{error}` on", "compute it in a step and compare its output"
        raise ctx.refuse_task(f"the condition {task.condition}", task, task.line, hint=hint, reason=reason) from None


def _arguments(ctx: Context, owner: Component, task: Task, component: Component, extra: list[Object]) -> Object:
    parameters: list[Object] = []
    artifacts: list[Object] = []
    wanted = ctx.graph.used(component) | ({task.loop.input} if task.loop else set())
    for name, source in task.parameters.items():
        if name not in wanted or (task.loop and name == task.loop.item):
            continue
        value = sources.parameter(ctx, owner, task, source, component.inputs.parameters.get(name))
        parameters.append({"name": name, "value": value.text})
    for name, source in task.artifacts.items():
        if task.loop and task.loop.artifacts and name == task.loop.input:
            parameters += _loop_artifacts(ctx, owner, task, name)
            continue
        if name not in wanted or (task.loop and name == task.loop.item):
            continue
        more, own = sources.artifact(ctx, owner, task, name, source)
        parameters += more
        artifacts += own
    _refuse_missing(ctx, task, component)
    return carried(parameters + extra, artifacts)


def _loop_artifacts(ctx: Context, owner: Component, task: Task, name: str) -> list[Object]:
    """The list that a loop iterates over, whatever the loop's body declares under that name."""
    source = task.artifacts[name]
    if not ctx.graph.is_list(owner, source):
        raise ctx.graph.dangling(f"a list of artifacts for {name}", task)
    kinds = ("at", "sha")
    if isinstance(source, FromTask):
        found = [values.output_parameter(names.task(source.task), f"{kind}-{source.key}") for kind in kinds]
    else:
        assert isinstance(source, FromInput)
        found = [values.input_parameter(f"{kind}-{source.name}") for kind in kinds]
    return [{"name": f"{kind}-{name}", "value": value.text} for kind, value in zip(kinds, found, strict=True)]


def _refuse_missing(ctx: Context, task: Task, component: Component) -> None:
    given = {*task.parameters, *task.artifacts}
    if task.loop:
        given.add(task.loop.item)
    for name in component.inputs.needed:
        if name not in given and component.executor_label:
            raise ctx.graph.dangling(f"an argument for {name}", task)
