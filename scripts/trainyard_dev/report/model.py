"""The parts of an end-to-end run's report: checks, spans of time, versions, and mocks.

Times are Unix seconds (float), durations are seconds. A value that would falsify the report (a skip without a reason,
two checks of one id, a span that ends before it starts) is refused with ``TrainyardError`` when it is made.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from trainyard.errors import TrainyardError

Status = Literal["passed", "failed", "skipped"]
GpuKind = Literal["mock", "real"]
STATUSES: tuple[Status, ...] = ("passed", "failed", "skipped")
# Figures that are drawn and not listed in a table: the dashboards' data, the options' costs.
BOARDS, COSTS = DRAWN = ("dashboards", "costs")
_ID = re.compile(r"[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)*")


@dataclass(frozen=True)
class Picture:
    """A figure that is drawn. ``svg`` is a whole document, ``text`` describes it."""

    text: str
    svg: str


@dataclass(frozen=True)
class Check:
    """One check and its result.

    ``id`` is lower case with dots (``train.pytorchjob``); the part before the first dot groups checks. ``reason`` says
    why a check failed or was skipped. ``figures`` holds measurements: numbers, texts, lists or maps of these, and
    pictures.
    """

    id: str
    title: str
    status: Status
    reason: str = ""
    seconds: float = 0.0
    figures: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise TrainyardError(f"'{self.id}' is not a valid check id", hint="use lower case words joined by dots")
        if self.status not in STATUSES:
            raise TrainyardError(f"check {self.id} has the unknown status '{self.status}'", hint=f"use {STATUSES}")
        if self.status != "passed" and not self.reason.strip():
            raise TrainyardError(f"check {self.id} is {self.status} without a reason", hint="say why")
        if not math.isfinite(self.seconds) or self.seconds < 0:
            raise TrainyardError(f"check {self.id} took {self.seconds} seconds, which is impossible")

    @property
    def group(self) -> str:
        """The part of the id before the first dot."""
        return self.id.split(".", 1)[0]

    @property
    def shown_figures(self) -> dict[str, Any]:
        """The figures without those that are drawn."""
        return {key: value for key, value in self.figures.items() if key not in DRAWN}


@dataclass(frozen=True)
class Span:
    """A stretch of time in one lane of the timeline; ``end == start`` marks a moment."""

    lane: str
    phase: str
    start: float
    end: float
    label: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.start) and math.isfinite(self.end)):
            raise TrainyardError(f"span {self.phase} of {self.lane} has no finite time")
        if self.end < self.start:
            early = self.start - self.end
            raise TrainyardError(f"span {self.phase} of {self.lane} ends {early:.3f} s before it starts")

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Gpu:
    """Which GPUs the run used: ``mock`` proves allocation and scheduling, never CUDA."""

    kind: GpuKind
    description: str

    def __post_init__(self) -> None:
        if self.kind not in ("mock", "real"):
            raise TrainyardError(f"'{self.kind}' is not a kind of GPU", hint="use 'mock' or 'real'")


@dataclass(frozen=True)
class Verdict:
    """The outcome of a run in numbers. A run passes when something passed and nothing failed."""

    passed: int
    failed: int
    skipped: int

    @property
    def ok(self) -> bool:
        return self.failed == 0 and self.passed > 0

    @property
    def word(self) -> str:
        """``passed``, ``failed``, or ``proved nothing`` when no check ran to its end."""
        if self.failed:
            return "failed"
        return "passed" if self.passed else "proved nothing"

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


@dataclass
class Run:
    """One end-to-end run. Fill ``checks`` and ``spans`` during the run, set ``ended``, then ``write`` it.

    ``versions`` maps a component to its version; ``images`` maps an image reference to its source or its
    digest; ``image_source`` is ``pull`` or ``build``; ``mocks`` lists, one sentence each, what was mock or could not
    be tested here; ``cause`` is the probable cause of a failure.
    """

    started: float
    ended: float
    versions: dict[str, str]
    images: dict[str, str]
    image_source: str
    gpu: Gpu
    mocks: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    cause: str = ""

    @property
    def seconds(self) -> float:
        return max(0.0, self.ended - self.started)

    @property
    def verdict(self) -> Verdict:
        return Verdict(*(sum(c.status == status for c in self.checks) for status in STATUSES))

    def validate(self) -> None:
        """Refuse a run that can't be reported truthfully."""
        seen: set[str] = set()
        for check in self.checks:
            if check.id in seen:
                raise TrainyardError(f"duplicate check id: {check.id}", hint="use a unique id")
            seen.add(check.id)
        if self.ended < self.started:
            raise TrainyardError("the run ended before it started", hint="set 'ended' before writing the report")
