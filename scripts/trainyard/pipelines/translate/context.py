"""State shared by all parts of one translation."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trainyard.pipelines.ir.model import ROOT, Component, Constant, FromInput, Pipeline, Source, Task
from trainyard.pipelines.translate import names
from trainyard.pipelines.translate.errors import Unsupported
from trainyard.pipelines.translate.graph import Graph
from trainyard.pipelines.translate.settings import Settings

Object = dict[str, Any]


class UnknownAtSubmitError(Exception):
    """A value that only exists while the pipeline runs."""


@dataclass
class Context:
    """The state of one translation: the pipeline, its arguments, and the templates made so far."""

    pipeline: Pipeline
    arguments: dict[str, Any]
    settings: Settings
    graph: Graph = field(init=False)
    templates: list[Object] = field(default_factory=list)
    pull_secrets: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    _unique: names.Unique = field(default_factory=names.Unique)
    _extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = Graph(self.pipeline)

    def template(self, key: Any, name: str, build: Callable[[], tuple[Object, Any]]) -> tuple[str, Any]:
        """The template of `key`, made once: its name, and the extra value that `build` returned."""
        known = digest(key)
        if known not in self._names:
            self._names[known] = given = self._unique(names.template(name))
            at = len(self.templates)
            body, extra = build()
            self.templates.insert(at, {"name": given, **body})
            self._extra[known] = extra
        return self._names[known], self._extra[known]

    def where(self, line: int) -> str:
        return self.pipeline.where(line)

    def refuse(self, feature: str, component: Component, *, hint: str = "", reason: str = "") -> Unsupported:
        """A refusal that names the component and its executor's line."""
        line = component.executor.line if component.executor else component.line
        user = component.name.removeprefix("comp-")
        return Unsupported(feature, user=user, where=self.where(line), hint=hint, reason=reason)

    def refuse_task(self, feature: str, task: Task, line: int, *, hint: str, reason: str = "") -> Unsupported:
        """A refusal that names the task, and a line."""
        return Unsupported(feature, user=task.name, where=self.where(line), hint=hint, reason=reason)

    def known(self, owner: Component, source: Source, seen: tuple[str, ...] = ()) -> Any:
        """The value of a source that is known before the run: a constant, or an argument passed down to it.

        Raises:
            UnknownAtSubmitError: it is a task's output, a loop's item, or differs between its uses.
        """
        if isinstance(source, Constant) and not (isinstance(source.value, str) and "{{$" in source.value):
            return source.value
        if not isinstance(source, FromInput) or source.selector or owner.name in seen:
            raise UnknownAtSubmitError
        declared = owner.inputs.parameters.get(source.name)
        if owner.name == ROOT:
            if source.name in self.arguments:
                return self.arguments[source.name]
            if declared is None or declared.required:
                raise UnknownAtSubmitError
            return declared.default if not declared.optional or declared.default else None
        found = []
        for caller in [self.pipeline.root, *self.pipeline.components.values()]:
            for task in caller.dag.tasks.values() if caller.dag else ():
                if task.component != owner.name:
                    continue
                if task.loop and task.loop.item == source.name:
                    raise UnknownAtSubmitError
                if source.name in task.parameters:
                    found.append(self.known(caller, task.parameters[source.name], (*seen, owner.name)))
                elif declared is not None and not declared.required:
                    found.append(declared.default)
        if not found or any(one != found[0] for one in found):
            raise UnknownAtSubmitError
        return found[0]


def carried(parameters: list[Object], artifacts: list[Object]) -> Object:
    """Inputs or outputs of a template or task in Argo's form, without empty lists."""
    return {**({"parameters": parameters} if parameters else {}), **({"artifacts": artifacts} if artifacts else {})}


def digest(value: Any) -> str:
    """A short digest of a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]
