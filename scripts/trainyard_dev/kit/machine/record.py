"""The record of a run: each step's result is on the disk before the next begins, and a rerun goes on after them."""

import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FAILED = "failed"
REFUSED, AGAIN = 3, 75  # exit codes; the second: the time of this call is over, and the same call goes on
Step = tuple[str, Callable[[Any], object]]  # name, and what does it and returns its evidence


class NotHereError(Exception):
    """What this machine cannot show, and why; never counts as passed."""


class RefusedError(Exception):
    """The machine is not fit for the run."""


class Book:
    """Runs steps and writes steps.jsonl, summary.json and report.md.

    Args:
        root: holds the record between calls; out: gets a copy after each step.
        seconds: after them no step begins; the caller calls again. A step takes 190 s at most.
    """

    def __init__(self, root: Path, out: Path, *, mock: bool, seconds: float) -> None:
        self.file, self.out, self.mock, self.until = root / "steps.jsonl", out, mock, time.monotonic() + seconds
        out.mkdir(parents=True, exist_ok=True)

    def read(self) -> list[dict[str, Any]]:
        """The newest entry of each step."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return list({entry["step"]: entry for entry in map(json.loads, lines)}.values())

    def run(self, subject: Any, steps: Sequence[Step], *, needed: int = 0, again: Sequence[str] = ()) -> int:
        """Does the steps that are not done, and those named `again`; returns the exit code.

        A failure among the first `needed` steps ends the run.
        """
        done, code = {entry["step"] for entry in self.read() if entry["outcome"] != FAILED}, 0
        for number, (name, does) in enumerate(steps):
            if name in done and name not in again:
                continue
            if time.monotonic() > self.until:
                return AGAIN
            since, outcome = time.monotonic(), "passed"
            try:
                evidence = does(subject)
            except NotHereError as reason:
                outcome, evidence = "not here", str(reason)
            except RefusedError as reason:
                print(f"refused: {reason}")
                return REFUSED
            except Exception as error:  # the next steps may still show something
                outcome, evidence, code = FAILED, f"{type(error).__name__}: {error}", 1
            self._write(name, round(time.monotonic() - since, 1), outcome, evidence)
            if outcome == FAILED and number < needed:
                break
        return code

    def _write(self, step: str, seconds: float, outcome: str, evidence: object) -> None:
        print(f"{seconds:7.1f} s  {outcome:8}  {step}: {evidence}"[:400], flush=True)
        entry = {"step": step, "seconds": seconds, "outcome": outcome, "evidence": evidence}
        with self.file.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        shutil.copy(self.file, self.out)
        groups = 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1
        facts = {"GPU": "mock" if self.mock else "real", "kernel": platform.release(), "cores": os.cpu_count(),
                 "control groups": groups, "Python": platform.python_version()}  # fmt: skip
        summary: dict[str, Any] = {"machine": facts, "steps": self.read()}
        (self.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
        (self.out / "report.md").write_text(report(**summary))


def report(machine: dict[str, Any], steps: Sequence[dict[str, Any]]) -> str:
    """A table in Markdown: what was seen, what was not."""
    rows = [f"{', '.join(f'{key}: {value}' for key, value in machine.items())}.", "",
            "| step | outcome | seconds | seen |", "|---|---|---|---|"]  # fmt: skip
    for one in steps:
        seen = str(one["evidence"]).replace("|", "\\|").replace("\n", " ")[:300]
        rows.append(f"| {one['step']} | {one['outcome']} | {one['seconds']} | {seen} |")
    return "\n".join([*rows, ""])
