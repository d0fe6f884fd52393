"""Objects as the rules see them: with the defaults that the API server fills in."""

import re
from typing import Any

from trainyard.contract import Team
from trainyard.errors import TrainyardError
from trainyard.kinds import images
from trainyard.kinds.requirements import PYTHON
from trainyard.policy import fill
from trainyard.policy.lint.report import Lines, Report

Object = dict[str, Any]
Path = tuple[str | int, ...]


def arriving(obj: Object, report: Report, team: Team, user: str) -> fill.Filled:
    """The object as the cluster's policies would change it; the object itself if none would."""
    if not fill.lists(report.site.contract, team):
        return fill.Filled(obj)
    try:
        return fill.filled(obj, report.site.contract, team, user)
    except (TrainyardError, AttributeError, KeyError, TypeError, ValueError):  # invalid shape, or a value still unknown
        return fill.Filled(obj)


def _python(new: str, old: str) -> str:
    """A note if the image's replacement has another version of Python."""
    named, ours = re.search(r"python[:-](3[.]?\d+|2[.]?\d*)", old), images.of_reference(new, steps=True)
    python = ours.python if ours else PYTHON
    return f" (its Python is {python})" if named and named[1].replace(".", "") != python.replace(".", "") else ""


def tell(made: fill.Filled, lines: Lines, report: Report, task: str) -> None:
    """Reports what the cluster fills in, so that nobody searches the file for it."""
    if made.names:
        at: Path = ("metadata",)
        told = "".join(f", {new} instead of {old}{_python(new, old)}" for old, new in made.images)
        what = f"the cluster fills in {', '.join(made.names)}{told}"
        report.add("TY111", lines(at), what, "`trainyard adopt` shows it", task=task, at=at)
