"""The run as one self-contained web page: no script, no external resource, every value escaped by the templates."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trainyard_dev.report import costs, groups, timeline
from trainyard_dev.report.model import BOARDS, Picture, Run
from trainyard_dev.report.plain import clean, duration, figure, words

SYMBOLS = {"passed": "\u2713", "failed": "\u2717", "skipped": "\u2013"}
SOURCES = {"build": "built here", "pull": "pulled from registries"}
_GPU_ID = re.compile(r"((?:MIG-)?GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")


def render(run: Run) -> str:
    """The whole page as text."""
    checks = [check for check in run.checks if check.group != groups.ATTACK]
    return (
        templates()
        .get_template("report.html")
        .render(
            run=run,
            checks=groups.grouped(sorted(checks, key=lambda check: check.status != "failed")),
            drawn=[(check.id, one) for check in checks for one in check.figures.values() if isinstance(one, Picture)],
            attacks=[check for check in run.checks if check.group == groups.ATTACK],
            boards=pages(run),
            costs=costs.table(run),
            costs_drawn=Markup(costs.drawn(run)),  # escapes by itself, as the timeline does
            timeline=Markup(timeline.render(run.spans, run.started, run.ended)),
        )
    )


def pages(run: Run) -> dict[str, dict[str, Any]]:
    """What a run saw of each dashboard, by the name of its page."""
    seen = [check.figures[BOARDS] for check in run.checks if BOARDS in check.figures]
    return {f"dashboard-{board['name']}.html": {**one, "board": board} for one in seen for board in one["boards"]}


@cache
def templates() -> Environment:
    """Templates of all pages, with what they may call."""
    made = Environment(
        loader=PackageLoader(__package__, "assets"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {"symbols": SYMBOLS, "sources": SOURCES}
    made.tests["picture"] = lambda value: isinstance(value, Picture)
    made.filters |= {
        "duration": duration,
        "address": _address,
        "figure": figure,
        "group_title": groups.title,
        "moment": _moment,
        "passed_of": groups.passed_of,
        "refusal": groups.refusal,
        "split_gpu_ids": _GPU_ID.split,  # every second part is an id
        "words": words,
    }
    return made


def _shown(value: Any) -> Any:
    """What a template writes, before it is escaped: free of what no page may hold."""
    return value if isinstance(value, Markup) else clean(value)


def _address(picture: Picture) -> str:
    """The picture as an address, whose document can neither run scripts nor ask for anything."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.svg.encode()).decode()}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%-d %B %Y, %H:%M UTC")
