"""Runs a pipeline's tasks in their order: conditions, loops, collected outputs, exit handlers, retries.

kfp's own local orchestrator guesses in loops (it replaces any other step's value in a loop by the loop's item)
and lets iterations share folders, so the order is ours, and only single steps run through kfp's code.
"""

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from trainyard.errors import UsageError
from trainyard.pipelines.ir.model import (
    MISSING,
    REGARDLESS,
    Component,
    Constant,
    Dag,
    FinalStatus,
    FromInput,
    FromTask,
    Loop,
    Pipeline,
    Retry,
    Source,
    Task,
)
from trainyard.policy import cel

SUCCEEDED, FAILED, SKIPPED = "SUCCEEDED", "FAILED", "SKIPPED"
KEY = re.compile(r"\[\"([^\"]+)\"\]|\['([^']+)'\]")
PARALLEL = 2  # iterations at a time if the pipeline sets no limit
Values = dict[str, Any]
Step = Callable[[str, Component, Values], Values | None]


@dataclass
class Ended:
    """The end of a task: its outputs, and its error."""

    state: str
    outputs: Values = field(default_factory=dict)
    why: str = ""


class Graph:
    """One run. `step` runs a component's program by (name, component, inputs); None means that it failed."""

    def __init__(self, pipeline: Pipeline, step: Step) -> None:
        self._pipeline, self._step = pipeline, step
        self.failed = False

    def run(self, arguments: Values) -> Values:
        """Runs all tasks; returns the pipeline's outputs. `failed` tells whether any task failed."""
        root = self._pipeline.root
        if root.dag is None:  # a single compiled component
            return self._program(root.name, root, arguments, None).outputs
        return self._dag(root.dag, arguments, "").outputs

    def _dag(self, dag: Dag, inputs: Values, prefix: str) -> Ended:
        done: dict[str, Ended] = {}
        for name in _order(dag):
            done[name] = self._task(dag.tasks[name], inputs, done, prefix)
        failed = [name for name, ended in done.items() if ended.state == FAILED]
        if failed:
            return Ended(FAILED, why=f"task {failed[0]} failed")
        outputs: Values = {}
        for name, output in {**dag.parameters, **dag.artifacts}.items():
            found = [done[at.task].outputs[at.key] for at in output.places if at.key in done[at.task].outputs]
            if output.oneof and not found:
                return Ended(SKIPPED)
            if found:
                outputs[name] = found[0] if len(output.places) == 1 or output.oneof else found
        return Ended(SUCCEEDED, outputs)

    def _task(self, task: Task, inputs: Values, done: dict[str, Ended], prefix: str) -> Ended:
        upstream = [done[name] for name in task.needs if name in done]
        if task.strategy != REGARDLESS:
            if self.failed or any(ended.state == FAILED for ended in upstream):
                return Ended(SKIPPED)
            if any(ended.state == SKIPPED for ended in upstream):
                return Ended(SKIPPED)
        component = self._pipeline.component(task)
        if component is None:
            what = f"task {task.name} names the component {task.component}, which does not exist"
            raise UsageError(what, where=self._pipeline.where(task.line))
        values = self._values(task, component, inputs, done)
        if task.condition and not self._holds(task, values):
            return Ended(SKIPPED)
        title = f"{prefix}{task.name}"
        if task.loop:
            ended = self._loop(task, task.loop, component, values, title)
        else:
            ended = self._once(task, component, values, title)
        if ended.state == FAILED:
            self.failed = True
        return ended

    def _once(self, task: Task, component: Component, values: Values, title: str) -> Ended:
        if component.dag is not None:
            return self._dag(component.dag, {**_defaults(component), **values}, f"{title}/")
        return self._program(title, component, values, task)

    def _program(self, title: str, component: Component, values: Values, task: Task | None) -> Ended:
        retry = (task and task.retry) or Retry(0)
        wait = retry.backoff
        for left in range(retry.count, -1, -1):
            outputs = self._step(title, component, values)
            if outputs is not None:
                return Ended(SUCCEEDED, outputs)
            if left:
                time.sleep(wait)
                wait = min(wait * (retry.factor or 2), retry.longest or 3600)
        return Ended(FAILED, why=f"task {title} failed")

    def _loop(self, task: Task, loop: Loop, component: Component, values: Values, title: str) -> Ended:
        items = loop.raw if loop.raw is not None else values.get(loop.input)
        items = json.loads(items) if isinstance(items, str) else items
        if not isinstance(items, list):
            what = f"the loop {task.name} goes over {items!r}, which is not a list"
            raise UsageError(what, where=self._pipeline.where(task.line))
        own = [({**values, loop.item: item}, f"{title}.{number}") for number, item in enumerate(items)]
        with ThreadPoolExecutor(max(1, min(loop.limit or PARALLEL, PARALLEL, len(own) or 1))) as pool:
            ended = list(pool.map(lambda one: self._once(task, component, *one), own))
        if any(one.state == FAILED for one in ended):
            return Ended(FAILED, why=f"an iteration of {task.name} failed")
        names = [*component.outputs.parameters, *component.outputs.artifacts]
        return Ended(SUCCEEDED, {name: [o.outputs[name] for o in ended if name in o.outputs] for name in names})

    def _values(self, task: Task, component: Component, inputs: Values, done: dict[str, Ended]) -> Values:
        found = {}
        for name, source in {**task.parameters, **task.artifacts}.items():
            value = self._value(source, inputs, done)
            if value is not MISSING:
                found[name] = value
        return found

    def _value(self, source: Source, inputs: Values, done: dict[str, Ended]) -> Any:
        if isinstance(source, Constant):
            return _select(source.value, source.selector)
        if isinstance(source, FromInput):
            return _select(inputs[source.name], source.selector) if source.name in inputs else MISSING
        if isinstance(source, FromTask):
            outputs = done[source.task].outputs if source.task in done else {}
            return _select(outputs[source.key], source.selector) if source.key in outputs else MISSING
        return _status(source, done)

    def _holds(self, task: Task, values: Values) -> bool:
        try:
            return bool(cel.compile(task.condition)({"inputs": {"parameter_values": values}}))
        except cel.CelError as error:
            what = f"the condition {task.condition} of {task.name} can't be judged: {error}"
            raise UsageError(what, where=self._pipeline.where(task.line)) from None


