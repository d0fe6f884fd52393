"""The pages of dashboards and the costs of options: drawings match the measurements."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from report_runs import NASTY, Page, run_of

from trainyard_dev.report import Check, console, costs, dashboards, html, panel_svg, units, writer
from trainyard_dev.report.model import Run

SVG = "{http://www.w3.org/2000/svg}"


def series(name: str, *values: float | None) -> dict[str, Any]:
    return {"name": name, "values": list(values)}


def panel(
    kind: str, *found: dict[str, Any], title: str = "Panel", unit: str = "short", more: int = 0
) -> dict[str, Any]:
    query = {"expr": f"sum({title})", "series": list(found), "more": more}
    return {"title": title, "type": kind, "unit": unit, "about": "About it.", "queries": [query]}


def seen(*panels: dict[str, Any], name: str = "cluster") -> Run:
    board = {"name": name, "title": "trainyard / Cluster", "about": "How it is.", "panels": list(panels)}
    figures = {"queries": 1, "dashboards": {"from": 1000.0, "step": 20, "count": 3, "boards": [board]}}
    return run_of(Check("seeing.panels", "all have data", "passed", seconds=1.0, figures=figures))


def page(*panels: dict[str, Any]) -> str:
    (text,) = dashboards.render(seen(*panels)).values()
    Page(text)  # its tags are balanced
    return text


def drawing(text: str) -> ET.Element:
    return ET.fromstring(text)


def points(line: ET.Element) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]  # type: ignore[misc]


def test_lines_go_up_where_numbers_do_and_a_gap_stays_a_gap() -> None:
    drawn = drawing(panel_svg.lines([series("a", 0, 5, 10, None, 2, 2), series("b", None, None, 7, None, None, None)],
                                    "short", 20))  # fmt: skip
    first, second = (points(line) for line in drawn.iter(f"{SVG}polyline"))
    assert [y for _, y in first] == sorted((y for _, y in first), reverse=True) and len(first) == 3
    assert first[-1][1] == panel_svg.TOP and first[0][1] == panel_svg.HEIGHT - panel_svg.BOTTOM
    assert first[-1][0] < second[0][0] and second[-1][0] == panel_svg.WIDTH - panel_svg.RIGHT
    (dot,) = drawn.iter(f"{SVG}circle")
    assert float(dot.attrib["cx"]) == first[-1][0]  # the third moment of both
    assert {line.attrib["stroke"] for line in drawn.iter(f"{SVG}polyline")} == {panel_svg.colour(0)}
    assert dot.attrib["fill"] == panel_svg.colour(1)
    labels = [text.text for text in drawn.iter(f"{SVG}text")]
    assert labels == ["0", "5", "10", "100 s ago", "now"]


@pytest.mark.parametrize("values", [(0.0, 0.0), (3.0, 3.0), (-2.0, -1.0), (None, None), (None, 1e18)])
def test_any_numbers_stay_inside_the_drawing(values: tuple[float | None, ...]) -> None:
    drawn = drawing(panel_svg.lines([series("a", *values)], "bytes", 20))
    for line in drawn.iter(f"{SVG}polyline"):
        assert all(0 <= x <= panel_svg.WIDTH and 0 <= y <= panel_svg.HEIGHT for x, y in points(line))


def test_bars_are_to_one_scale() -> None:
    drawn = drawing(panel_svg.bars([series("a", 1, 4), series("b", 2, None), series("c", None)], "watt"))
    widths = [float(bar.attrib["width"]) for bar in drawn.iter(f"{SVG}rect")]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01) and widths[2] == 1
    labels = [text.text for text in drawn.iter(f"{SVG}text")]
    assert labels == ["a", "4 W", "b", "2 W", "c", "no number"]


def test_a_page_has_title_query_and_data_of_every_panel() -> None:
    text = page(
        panel("stat", series("", 0.4, 0.82), title="Held", unit="percentunit"),
        panel("timeseries", series("vision", 1, 2, 3), title="Busy", more=4),
        panel("table", series("job=a", 0.1), title="Idle"),
        panel("timeseries", title="Empty"),
    )
    for title in ("Held", "Busy", "Idle", "Empty"):
        assert f">{title}</h2>" in text and f"sum({title})" in text
    assert "82 %" in text and "4 further series" in text and text.count("No data.") == 1
    assert len(re.findall("<polyline", text)) == 1 and len(re.findall('<rect class="bar"', text)) == 1
    assert "1 January 1970, 00:17 UTC" in text  # 1000 s and two steps of 20 s


def test_whatever_a_label_says_is_text() -> None:
    text = page(*(panel(kind, series(NASTY, 1, 2), title=NASTY) for kind in ("stat", "timeseries", "table")))
    assert "<script" not in text and "\x00" not in text
    for drawn in re.findall("<svg.*?</svg>", text, re.S):
        drawing(drawn)


def test_the_report_links_the_pages_and_leaves_the_numbers_to_them(tmp_path: Path) -> None:
    run = seen(panel("stat", series("", 0.82), unit="percentunit"))
    assert "dashboard-cluster.html" in {path.name for path in writer.write(run, tmp_path)}
    report = (tmp_path / "report.html").read_text()
    assert 'href="dashboard-cluster.html"' in report and "0.82" not in report
    kept = json.loads((tmp_path / "summary.json").read_text())["checks"][0]["figures"]["dashboards"]
    assert kept["boards"][0]["panels"][0]["queries"][0]["series"][0]["values"] == [0.82]
    assert dashboards.render(run_of()) == {} and "Dashboards" not in html.render(run_of())


@pytest.mark.parametrize(
    ("value", "unit", "due"),
    [
        (0.825, "percentunit", "82.5 %"), (97, "percent", "97 %"), (3, "short", "3"), (1234, "short", "1234"),
        (25_400, "short", "25.4 k"), (0.0345, "short", "0.0345"), (1536, "bytes", "1.5 KiB"), (0, "bytes", "0 B"),
        (8192, "decmbytes", "7.63 GiB"), (2 * 2**20, "Bps", "2 MiB/s"), (0.25, "s", "250 ms"), (90, "s", "90 s"),
        (-5, "s", "-5.0 s"), (12, "ms", "12 ms"), (2500, "ms", "2.5 s"), (41, "celsius", "41 °C"), (0, "s", "0 s"),
        (5, "reqps", "5/s"), (0.5, "cores", "0.5 cores"),
    ],
)  # fmt: skip
def test_numbers_have_their_unit(value: float, unit: str, due: str) -> None:
    assert units.shown(value, unit) == due


def pod(option: str, part: str, cores: float, memory: float, ready: float = 3.0) -> dict[str, Any]:
    return {"option": option, "part": part, "pod": f"{part}-0", "cores": cores, "memory_mib": memory,
            "limit_mib": 256, "ready_s": ready}  # fmt: skip


def test_costs_are_summed_by_part_and_option_and_drawn() -> None:
    pods = [pod("logs", "logs", 0.01, 40), pod("logs", "logs", 0.02, 60, 9), pod("monitoring", "prometheus", 0.2, 300)]
    run = run_of(Check("seeing.costs", "costs", "passed", figures={"costs": pods}))
    rows = {(row["option"], row["what"]): row for row in costs.table(run)}
    assert list(rows) == [("logs", "logs"), ("logs", "all"), ("monitoring", "prometheus"), ("monitoring", "all")]
    row = rows["logs", "all"]
    assert (row["pods"], row["cores"], row["memory_mib"], row["ready_s"]) == (2, 0.03, 100, 9)
    text = html.render(run)
    Page(text)
    assert "What options cost" in text and text.count('<rect class="bar"') == 4 and "300 MiB" in text
    for told in (text, html.junit(run), console.render(run)):
        assert "memory_mib" not in told  # in no cell of the table of checks
    assert costs.drawn(run_of()) == "" and "What options cost" not in html.render(run_of())
