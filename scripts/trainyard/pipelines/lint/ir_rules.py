"""Consistency of a kfp pipeline: mistakes that kfp's schema accepts and that make a run impossible."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trainyard.pipelines.ir.arguments import TYPES
from trainyard.pipelines.ir.model import (
    CHANNEL,
    Artifact,
    Component,
    Constant,
    Dag,
    FinalStatus,
    FromInput,
    FromTask,
    Parameter,
    Pipeline,
    Source,
    Task,
)
from trainyard.policy.lint import graph

LARGEST = 128 * 1024  # bytes of an environment variable
NOTHING = "none"
ANY_ARTIFACT = "system.Artifact"
YAML_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"))
CONDITION = re.compile(r"inputs\.(?:parameter_values|parameters|artifacts)\[['\"]([^'\"]+)['\"]\]")
WORDS = {
    "STRING": "a text",
    "NUMBER_INTEGER": "a whole number",
    "NUMBER_DOUBLE": "a number",
    "BOOLEAN": "true or false",
    "LIST": "a list",
    "STRUCT": "a map",
}


@dataclass(frozen=True)
class Issue:
    """A finding; `names` are the task and component to search for in a Python file."""

    code: str
    line: int
    reason: str
    hint: str
    task: str = ""
    field: str = ""
    names: tuple[str, ...] = ()


Rule = Callable[[Pipeline], Iterator[Issue]]


def _of(task: Task, code: str, what: str, hint: str, field: str, line: int | None = None) -> Issue:
    """A finding about a task, at the task's line or another one."""
    return Issue(code, task.line if line is None else line, what, hint, task.name, field, (task.name,))


def _dags(pipeline: Pipeline) -> Iterator[tuple[Component, Dag]]:
    """Every component with tasks in it, used or not."""
    for component in (pipeline.root, *pipeline.components.values()):
        if component.dag is not None:
            yield component, component.dag


def _tasks(pipeline: Pipeline) -> Iterator[tuple[Component, Dag, Task]]:
    for owner, dag in _dags(pipeline):
        for task in dag.tasks.values():
            yield owner, dag, task


def _known(names: Any) -> str:
    return ", ".join(sorted(names)) or NOTHING


def references(pipeline: Pipeline) -> Iterator[Issue]:
    """Components and executors that are missing, and those that are unused."""
    used = {task.component for _, _, task in _tasks(pipeline)}
    for _, _, task in _tasks(pipeline):
        if pipeline.component(task) is None:
            what = f"task {task.name} runs the component {task.component or '(none)'}, which does not exist"
            yield _of(task, "TY201", what, f"components: {_known(pipeline.components)}", "componentRef")
    for name, component in pipeline.components.items():
        if component.dag is None and component.executor is None:
            label = component.executor_label
            runs = f"has the executor {label}, which does not exist" if label else "runs nothing"
            hint = f"executors: {_known(pipeline.executors)}"
            yield Issue("TY202", component.line, f"component {name} {runs}", hint, "", "executorLabel", (name,))
        if name not in used and used <= pipeline.components.keys():
            yield Issue("TY210", component.line, f"component {name} is used by no task", "remove it", names=(name,))


def order(pipeline: Pipeline) -> Iterator[Issue]:
    """Missing dependencies of tasks, and cycles."""
    for _, dag in _dags(pipeline):
        edges: dict[str, set[str]] = {}
        for task in dag.tasks.values():
            for other in task.depends:
                if other not in dag.tasks:
                    what = f"task {task.name} waits for {other}, which does not exist"
                    hint = f"tasks beside it: {_known(dag.tasks.keys() - {task.name})}"
                    yield _of(task, "TY203", what, hint, "dependentTasks")
            edges[task.name] = set(task.needs) & dag.tasks.keys()
        if circle := graph.circle(edges):
            first = dag.tasks[circle[0]]
            what = f"tasks wait for each other: {' → '.join(circle)}"
            yield Issue("TY208", first.line, what, "remove one of these dependencies", first.name, names=(first.name,))


