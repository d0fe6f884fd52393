"""The results file of `make matrix`: one entry for each group of tests on each minor of Kubernetes."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard_dev import recorded

FILE = "docs/support/matrix.json"
# Group -> folder of its tests.
GROUPS = {"policies": "tests/policies", "charts": "charts", "scheduling": "tests/scheduling",
          "pipelines": "tests/pipelines"}  # fmt: skip
MAIN_JOB = "main job"  # of the end-to-end run, on a whole cluster of that version
PASSED, FAILED, NOT_RUN = "passed", "FAILED", "not run"


@dataclass(frozen=True)
class Result:
    """The result of one group on one version: outcome, counts of tests, time and commit."""

    version: str
    result: str
    day: str
    commit: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: int = 0
    failures: list[str] = field(default_factory=list)
    why: str = ""

    @property
    def good(self) -> bool:
        """Whether it ran and passed."""
        return self.result == PASSED


Matrix = dict[str, dict[str, Result]]  # minor -> group -> result


def read(root: Path) -> Matrix:
    """Reads all results so far; none for a tree without the file.

    Raises:
        TrainyardError: the file can't be read.
    """
    path = root / FILE
    if not path.exists():
        return {}
    try:
        raw = json.loads(path.read_text())
        return {minor: {group: Result(**one) for group, one in groups.items()} for minor, groups in raw.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        hint = "restore it from the repository, or remove it and run `make matrix`"
        raise TrainyardError(f"the file can't be read ({error})", where=str(path), hint=hint) from None


def write(root: Path, matrix: Matrix) -> None:
    """Writes the file whole, in an order that does not depend on what ran last."""
    data = {minor: {group: asdict(matrix[minor][group]) for group in sorted(matrix[minor])} for minor in sorted(matrix)}
    recorded.write(root / FILE, json.dumps(data, indent=2) + "\n")


def ceiling(matrix: Matrix) -> str:
    """The minor that the chart may not be installed on: the one after the newest on which the policies' tests passed.

    They install the whole chart on the real API server. Empty where nothing has passed.
    """
    good = [tuple(map(int, minor.split("."))) for minor, ran in matrix.items()
            if "policies" in ran and ran["policies"].good]  # fmt: skip
    if not good:
        return ""
    major, minor = max(good)
    return f"{major}.{minor + 1}"


def bounded(constraint: str, ceiling: str) -> str:
    """Returns a chart's `kubeVersion` with this ceiling and its old floor. `-0` allows a provider's suffix."""
    floor = next((word for word in constraint.split() if word.startswith(">=")), "")
    return f"{floor} <{ceiling}.0-0".strip()
