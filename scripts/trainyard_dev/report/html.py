"""The run as one self-contained web page, with no script and no external resource, and as JUnit XML."""

from typing import Any

from trainyard_dev.report import costs, groups, templates, timeline
from trainyard_dev.report.model import BOARDS, Picture, Run


def render(run: Run) -> str:
    """The whole page as text."""
    found = sorted(run.checks, key=lambda check: check.status != "failed")
    checks = [check for check in found if check.group != groups.ATTACK]
    return templates.render(
        "report.html",
        run=run,
        checks=groups.grouped(checks),
        drawn=[(check.id, one) for check in checks for one in check.figures.values() if isinstance(one, Picture)],
        attacks=[check for check in found if check.group == groups.ATTACK],
        boards=pages(run),
        costs=costs.table(run),
        costs_drawn=costs.drawn(run),
        timeline=timeline.render(run.spans, run.started, run.ended),
    )


def junit(run: Run) -> str:
    """The run in the dialect that CI systems read (the one of Ant and Maven Surefire), one suite a group of checks."""
    return templates.render("junit.xml", run=run)


def pages(run: Run) -> dict[str, dict[str, Any]]:
    """The data of each dashboard that a run queried, by the name of its page."""
    seen = [check.figures[BOARDS] for check in run.checks if BOARDS in check.figures]
    return {f"dashboard-{board['name']}.html": {**one, "board": board} for one in seen for board in one["boards"]}