def arguments(pipeline: Pipeline) -> Iterator[Issue]:
    """Arguments: whether their source exists, the component accepts them, types fit, and none is missing."""
    for owner, dag, task in _tasks(pipeline):
        component = pipeline.component(task)
        for kind, given in (("parameter", task.parameters), ("artifact", task.artifacts)):
            for name, source in given.items():
                made, said = _source(pipeline, owner, dag, task, name, source, kind)
                if said:
                    yield said
                    continue
                if component is None:
                    continue
                takes = component.inputs.parameters if kind == "parameter" else component.inputs.artifacts
                if name not in takes and name.startswith(CHANNEL):
                    continue  # part of a text that the component accepts under another name
                if name not in takes:
                    what = f"task {task.name} is given {name}, which {component.name} does not take"
                    hint = f"it takes: {_known([*component.inputs.parameters, *component.inputs.artifacts])}"
                    yield _of(task, "TY207", what, hint, name, source.line)
                elif reason := _unfit(takes[name], source, made):
                    what = f"argument {name} of task {task.name} {reason}"
                    yield _of(task, "TY209", what, "give one of its type", name, source.line)
        if component is not None:
            yield from _missing(task, component)


def _missing(task: Task, component: Component) -> Iterator[Issue]:
    from_loop = {task.loop.item} if task.loop else set()
    for name in component.inputs.needed:
        if name not in task.parameters and name not in task.artifacts and name not in from_loop:
            what = f"task {task.name} gives no {name}, which {component.name} needs"
            yield _of(task, "TY206", what, "pass it, or give the component a default", name)
    if task.loop and task.loop.raw is None and task.loop.input not in {*task.parameters, *task.artifacts}:
        what = f"the loop of task {task.name} goes over {task.loop.input or '(nothing)'}, which it is not given"
        yield _of(task, "TY205", what, "pass the list to the task", "iterator")


def _source(
    pipeline: Pipeline, owner: Component, dag: Dag, task: Task, name: str, source: Source, kind: str
) -> tuple[Parameter | Artifact | None, Issue | None]:
    """The source of an argument, or the issue with it."""
    if isinstance(source, FromInput):
        has = owner.inputs.parameters if kind == "parameter" else owner.inputs.artifacts
        if source.name in has:
            return has[source.name], None
        around = "the pipeline" if owner is pipeline.root else owner.name
        what = f"argument {name} of task {task.name} comes from the input {source.name}, which {around} does not have"
        return None, _of(task, "TY205", what, f"inputs: {_known(has)}", name, source.line)
    if isinstance(source, FinalStatus):
        if source.task in dag.tasks:
            return None, None
        what = f"argument {name} of task {task.name} is the end of {source.task}, which does not exist"
        return None, _of(task, "TY204", what, f"tasks: {_known(dag.tasks)}", name, source.line)
    if isinstance(source, FromTask):
        made, reason, hint = _made(pipeline, dag, source, kind)
        if not reason:
            return made, None
        what = f"argument {name} of task {task.name} comes from {reason}"
        return None, _of(task, "TY204", what, hint, name, source.line)
    return None, None


def _made(pipeline: Pipeline, dag: Dag, source: FromTask, kind: str) -> tuple[Any, str, str]:
    """An output of a task: (output, "", ""), or (None, the problem, hint)."""
    if source.task not in dag.tasks:
        return None, f"task {source.task}, which does not exist", f"tasks: {_known(dag.tasks)}"
    component = pipeline.component(dag.tasks[source.task])
    if component is None:
        return None, "", ""  # reported at that task
    has = component.outputs.parameters if kind == "parameter" else component.outputs.artifacts
    if source.key not in has:
        return None, f"output {source.key} of {source.task}, which does not exist", f"its outputs: {_known(has)}"
    return has[source.key], "", ""


