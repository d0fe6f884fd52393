"""Why a run failed: the failing steps' own words and the end of their logs."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from trainyard.kube import Kube
from trainyard.pipelines.runs import logs
from trainyard.pipelines.runs.model import BAD, Run, Step

SHOWN, LOG_LINES, LOOKED_AT = 3, 12, 400
# Frames of Python's and kfp's own programs, which led to the author's: the same in every failure.
FRAME = re.compile(r'  File "(<frozen runpy>|[^"]*/kfp/dsl/executor(_main)?\.py)", line \d+')
LATEST = datetime.max.replace(tzinfo=UTC)


def failures(run: Run) -> list[Step]:
    """The steps that failed, the first one first: the others may follow from it."""
    return sorted((step for step in run.steps if step.state in BAD), key=lambda step: step.finished or LATEST)


def text(run: Run, kube: Kube | None = None) -> str:
    """What to read first after a failure. With `kube`, the end of each failing step's log is fetched."""
    failed = failures(run)
    parts = []
    if run.stopping:
        parts.append(f"run {run.name} was stopped")
    elif not failed:
        parts.append(f"run {run.name} failed: {run.message or 'Argo gives no reason'}")
    for step in failed[:SHOWN]:
        tries = f" after {step.attempts} tries" if step.attempts > 1 else ""
        parts.append(f"step {step.name} failed{tries}: {step.reason or run.message or 'Argo gives no reason'}")
        if kube and (step.nodes or step.outputs) and (tail := end_of(logs.last(kube, run, step, LOOKED_AT), step)):
            parts += ["  the end of its log:", *(f"  | {line}" for line in tail)]
    if len(failed) > SHOWN:
        parts.append(
            f"and {len(failed) - SHOWN} more steps failed: `trainyard runs show {run.name} -n {run.namespace}`"
        )
    return "\n".join(parts)


def end_of(log: list[str], step: Step) -> list[str]:
    """The lines that lead to the error that the step's message begins with; else the last ones.

    Streams of a container come one after the other, so the error needn't be the last line of the log.
    """
    log = _without_frames(log)
    words = step.reason.rsplit(" (exit code ", 1)[0]
    found = [number for number, line in enumerate(log) if words and line.strip() == words]
    end = found[-1] + 1 if found else len(log)
    return log[max(0, end - LOG_LINES) : end]


def _without_frames(log: list[str]) -> list[str]:
    kept: list[str] = []
    inside = False
    for line in log:
        inside = bool(FRAME.match(line)) or (inside and line.startswith("    "))
        if not inside:
            kept.append(line)
    return kept
