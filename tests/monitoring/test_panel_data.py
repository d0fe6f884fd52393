"""What a run keeps of the dashboards for its report, asked of a real Prometheus."""

import json
import time

import pytest
from scraped import CORES, GIB

from trainyard_agent.usage.prometheus import Prometheus
from trainyard_dev.e2e import panel_data
from trainyard_dev.e2e.checks import monitoring
from trainyard_dev.monitoring import panels

MANY = 'label_replace(vector(1), "n", "{n}", "", "")'


def panel(number: int, expr: str, legend: str = "__auto", kind: str = "timeseries") -> dict[str, object]:
    target = {"refId": "A", "expr": expr, "legendFormat": legend}
    return {
        "id": number, "title": f"Panel {number}", "type": kind, "description": "About it.",
        "fieldConfig": {"defaults": {"unit": "short"}}, "targets": [target],
    }  # fmt: skip


@pytest.fixture
def port(prometheus: Prometheus) -> int:
    return int(prometheus.address.rpartition(":")[2])


def shown(port: int, *made: dict[str, object]) -> dict[str, object]:
    board = {"title": "Board", "description": "About all.", "panels": list(made)}
    return panel_data.shown(lambda path, **words: monitoring.ask(port, path, **words), boards={"board": board})


def test_series_have_their_last_numbers_and_names_as_in_grafana(port: int) -> None:
    query = 'container_memory_working_set_bytes{namespace="vision"}'
    found = shown(port, panel(1, query, "{{pod}}"), panel(2, "count(up)"), panel(3, "up"))
    (board,) = found["boards"]
    first, second, third = board["panels"]
    series = first["queries"][0]["series"]
    assert [one["name"] for one in series] == sorted(CORES, key=lambda pod: -CORES[pod])  # the largest first
    assert [one["values"][-1] for one in series] == pytest.approx([CORES[one["name"]] * GIB for one in series], 1e-3)
    assert {len(one["values"]) for one in series} == {found["count"]}
    assert series[0]["values"][0] is None  # ten minutes ago there was no Prometheus
    assert (second["queries"][0]["series"][0]["name"], second["queries"][0]["series"][0]["values"][-1]) == ("", 1.0)
    assert third["queries"][0]["series"][0]["name"].startswith("instance=127.0.0.1:")
    assert abs(found["from"] + found["step"] * (found["count"] - 1) - time.time()) < 30


def test_what_is_no_number_is_left_out_and_many_series_are_counted(port: int) -> None:
    many = " or ".join(MANY.replace("{n}", str(n)) for n in range(panel_data.MOST + 3))
    found = shown(port, panel(1, "vector(0) / 0"), panel(2, many))
    nan, wide = (one["queries"][0] for one in found["boards"][0]["panels"])
    assert set(nan["series"][0]["values"]) == {None}
    assert (len(wide["series"]), wide["more"]) == (panel_data.MOST, 3)


def test_every_query_of_our_dashboards_is_asked_and_what_is_kept_is_bounded(port: int) -> None:
    found = panel_data.shown(lambda path, **words: monitoring.ask(port, path, **words))
    asked = [query["expr"] for board in found["boards"] for one in board["panels"] for query in one["queries"]]
    assert asked == [query.expr for query in panels.queries()]
    most = found["count"] * panel_data.MOST * 10 + panel_data.MOST * panel_data.NAME + 2000  # bytes of a query
    assert len(json.dumps(found)) < len(asked) * most
    assert any(query["series"] for board in found["boards"] for one in board["panels"] for query in one["queries"])