def _unfit(wanted: Parameter | Artifact, source: Source, made: Parameter | Artifact | None) -> str:
    """The reason why the argument does not fit; "" if it does or that is unknown."""
    if isinstance(wanted, Artifact):
        if isinstance(made, Artifact) and ANY_ARTIFACT not in (wanted.type, made.type) and wanted.type != made.type:
            return f"is a {made.type}, not a {wanted.type}"
        return ""
    if isinstance(source, Constant) and not source.selector:
        # Older compilers pass numbers to texts and texts of numbers to numbers, and KFP accepts both.
        kinds, value = None if wanted.type == "STRING" else TYPES.get(wanted.type, (None,))[0], source.value
        if kinds and isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = json.loads(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if (
            kinds
            and value is not None
            and not (isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)))
        ):
            if isinstance(value, str) and ("{{" in value or wanted.type in ("LIST", "STRUCT")):
                return ""  # an expression, or JSON as text
            return f"is {json.dumps(value, default=str)[:60]}, not {WORDS[wanted.type]}"
        if wanted.literals and value not in wanted.literals:
            return f"is {json.dumps(value, default=str)[:60]}, not one of {', '.join(map(str, wanted.literals))}"
        return ""
    if isinstance(made, Parameter) and not getattr(source, "selector", ""):
        numbers = ("NUMBER_INTEGER", "NUMBER_DOUBLE")
        fits = (
            made.type == wanted.type
            or (made.type, wanted.type) == numbers
            or not {made.type, wanted.type} <= TYPES.keys()
        )
        return "" if fits else f"is {WORDS[made.type]}, not {WORDS[wanted.type]}"
    return ""


def outputs(pipeline: Pipeline) -> Iterator[Issue]:
    """Outputs of the pipeline and of its parts that no task produces."""
    for owner, dag in _dags(pipeline):
        for kind, given in (("parameter", dag.parameters), ("artifact", dag.artifacts)):
            for output in given.values():
                for place in output.places:
                    _, reason, hint = _made(pipeline, dag, place, kind)
                    if reason:
                        around = "the pipeline" if owner is pipeline.root else owner.name
                        what = f"output {output.name} of {around} comes from {reason}"
                        yield Issue("TY211", place.line or output.line, what, hint, "", output.name, (owner.name,))


def conditions(pipeline: Pipeline) -> Iterator[Issue]:
    """Conditions on inputs that the task doesn't have."""
    for _, _, task in _tasks(pipeline):
        given = {*task.parameters, *task.artifacts} | ({task.loop.item} if task.loop else set())
        for name in dict.fromkeys(CONDITION.findall(task.condition)):
            if name not in given:
                what = f"the condition of task {task.name} asks for {name}, which it is not given"
                yield _of(task, "TY212", what, f"it has: {_known(given)}", "triggerPolicy.condition")


def values(pipeline: Pipeline) -> Iterator[Issue]:
    """Values that no environment variable can hold."""
    for _, _, task in _tasks(pipeline):
        for name, source in task.parameters.items():
            if isinstance(source, Constant) and (size := len(json.dumps(source.value, default=str))) > LARGEST:
                what = f"argument {name} of task {task.name} has {size // 1024} KiB, a step takes {LARGEST // 1024}"
                yield _of(task, "TY213", what, "pass it as an artifact", name, source.line)


def names(pipeline: Pipeline) -> Iterator[Issue]:
    """Names that YAML 1.1 parses as something else."""
    for component in (pipeline.root, *pipeline.components.values()):
        place = "pipeline" if component is pipeline.root else component.name
        for interface, kind in ((component.inputs, "input"), (component.outputs, "output")):
            declared: list[Parameter | Artifact] = [*interface.parameters.values(), *interface.artifacts.values()]
            for one in declared:
                if one.name.lower() in YAML_WORDS:
                    what = f"{kind} {one.name} of {place} has a name that YAML 1.1 takes for a truth value or nothing"
                    yield Issue("TY107", one.line, what, "give it a longer name", "", one.name, (component.name,))


RULES: tuple[Rule, ...] = (references, order, arguments, outputs, conditions, values, names)
