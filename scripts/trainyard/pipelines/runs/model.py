"""A run as users see it: its steps, one for each task, and its state."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.names import QUEUE
from trainyard.observe.listing import some
from trainyard.times import when

GROUP, VERSION, RESOURCE = "argoproj.io", "argoproj.io/v1alpha1", "workflows"
PIPELINE, EXPERIMENT = "trainyard.io/pipeline", "trainyard.io/experiment"  # labels of runs
RUN_OF_POD = "workflows.argoproj.io/workflow"
NODE_OF_POD = "workflows.argoproj.io/node-id"

OVER = ("Succeeded", "Failed", "Error")  # phases of a run that has ended
ENDED = {"stopped", "done", "cached", "skipped", "omitted", "failed", "error"}
BAD = {"failed", "error"}
LATEST = datetime.max.replace(tzinfo=UTC)
SHOWN = 12  # steps in a message
EXIT_CODE = re.compile(r"^(?:main: )?Error \(exit code (-?\d+)\)(?:: )?")

Object = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One task of a run. `nodes` are the pods' node ids, one for each attempt, in order."""

    id: str
    path: tuple[str, ...]
    state: str
    message: str = ""
    nodes: tuple[str, ...] = ()
    started: datetime | None = None
    finished: datetime | None = None
    after: tuple[str, ...] = ()  # dependencies of a task that hasn't started
    outputs: Object = field(default_factory=dict)  # Argo's outputs, of the last attempt
    template: str = ""
    item: str = ""  # item of the loop around it

    @property
    def name(self) -> str:
        """The step's name within the run."""
        return "/".join(self.path)

    @property
    def ended(self) -> bool:
        """Whether the step has ended."""
        return self.state in ENDED

    @property
    def attempts(self) -> int:
        """How many pods the step has had."""
        return len(self.nodes)

    def seconds(self, now: datetime) -> float | None:
        """How long the step has been running, or ran."""
        return max(0.0, ((self.finished or now) - self.started).total_seconds()) if self.started else None

    @property
    def reason(self) -> str:
        """The message's first line, without Argo's prefix; the log has its other lines, too."""
        if self.state == "omitted":  # the state is explanation enough
            return ""
        if self.state == "skipped" and self.message == "when 'false' evaluated false":
            return "its condition is false"
        code = EXIT_CODE.match(self.message)
        rest = (self.message[code.end() :] if code else self.message).strip()
        first = " ".join(rest.split("\n", 1)[0].split())
        if not code:
            return first
        return f"{first} (exit code {code[1]})" if first else f"exit code {code[1]}"


@dataclass(frozen=True)
class Run:
    """One run, as described by its Workflow."""

    name: str
    namespace: str
    phase: str  # Argo's phase, or "Pending" before there is one
    steps: tuple[Step, ...]
    raw: Object = field(repr=False, default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self.phase in OVER

    @property
    def succeeded(self) -> bool:
        """Whether the run succeeded."""
        return self.phase == "Succeeded"

    @property
    def stopping(self) -> bool:
        """Whether someone requested that it stop."""
        return bool(self.raw.get("spec", {}).get("shutdown"))

    @property
    def state(self) -> str:
        """The phase in trainyard's terms."""
        if self.stopping:
            return "stopped" if self.ended and not self.succeeded else "stopping" if not self.ended else "succeeded"
        return {"Succeeded": "succeeded", "Failed": "failed", "Error": "error"}.get(self.phase, self.phase.lower())

    @property
    def uid(self) -> str:
        """The uid in Kubernetes."""
        return str(self.raw["metadata"].get("uid", ""))

    @property
    def created(self) -> datetime | None:
        """When it was submitted."""
        return when(self.raw["metadata"].get("creationTimestamp"))

    @property
    def started(self) -> datetime | None:
        """When the controller started it."""
        return when(self.raw.get("status", {}).get("startedAt"))

    @property
    def finished(self) -> datetime | None:
        """When it ended."""
        return when(self.raw.get("status", {}).get("finishedAt"))

    @property
    def pipeline(self) -> str:
        """The pipeline's name; empty for a workflow that wasn't made from a pipeline."""
        return str(self.raw["metadata"].get("labels", {}).get(PIPELINE, ""))

    @property
    def experiment(self) -> str:
        """The run's experiment."""
        return str(self.raw["metadata"].get("labels", {}).get(EXPERIMENT, ""))

    @property
    def queue(self) -> str:
        """The queue that its pods wait in; empty if it names none."""
        spec = self.raw.get("spec", {})
        places = (spec.get("podMetadata", {}).get("annotations", {}), self.raw["metadata"].get("annotations", {}))
        return next((str(place[QUEUE]) for place in places if place and QUEUE in place), "")

    @property
    def priority(self) -> str:
        """The priority class of its pods."""
        return str(self.raw.get("spec", {}).get("podPriorityClassName", ""))

    @property
    def message(self) -> str:
        """Argo's message about the run; usually empty, for the steps have the reasons."""
        return " ".join(str(self.raw.get("status", {}).get("message", "")).split())

    def seconds(self, now: datetime) -> float | None:
        """How long the run has been running, or ran."""
        return max(0.0, ((self.finished or now) - self.started).total_seconds()) if self.started else None

    @property
    def failures(self) -> list[Step]:
        """The steps that failed, the first one first: later failures may result from it."""
        return sorted((step for step in self.steps if step.state in BAD), key=lambda step: step.finished or LATEST)

    def find(self, name: str) -> Step:
        """The step whose name or last part of the name this is. Raises TrainyardError if none or several match."""
        exact = [step for step in self.steps if step.name == name or step.id == name]
        found = exact or [step for step in self.steps if step.path[-1] == name]
        if len(found) == 1:
            return found[0]
        names = some((step.name for step in found or self.steps), SHOWN)
        if found:
            raise TrainyardError(f"run {self.name} has several steps {name}: {names}", hint="use the full name")
        raise TrainyardError(f"run {self.name} has no step {name}; it has: {names or 'none yet'}")
