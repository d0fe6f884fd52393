"""Why a run failed: the failing steps' messages and the end of their logs."""

from trainyard.kube import Kube
from trainyard.observe import words
from trainyard.pipelines.runs import logs
from trainyard.pipelines.runs.model import Run, Step

SHOWN, LOOKED_AT = 3, 400


def text(run: Run, kube: Kube | None = None) -> str:
    """The most important facts about a failure. With `kube`, the end of each failing step's log is fetched."""
    failed = run.failures
    parts = []
    if run.stopping:
        parts.append(f"run {run.name} was stopped")
    elif not failed:
        parts.append(f"run {run.name} failed: {run.message or 'Argo gives no reason'}")
    for step in failed[:SHOWN]:
        tries = f" after {step.attempts} tries" if step.attempts > 1 else ""
        parts.append(f"step {step.name} failed{tries}: {step.reason or run.message or 'Argo gives no reason'}")
        if kube and (step.nodes or step.outputs):
            parts += words.quoted(end_of(logs.last(kube, run, step, LOOKED_AT), step))
    if len(failed) > SHOWN:
        parts.append(
            f"and {len(failed) - SHOWN} more steps failed: `trainyard runs show {run.name} -n {run.namespace}`"
        )
    return "\n".join(parts)


def end_of(log: list[str], step: Step) -> list[str]:
    """The lines that lead to the error with which the step's message begins; else the last ones."""
    return words.leading_to(log, step.reason.rsplit(" (exit code ", 1)[0])
