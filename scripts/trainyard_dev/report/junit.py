"""The run as JUnit XML: one suite per group of checks, seconds as ``time``, skips and failures with their reason."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime

from trainyard_dev.report.groups import grouped
from trainyard_dev.report.model import Check, Run
from trainyard_dev.report.plain import clean, figure


def render(run: Run) -> str:
    """The XML document as text, in the dialect that CI systems read (the one of Ant and Maven Surefire)."""
    total = run.verdict
    root = ET.Element(
        "testsuites",
        name="trainyard e2e",
        tests=str(len(run.checks)),
        failures=str(total.failed),
        errors="0",
        skipped=str(total.skipped),
        time=f"{run.seconds:.3f}",
    )
    stamp = datetime.fromtimestamp(run.started, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for group, checks in grouped(run.checks).items():
        suite = ET.SubElement(
            root,
            "testsuite",
            name=group,
            timestamp=stamp,
            tests=str(len(checks)),
            failures=str(sum(c.status == "failed" for c in checks)),
            errors="0",
            skipped=str(sum(c.status == "skipped" for c in checks)),
            time=f"{sum(c.seconds for c in checks):.3f}",
        )
        for check in checks:
            _case(suite, check)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, check: Check) -> None:
    case = ET.SubElement(suite, "testcase", classname=f"e2e.{check.group}", name=check.id, time=f"{check.seconds:.3f}")
    if check.status == "skipped":
        ET.SubElement(case, "skipped", message=clean(check.reason))
    elif check.status == "failed":
        reason = clean(check.reason)
        failure = ET.SubElement(case, "failure", type="CheckFailed", message=reason.strip().splitlines()[0])
        failure.text = reason
    lines = [clean(check.title), *(f"{clean(k)} = {figure(v)}" for k, v in check.told.items())]
    ET.SubElement(case, "system-out").text = "\n".join(lines)
