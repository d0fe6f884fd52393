"""All queries of the dashboards, with values chosen for their variables."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard_dev.monitoring import dashboards

ALL = ".*"
# What Grafana inserts for the time range shown: an hour, at intervals of half a minute.
TIME = {"__rate_interval": "2m", "__interval": "30s", "__range": "1h"}
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")


@dataclass(frozen=True)
class Query:
    """One query of a panel, ready to be sent."""

    dashboard: str
    panel: str
    ref: str
    expr: str
    unit: str

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel} ({self.ref})"


def filled(expr: str, values: Mapping[str, str]) -> str:
    """The expression with its variables replaced; one without a value matches all."""
    known = {**TIME, **values}
    return _VARIABLE.sub(lambda match: known.get(match[1] or match[2], ALL), expr)


def queries(values: Mapping[str, str] | None = None) -> list[Query]:
    """All queries of every dashboard, in order.

    Args:
        values: chosen value of each variable; `.*` where none is.
    """
    found = []
    for name, board in dashboards.made().items():
        for panel, target in targets(board):
            unit = panel["fieldConfig"]["defaults"]["unit"]
            expr = filled(target["expr"], values or {})
            found.append(Query(name, panel["title"], target["refId"], expr, unit))
    return found


def targets(dashboard: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each panel with queries, and each of its queries; also of panels inside folded rows."""
    for panel in dashboard["panels"]:
        for one in (panel, *panel.get("panels", [])):
            for target in one.get("targets", []):
                yield one, target
