"""The findings as text for the terminal and as data."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainyard_dev.doctor.finding import Finding, healthy

PAINT = {"ok": "32", "warn": "33", "missing": "31", "not needed": "2"}


def render(findings: Sequence[Finding], *, colour: bool = False) -> str:
    """Renders a line for each finding under its group's heading, the hint below it, and the verdict last."""
    longest = max((len(f.check) for f in findings), default=0)
    lines: list[str] = []
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            lines += ["", group[0].upper() + group[1:]]
        state = f"{finding.state:<10}"
        if colour:
            state = f"\x1b[{PAINT[finding.state]}m{state}\x1b[0m"
        lines.append(f"  {state}  {finding.check:<{longest}}  {finding.found}")
        if finding.hint:
            lines.append(f"  {'':<10}  {'':<{longest}}  hint: {finding.hint}")
    return "\n".join([*lines[1:], "", verdict(findings)]) + "\n"


def verdict(findings: Sequence[Finding]) -> str:
    """One line: what is missing, by name, or that all is there."""
    missing = [f.check for f in findings if f.state == "missing"]
    warned = sum(f.state == "warn" for f in findings)
    note = f" ({warned} warning{'' if warned == 1 else 's'})" if warned else ""
    if missing:
        return f"Missing: {', '.join(missing)}{note}. Fix as shown, then run `trainyard doctor` again."
    return f"This machine meets all requirements of `make e2e`{note}."


def data(findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings as plain data."""
    return {
        "ok": healthy(findings),
        "checks": [asdict(f) for f in findings],
    }