def _order(dag: Dag) -> list[str]:
    """Tasks sorted after their dependencies. Raises UsageError for a cycle."""
    order: list[str] = []
    waiting = dict.fromkeys(dag.tasks)
    while waiting:
        ready = [name for name in waiting if not (set(dag.tasks[name].needs) & set(waiting)) - {name}]
        if not ready:
            raise UsageError(f"the tasks {', '.join(waiting)} wait for each other")
        order.append(ready[0])
        del waiting[ready[0]]
    return order


def _defaults(component: Component) -> Values:
    known = component.inputs.parameters
    return {name: one.default for name, one in known.items() if one.default is not MISSING and one.default is not None}


def _select(value: Any, selector: str) -> Any:
    """The result of kfp's `parseJson(string_value)["a"]` on a value that is JSON or already parsed."""
    for match in KEY.finditer(selector):
        value = json.loads(value) if isinstance(value, str) else value
        value = value[match[1] or match[2]]
    return value


def _status(source: FinalStatus, done: dict[str, Ended]) -> Values:
    ended = done.get(source.task, Ended(SUCCEEDED))
    error = {"code": 1, "message": ended.why} if ended.state == FAILED else {}
    return {
        "state": ended.state,
        "pipelineJobResourceName": "local",
        "pipelineTaskName": source.task,
        "error": error,
        "pipeline_job_resource_name": "local",
        "pipeline_task_name": source.task,
    }
