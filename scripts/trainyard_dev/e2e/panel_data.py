"""The data that the dashboards show now: every query over the last minutes, reduced to fit a report.

The report draws it (`trainyard_dev.report.dashboards`), and `summary.json` keeps it.
"""

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from trainyard_dev.monitoring import dashboards, panels
from trainyard_dev.report import panel_svg

WINDOW_S, STEP_S = 600, 20
MOST = 8  # series of a query that are kept: those with the largest last value
DIGITS = 4
NAME = 80  # letters of a series' name, at most
AUTO = "__auto"
_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")
Ask = Callable[..., Any]
Boards = Mapping[str, dict[str, Any]]


def shown(ask: Ask, *, now: float | None = None, boards: Boards | None = None) -> dict[str, Any]:
    """All dashboards with their panels, and the results of each query.

    Args:
        ask: returns `data` of Prometheus' answer to a path and its parameters.
        now: Unix seconds at which the window ends.
        boards: by name; None: all of the chart's.

    Returns:
        `{"from", "step", "count", "boards"}`: moments in Unix seconds and seconds, which all series share; a series has
        `count` numbers, None for a missing one. `more` of a query is the number of its further series.
    """
    end = float(int(now or time.time()))
    asked = {"start": str(end - WINDOW_S), "end": str(end), "step": str(STEP_S)}
    found = [_board(ask, board, name, asked) for name, board in (boards or dashboards.made()).items()]
    return {"from": end - WINDOW_S, "step": STEP_S, "count": WINDOW_S // STEP_S + 1, "boards": found}


def _board(ask: Ask, read: Mapping[str, Any], name: str, asked: Mapping[str, str]) -> dict[str, Any]:
    made: dict[int, dict[str, Any]] = {}
    for panel, target in panels.targets(read):
        expr = panels.filled(target["expr"], {})
        answer = ask("query_range", query=expr, **asked)
        series = [_series(one, target.get("legendFormat", AUTO), float(asked["start"])) for one in answer["result"]]
        series.sort(key=lambda one: (-(panel_svg.last(one["values"]) or 0.0), one["name"]))
        one = made.setdefault(panel["id"], {
            "title": panel["title"], "type": panel["type"], "about": panel.get("description", ""),
            "unit": panel["fieldConfig"]["defaults"]["unit"], "queries": [],
        })  # fmt: skip
        one["queries"].append({"expr": expr, "series": series[:MOST], "more": max(0, len(series) - MOST)})
    return {"name": name, "title": read["title"], "about": read["description"], "panels": list(made.values())}


def _series(one: Mapping[str, Any], legend: str, start: float) -> dict[str, Any]:
    values: list[float | None] = [None] * (WINDOW_S // STEP_S + 1)
    for moment, text in one["values"]:
        number = float(text)
        if math.isfinite(number):
            values[round((float(moment) - start) / STEP_S)] = float(f"{number:.{DIGITS}g}")
    return {"name": _named(one["metric"], legend)[:NAME], "values": values}


def _named(labels: Mapping[str, str], legend: str) -> str:
    """A series' name as Grafana makes it: from the panel's legend, or from its labels."""
    if legend and legend != AUTO:
        return _LABEL.sub(lambda match: labels.get(match[1], ""), legend).strip()
    told = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()) if key != "__name__")
    return told or labels.get("__name__", "")
