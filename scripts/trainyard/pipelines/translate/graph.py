"""Facts about a whole pipeline that are needed before single templates are made."""

import json

from trainyard.pipelines.ir.model import (
    REGARDLESS,
    ROOT,
    Artifact,
    Component,
    Constant,
    FromInput,
    FromTask,
    Pipeline,
    Source,
    Task,
)
from trainyard.pipelines.translate.errors import Unsupported

GUARDED = "exit-handler-"  # kfp's prefix of names of tasks in an ExitHandler


class Graph:
    """Looks up parts of a pipeline, and refuses dangling references, so that no other code has to."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.places: set[tuple[str, str]] = set()
        self.exit = _exit_task(pipeline)
        self._used: dict[str, set[str]] = {}
        for component in [pipeline.root, *pipeline.components.values()]:
            for task in component.dag.tasks.values() if component.dag else ():
                inner = self.component(task)
                if task.loop:
                    for name in inner.outputs.artifacts:
                        self._locate(inner, name)

    def component(self, task: Task) -> Component:
        """The component that `task` runs."""
        found = self.pipeline.component(task)
        if found is None:
            raise self.dangling(f"the component {task.component or '(none)'}", task)
        return found

    def task(self, owner: Component, name: str, user: Task | None = None) -> Task:
        """A task of `owner`'s DAG."""
        tasks = owner.dag.tasks if owner.dag else {}
        if name not in tasks:
            raise self.dangling(f"the task {name or '(none)'}", user or owner)
        return tasks[name]

    def dangling(self, what: str, user: Task | Component) -> Unsupported:
        """The error for a reference to something that doesn't exist."""
        return Unsupported(
            what, user=user.name, where=self.pipeline.where(user.line), reason="which does not exist", hint="correct it"
        )

    def located(self, component: Component, artifact: str) -> bool:
        """Whether this output's place in the store is needed, because a loop collects it."""
        return (component.name, artifact) in self.places

    def output_artifact(self, task: Task, key: str) -> Artifact:
        """An output artifact of the task's component."""
        found = self.component(task).outputs.artifacts.get(key)
        if found is None:
            raise self.dangling(f"the output artifact {key} of {task.name}", task)
        return found

    def is_list(self, owner: Component, source: Source) -> bool:
        """Whether an artifact source is a list: a loop's output, or one passed on."""
        if isinstance(source, FromTask):
            task = self.task(owner, source.task)
            return self.gives_list(task, source.key)
        if isinstance(source, FromInput) and source.name in owner.inputs.artifacts:
            return owner.inputs.artifacts[source.name].is_list
        return False

    def gives_list(self, task: Task, key: str) -> bool:
        """Whether an output artifact is a list. A loop's body already declares the collected type, so the output is
        followed to its producer."""
        component = self.component(task)
        declared = self.output_artifact(task, key)
        if task.loop:
            return True
        if component.dag is None or key not in component.dag.artifacts:
            return declared.is_list
        return any(self.gives_list(self.task(component, p.task), p.key) for p in component.dag.artifacts[key].places)

    def is_text(self, task: Task, key: str) -> bool:
        """Whether an output parameter is plain text, not JSON."""
        component = self.component(task)
        declared = component.outputs.parameters.get(key)
        if declared is None:
            raise self.dangling(f"the output {key} of {task.name}", task)
        if task.loop:
            return False
        if component.dag is None or key not in component.dag.parameters:
            return declared.type == "STRING"
        return any(self.is_text(self.task(component, p.task), p.key) for p in component.dag.parameters[key].places)

    def used(self, component: Component) -> set[str]:
        """The inputs that the component uses. kfp passes whole lists into every iteration, and the run's status keeps
        each node's inputs; so unused ones are left out."""
        if component.dag is None or component.name == ROOT:
            return {*component.inputs.parameters, *component.inputs.artifacts}
        if component.name in self._used:
            return self._used[component.name]
        found = self._used[component.name] = set()
        for task in component.dag.tasks.values():
            inner = self.pipeline.component(task)
            wanted = self.used(inner) if inner else set()
            own = json.dumps([inner.executor.kubernetes, inner.executor.resources]) if inner and inner.executor else ""
            spoken = " ".join(str(one.value) for one in task.parameters.values() if isinstance(one, Constant))
            for name, source in [*task.parameters.items(), *task.artifacts.items()]:
                read = name in wanted or (task.loop is not None and name == task.loop.input)
                if isinstance(source, FromInput) and (read or f"'{name}'" in task.condition or f"'{name}'" in spoken):
                    found.add(source.name)
            if any(mark in own for mark in ("componentInputParameter", "taskOutputParameter", "{{$")):
                found |= set(component.inputs.parameters)  # settings may use any of them
        return found

    def _locate(self, component: Component, artifact: str) -> None:
        if (component.name, artifact) in self.places:
            return
        self.places.add((component.name, artifact))
        if component.dag and artifact in component.dag.artifacts:
            for place in component.dag.artifacts[artifact].places:
                task = component.dag.tasks.get(place.task)
                inner = self.pipeline.component(task) if task else None
                if inner:
                    self._locate(inner, place.key)


def _exit_task(pipeline: Pipeline) -> Task | None:
    """The exit task of an ExitHandler around the whole pipeline: Argo runs it last, and passes it the failures."""
    root = pipeline.root
    tasks = list(root.dag.tasks.values()) if root.dag else []
    if len(tasks) != 2 or root.inputs.artifacts:
        return None
    outputs = [*root.dag.parameters.values(), *root.dag.artifacts.values()] if root.dag else []
    for guarded, last in (tasks, tasks[::-1]):
        component = pipeline.component(last)
        sources = [*last.parameters.values(), *last.artifacts.values()]
        if (
            guarded.name.startswith(GUARDED)
            and last.strategy == REGARDLESS
            and last.needs == [guarded.name]
            and not (last.condition or last.loop)
            and component is not None
            and component.executor is not None
            and component.executor.kind == "container"
            and not any(isinstance(source, FromTask) for source in sources)
            and not any(place.task == last.name for output in outputs for place in output.places)
        ):
            return last
    return None
