"""Training steps of kfp pipelines: checks the job that such a step would create, as far as its settings are known."""

import re
from collections.abc import Callable
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import check as schema
from trainyard.pipelines.ir.model import Component, Constant, FromInput, Parameter, Pipeline, Source
from trainyard.pipelines.steps.request import launched
from trainyard.policy.lint import settings
from trainyard.policy.lint.report import Report
from trainyard.yaml_lines import Document

STARTS = re.compile(r"""\bsteps\.train\(\s*["'](\w+)["']""")
NOT_SETTINGS = ("command", "env", "mounts", "name", "results")  # their placeholders are only known in the step
Where = Callable[[int, tuple[str, ...], bool], int]


def check(pipeline: Pipeline, report: Report, where: Where) -> None:
    """Report what the platform would reject in each training step's job."""
    for place in pipeline.tasks():
        task, component = place.task, pipeline.component(place.task)
        framework = _framework(component) if component else None
        if component is None or framework is None:
            continue
        known = {
            name: value
            for name, declared in component.inputs.parameters.items()
            if (value := value_of(pipeline, place.owner, task.parameters.get(name), declared)) not in (None, "", 0)
        }
        camel = {re.sub(r"_(\w)", lambda letter: letter[1].upper(), name): name for name in known}
        values = {key: known[name] for key, name in camel.items()
                  if name not in NOT_SETTINGS and key in schema.schema()["properties"]}  # fmt: skip

        def line(setting: str, task: Any = task) -> int:
            source = task.parameters.get(re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", setting))
            return where(source.line if source else task.line, (task.name, task.component), True)

        command = known.get("command")
        if isinstance(command, list) and all(isinstance(word, str) and "{{" not in word for word in command):
            try:
                made, _ = launched({**values, "command": command}, framework)
            except UsageError as error:
                report.add("TY104", line("command"), error.what, error.hint, task=task.name, at="command")
                continue
            values = {key: value for key, value in made.items() if key not in NOT_SETTINGS}
        broken = schema.found(Document(values, {(): 1}))
        for path, what, hint in broken:
            report.add("TY104", line(str(path[0]) if path else ""), what, hint, task=task.name, at=path)
        if not broken:
            settings.judge({**values, "framework": framework}, line, report, task.name)


def _framework(component: Component) -> str | None:
    """The framework that the component trains with; None if it is no training step."""
    if component.executor is None:
        return None
    found = STARTS.search("\n".join((*component.executor.command, *component.executor.args)))
    return found[1] if found else None


def value_of(pipeline: Pipeline, owner: Component, source: Source | None, declared: Parameter) -> Any:
    """The value before the run; None if the run produces it."""
    if source is None:
        return declared.default or None
    if isinstance(source, Constant):
        return source.value
    if isinstance(source, FromInput) and owner is pipeline.root and not source.selector:
        given = pipeline.inputs.parameters.get(source.name)
        return pipeline.arguments.get(source.name, given.default if given else None) or None
    return None
