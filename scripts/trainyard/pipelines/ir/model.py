"""A kfp pipeline as typed data. The package's docstring explains how the parts fit together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ROOT = "root"
REGARDLESS = "ALL_UPSTREAM_TASKS_COMPLETED"  # strategy of a task that runs even if earlier tasks failed
CHANNEL = "pipelinechannel--"  # kfp's prefix for values that it passes into a component


class Missing:
    """Marks a missing default value; None is a valid default."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = Missing()


@dataclass(frozen=True)
class Parameter:
    """An input or output parameter; `type` is kfp's: STRING, NUMBER_INTEGER, NUMBER_DOUBLE, BOOLEAN, LIST, STRUCT, …"""

    name: str
    type: str
    default: Any = MISSING
    optional: bool = False
    literals: tuple[Any, ...] = ()
    line: int = 1

    @property
    def required(self) -> bool:
        return self.default is MISSING and not self.optional


@dataclass(frozen=True)
class Artifact:
    """An input or output artifact; `type` is its schema's title, such as system.Model."""

    name: str
    type: str
    is_list: bool = False
    optional: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    line: int = 1


@dataclass(frozen=True)
class Interface:
    """The parameters and artifacts that a component accepts or produces."""

    parameters: dict[str, Parameter] = field(default_factory=dict)
    artifacts: dict[str, Artifact] = field(default_factory=dict)

    @property
    def needed(self) -> list[str]:
        """Names of inputs that need a value."""
        needed = [one.name for one in self.parameters.values() if one.required]
        return needed + [one.name for one in self.artifacts.values() if not one.optional]


@dataclass(frozen=True)
class Constant:
    """A value written into the pipeline."""

    value: Any
    selector: str = ""
    line: int = 1


@dataclass(frozen=True)
class FromInput:
    """An input of the component around the task; `selector` is kfp's expression on it, such as
    parseJson(string_value)["a"]."""

    name: str
    selector: str = ""
    line: int = 1


@dataclass(frozen=True)
class FromTask:
    """An output of another task in the same DAG."""

    task: str
    key: str
    selector: str = ""
    line: int = 1


@dataclass(frozen=True)
class FinalStatus:
    """The final status of another task (dsl.PipelineTaskFinalStatus)."""

    task: str
    line: int = 1


Source = Constant | FromInput | FromTask | FinalStatus


@dataclass(frozen=True)
class Retry:
    """Retries after the first attempt; durations in seconds. `factor` multiplies the wait after each."""

    count: int
    backoff: float = 0
    factor: float = 0
    longest: float = 0


@dataclass(frozen=True)
class Loop:
    """A ParallelFor. Items are either `raw` (a list) or the task's own input of the name `input`.

    Each item becomes the component's input `item`. `artifacts`: the items are the artifacts of a list.
    """

    item: str
    raw: list[Any] | None = None
    input: str = ""
    artifacts: bool = False
    limit: int = 0


@dataclass(frozen=True)
class Task:
    """One task of a DAG. `strategy` is empty or kfp's, such as REGARDLESS."""

    name: str
    component: str
    parameters: dict[str, Source] = field(default_factory=dict)
    artifacts: dict[str, Source] = field(default_factory=dict)
    depends: tuple[str, ...] = ()
    condition: str = ""
    strategy: str = ""
    cache: bool = False
    cache_key: str = ""
    loop: Loop | None = None
    retry: Retry | None = None
    display_name: str = ""
    line: int = 1

    @property
    def needs(self) -> list[str]:
        """The tasks that must end before this one, in the pipeline's order."""
        found = list(self.depends)
        for source in [*self.parameters.values(), *self.artifacts.values()]:
            if isinstance(source, FromTask | FinalStatus) and source.task not in found:
                found.append(source.task)
        return found


@dataclass(frozen=True)
class Output:
    """The source of a DAG's output. More than one place means OneOf, or (artifacts in a loop) a collection."""

    name: str
    places: tuple[FromTask, ...]
    oneof: bool = False
    line: int = 1


@dataclass(frozen=True)
class Dag:
    tasks: dict[str, Task]
    parameters: dict[str, Output] = field(default_factory=dict)
    artifacts: dict[str, Output] = field(default_factory=dict)


@dataclass(frozen=True)
class Executor:
    """The program of a component. `raw` holds the executor's own fields: an importer's URI, type and metadata."""

    label: str
    kind: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    kubernetes: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    line: int = 1
    kubernetes_line: int = 0


@dataclass(frozen=True)
class Component:
    """A component: exactly one of `dag` and `executor`; neither when its executor's label dangles."""

    name: str
    inputs: Interface
    outputs: Interface
    dag: Dag | None = None
    executor_label: str = ""
    executor: Executor | None = None
    passthroughs: tuple[dict[str, Any], ...] = ()
    line: int = 1


@dataclass(frozen=True)
class Place:
    """A task and its location: the component whose DAG it belongs to, and the names on the path from the root."""

    task: Task
    owner: Component
    path: tuple[str, ...]

    def __str__(self) -> str:
        return "/".join(self.path)


@dataclass(frozen=True)
class Pipeline:
    """A whole pipeline. `spec` and `platform` are the checked documents, for a KFP server."""

    name: str
    root: Component
    components: dict[str, Component]
    executors: dict[str, Executor]
    config: dict[str, Any]
    spec: dict[str, Any]
    platform: dict[str, Any]
    file: str
    text: str
    display_name: str = ""
    description: str = ""
    sdk: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> Interface:
        return self.root.inputs

    @property
    def outputs(self) -> Interface:
        return self.root.outputs

    def component(self, task: Task) -> Component | None:
        """The component that `task` runs; None if the name is unknown."""
        return self.components.get(task.component)

    def where(self, line: int) -> str:
        """`file:line`, for an error's `where`."""
        return f"{self.file}:{line}"

    def tasks(self) -> Iterator[Place]:
        """Every task in every DAG that the root reaches, outer before inner; each component's DAG is entered once."""
        seen: set[str] = set()

        def enter(owner: Component, path: tuple[str, ...]) -> Iterator[Place]:
            if owner.dag is None or owner.name in seen:
                return
            seen.add(owner.name)
            for task in owner.dag.tasks.values():
                here = (*path, task.name)
                yield Place(task, owner, here)
                if inner := self.component(task):
                    yield from enter(inner, here)

        yield from enter(self.root, ())
