"""Grafana's dashboards of the chart `monitoring`, made from the short specs in `specs/`.

They are written when the chart is packaged.
"""

import json
from pathlib import Path
from typing import Any

import yaml

SPECS = Path(__file__).parent / "specs"
LINK = {"type": "dashboards", "title": "trainyard", "tags": ["trainyard"], "asDropdown": True, "keepTime": True}
CHOSEN = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1}
SCHEMA = 39
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS, HEIGHTS = 24, {"stat": 4}
WIDTHS = {"stat": 4, "timeseries": 12, "table": 12, "bargauge": 12}
Spec = dict[str, Any]


def names() -> list[str]:
    """The dashboards' names, equal to their files' names."""
    return sorted(file.stem for file in SPECS.glob("*.yaml"))


def spec(name: str) -> Spec:
    """The spec of one dashboard: title, about, variables, rows of panels."""
    read: Spec = yaml.safe_load((SPECS / f"{name}.yaml").read_text())
    return read


def made() -> dict[str, dict[str, Any]]:
    """Makes every dashboard, by name."""
    return {name: dashboard(name, spec(name)) for name in names()}


def write(folder: Path) -> None:
    """Writes each dashboard, as Grafana imports it, into a new folder."""
    folder.mkdir(parents=True)
    for name, board in made().items():
        (folder / f"{name}.json").write_text(json.dumps(board, indent=1, ensure_ascii=False) + "\n")


def dashboard(name: str, said: Spec) -> dict[str, Any]:
    """Makes a whole dashboard, panels placed row by row from the left."""
    panels: list[dict[str, Any]] = []
    down = 0
    for row in said["rows"]:
        panels.append(_row(len(panels) + 1, row["title"], down))
        down += 1
        left = height = 0
        for one in row["panels"]:
            wide, high = int(one.get("width", WIDTHS[one["type"]])), HEIGHTS.get(one["type"], 8)
            if left + wide > COLUMNS:
                down, left, height = down + height, 0, 0
            panels.append(_panel(len(panels) + 1, one, {"x": left, "y": down, "w": wide, "h": high}))
            left, height = left + wide, max(height, high)
        down += height
    return {
        "uid": f"trainyard-{name}",
        "title": f"trainyard / {said['title']}",
        "description": said["about"],
        "tags": ["trainyard"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [LINK],
        "templating": {"list": [CHOSEN, *(_variable(one) for one in said.get("variables", []))]},
        "panels": panels,
    }


def _variable(one: Spec) -> dict[str, Any]:
    """A variable for a choice among a label's values; initially all."""
    return {
        "name": one["name"],
        "label": one["label"],
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": one["query"], "refId": one["name"]},
        "definition": one["query"],
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _row(number: int, title: str, down: int) -> dict[str, Any]:
    place = {"x": 0, "y": down, "w": COLUMNS, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(number: int, one: Spec, place: dict[str, int]) -> dict[str, Any]:
    kind = one["type"]
    instant = kind != "timeseries"
    targets = [_target(place, query, instant, kind) for place, query in enumerate(one["queries"])]
    defaults: dict[str, Any] = {"unit": one["unit"]}
    if "min" in one:
        defaults["min"] = one["min"]
    if "max" in one:
        defaults["max"] = one["max"]
    if kind == "timeseries":
        stacking = {"mode": "normal" if one.get("stack") else "none", "group": "A"}
        defaults["custom"] = {"fillOpacity": 20 if one.get("stack") else 5, "stacking": stacking, "showPoints": "never"}
    panel = {
        "id": number,
        "type": kind,
        "title": one["title"],
        "description": one["about"],
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(kind),
        "targets": targets,
    }
    if kind == "table":
        hidden = {"Time": True, "__name__": True, "instance": True}
        panel["transformations"] = [{"id": "organize", "options": {"excludeByName": hidden}}]
    return panel


def _target(place: int, query: Spec, instant: bool, kind: str) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + place),
        "datasource": SOURCE,
        "expr": " ".join(query["expr"].split()),
        "legendFormat": query.get("legend", "__auto"),
        "instant": instant,
        "range": not instant,
        "format": "table" if kind == "table" else "time_series",
    }


def _options(kind: str) -> dict[str, Any]:
    last = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if kind == "timeseries":
        return {
            "legend": {
                "displayMode": "table",
                "placement": "bottom",
                "calcs": ["lastNotNull", "max"],
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if kind == "stat":
        return {"reduceOptions": last, "colorMode": "value", "graphMode": "none", "textMode": "auto"}
    if kind == "bargauge":
        return {"reduceOptions": last, "orientation": "horizontal", "displayMode": "basic"}
    return {"showHeader": True, "cellHeight": "sm"}
