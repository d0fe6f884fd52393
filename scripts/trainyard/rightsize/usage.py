"""Usage of runs, as the platform's agent publishes it in ConfigMap `trainyard-usage`.

CPU is in cores, memory in bytes, shares are from 0 to 1, times are Unix seconds. Only the agent may write this
ConfigMap; a member may have written it before the option was enabled, so any other text is an error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainyard.errors import TrainyardError

if TYPE_CHECKING:
    from trainyard.kube import Kube

MAP, KEY = "trainyard-usage", "usage.json"
SCHEMA = "trainyard.io/usage/v1"
COMPONENT = "component"  # kind of a platform workload
LONGEST = 253  # characters of a name
RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"  # alphabet of the suffixes that Kubernetes and `trainyard train` generate
Figures = Mapping[str, float]


@dataclass(frozen=True)
class Part:
    """Figures of one container of one role, from the pod that used most. `samples`: number of memory samples."""

    role: str
    container: str
    pods: int = 1
    oom: int = 0
    samples: float = 0
    throttled: float = 0.0
    cpu: Figures = field(default_factory=dict)
    memory: Figures = field(default_factory=dict)
    asked: Figures = field(default_factory=dict)
    limits: Figures = field(default_factory=dict)
    gpu: Figures = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run of a job: `job` is the name of its object."""

    job: str
    begin: float
    at: float
    seconds: float
    ended: bool
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Job:
    """Runs of one job, newest first."""

    name: str
    kind: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Usage:
    """All jobs of one namespace by name, newest first; `at` is the time of publication."""

    at: float
    every: float
    jobs: Mapping[str, Job]

    def find(self, name: str) -> Job | None:
        """The job with this name, or with a run of this name."""
        if name in self.jobs:
            return self.jobs[name]
        short = base(name)
        if short in self.jobs:
            return self.jobs[short]
        return next((job for job in self.jobs.values() if any(run.job == name for run in job.runs)), None)


def base(name: str) -> str:
    """The common name of one job's runs: without the suffix that each run gets."""
    return re.sub(rf"(?<=.)(?:-{RANDOM}{{5}}|-\d{{8,10}})$", "", name)


def read(kube: Kube, namespace: str) -> Usage:
    """Reads the published usage of a namespace with one request.

    Raises:
        TrainyardError: nothing is published there, or not by the agent.
    """
    found = kube.find(kube.path("v1", "configmaps", MAP, namespace=namespace))
    text = str(((found or {}).get("data") or {}).get(KEY, ""))
    if not text:
        what = f"no usage of jobs is known: ConfigMap {MAP} of {namespace} is empty"
        hint = "the option monitoring measures jobs from a few minutes after their start; ask your platform engineer"
        raise TrainyardError(what, hint=hint)
    return parse(text, f"ConfigMap {MAP} of {namespace}")


def parse(text: str, where: str) -> Usage:
    """Parses the published text. Raises TrainyardError."""
    try:
        found = json.loads(text)
        if found["schema"] != SCHEMA:
            raise TrainyardError(
                f"unsupported schema {_name(found['schema'])[:80]}, expected {SCHEMA}",
                where=where,
                hint="install the version of trainyard that the platform has",
            )
        jobs = [_job(one) for one in found["jobs"]]
        return Usage(_number(found["at"]), _number(found["everySeconds"]), {job.name: job for job in jobs if job.runs})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        hint = "delete the ConfigMap; the platform writes it again within half an hour"
        raise TrainyardError("the platform did not write its content", where=where, hint=hint) from None


def _job(one: Mapping[str, Any]) -> Job:
    runs = sorted((_run(run) for run in one["runs"]), key=lambda run: -run.begin)
    return Job(_name(one["name"]), _name(one["kind"]), tuple(runs))


def _name(given: Any) -> str:
    """The value as a name. Names are shown, and written to comments of values, so they must be printable."""
    text = str(given)
    if not text.isprintable() or len(text) > LONGEST:
        raise ValueError("no name")
    return text


def _number(given: Any) -> float:
    number = float(given)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError("no amount")
    return number


def _run(one: Mapping[str, Any]) -> Run:
    parts = tuple(_part(part) for part in one["parts"])
    begin, at, seconds = (_number(one[name]) for name in ("begin", "at", "seconds"))
    return Run(_name(one["job"]), begin, at, seconds, bool(one["ended"]), parts)


def _part(one: Mapping[str, Any]) -> Part:
    inner = {
        name: {_name(key): _number(value) for key, value in (one.get(name) or {}).items()}
        for name in ("cpu", "memory", "asked", "limits", "gpu")
    }
    return Part(
        _name(one["role"]),
        _name(one["container"]),
        int(_number(one.get("pods", 1))),
        int(_number(one.get("oom", 0))),
        _number(one.get("samples", 0)),
        _number(one.get("throttled", 0)),
        **inner,
    )
