"""The run as one self-contained web page: no script, no external resource, every value escaped by the templates."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from trainyard_dev.report import groups, timeline
from trainyard_dev.report.model import Picture, Run
from trainyard_dev.report.plain import clean, duration, figure, words

SYMBOLS = {"passed": "\u2713", "failed": "\u2717", "skipped": "\u2013"}
SOURCES = {"build": "built here", "pull": "pulled from registries"}
OWN_COLUMNS = ("accuracy", "device", "backend", "devices")
_GPU_ID = re.compile(r"((?:MIG-)?GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")


def render(run: Run) -> str:
    """The whole page as text."""
    checks = [check for check in run.checks if check.group != groups.ATTACK]
    return (
        _templates()
        .get_template("report.html")
        .render(
            run=run,
            checks=groups.grouped(checks),
            own=[name for name in OWN_COLUMNS if any(name in check.figures for check in checks)],
            drawn=[(check.id, one) for check in checks for one in check.figures.values() if isinstance(one, Picture)],
            attacks=[check for check in run.checks if check.group == groups.ATTACK],
            timeline=Markup(timeline.render(run.spans, run.started, run.ended)),  # escapes by itself
        )
    )


@cache
def _templates() -> Environment:
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
