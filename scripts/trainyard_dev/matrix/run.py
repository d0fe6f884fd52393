"""Runs groups of tests on the API servers of several minors of Kubernetes, one after the other."""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev import recorded, tools
from trainyard_dev.matrix.page import PAGE
from trainyard_dev.matrix.results import FAILED, FILE, GROUPS, NOT_RUN, PASSED, Matrix, Result, write
from trainyard_dev.tools.build import KUBERNETES

WRITTEN = (FILE, PAGE)  # by the runs themselves: not a change of what is tested
MOST_FAILURES = 20  # named in the results


def groups(matrix: Matrix, minors: dict[str, str], wanted: Sequence[str]) -> Iterator[tuple[str, str, Result]]:
    """Runs each group on each minor; its result is in `matrix` and in the file before the next one begins.

    Args:
        minors: minor -> version.
        wanted: names of groups.

    Yields:
        minor, group, result.
    """
    for minor, version in minors.items():
        try:
            tools.binary("kube-apiserver", version)
            lack = ""
        except TrainyardError as error:
            lack = str(error)
        for group in wanted:
            found = _stamped(version, NOT_RUN, why=lack) if lack else one(group, version)
            # A failed build doesn't replace an earlier result.
            if not lack or group not in matrix.get(minor, {}):
                matrix.setdefault(minor, {})[group] = found
                write(ROOT, matrix)
            yield minor, group, found


def one(group: str, version: str) -> Result:
    """Runs one group on one version; its output goes to the terminal."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        began = time.monotonic()
        argv = [sys.executable, "-m", "pytest", GROUPS[group], "-q", f"--junitxml={report}"]
        done = subprocess.run(argv, cwd=ROOT, env={**os.environ, KUBERNETES: version}, check=False)
        seconds = round(time.monotonic() - began)
        if not report.exists():
            return _stamped(version, FAILED, seconds=seconds, why=f"pytest ended with {done.returncode} and no report")
        return counted(report.read_text(), done.returncode, version, seconds)


def main_job(summary: Path, wanted: Collection[str]) -> tuple[str, Result]:
    """The main job as a finished end-to-end run reports it; its other checks don't count.

    Args:
        summary: summary.json of the run.
        wanted: ids of the main job's checks.

    Returns:
        minor, result.

    Raises:
        TrainyardError: the file can't be read, or the run left out checks of the main job.
    """
    try:
        raw = json.loads(summary.read_text())
        version, day = raw["versions"]["kubernetes"], datetime.date.fromtimestamp(raw["ended"]).isoformat()
        ended = {one["id"]: one["status"] for one in raw["checks"] if one["id"] in wanted}
        seconds = round(raw["seconds"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "use the summary.json of a finished end-to-end run"
        raise TrainyardError(f"the file can't be read ({error})", where=str(summary), hint=hint) from None
    if left := sorted(set(wanted) - ended.keys()):
        hint = "run `make e2e` without ONLY"
        raise TrainyardError(f"the run left out {', '.join(left[:3])}", where=str(summary), hint=hint)
    bad = sorted(name for name, status in ended.items() if status != "passed")
    found = _stamped(version, FAILED if bad else PASSED, passed=len(ended) - len(bad), failed=len(bad),
                     seconds=seconds, failures=bad[:MOST_FAILURES])  # fmt: skip
    return ".".join(version.split(".")[:2]), replace(found, day=day)


def counted(junit: str, code: int, version: str, seconds: int) -> Result:
    """Makes a result from pytest's report. A run without a passed test doesn't pass."""
    cases = list(ElementTree.fromstring(junit).iter("testcase"))
    bad = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    passed = len(cases) - len(bad) - len(skipped)
    good = code == 0 and not bad and passed > 0
    return _stamped(
        version,
        PASSED if good else FAILED,
        passed=passed,
        failed=len(bad),
        skipped=len(skipped),
        seconds=seconds,
        failures=[f"{case.get('classname')}::{case.get('name')}" for case in bad[:MOST_FAILURES]],
        why="" if good or bad else f"pytest ended with {code}",
    )


def _stamped(version: str, result: str, **further: object) -> Result:
    commit = recorded.commit(ROOT, WRITTEN)
    return Result(version, result, datetime.date.today().isoformat(), commit, **further)  # type: ignore[arg-type]
