"""A page for each dashboard that a run has queried: its panels with their queries, and the results, drawn."""

from trainyard_dev.report import html, panel_svg, templates
from trainyard_dev.report.model import Run


def render(run: Run) -> dict[str, str]:
    """The pages by file name; none for a run without such a check.

    The source is the figure `dashboards` of a check, in the form of `trainyard_dev.e2e.panel_data.shown`.
    """
    return {
        file: templates.render(
            "dashboard.html",
            board=page["board"],
            ended=page["from"] + page["step"] * (page["count"] - 1),
            panels=[_panel(panel, float(page["step"])) for panel in page["board"]["panels"]],
        )
        for file, page in html.pages(run).items()
    }


def _panel(panel: dict, step: float) -> dict:
    """A panel in the form that the template needs: the drawing, and a row for each series."""
    series = [one for query in panel["queries"] for one in query["series"]]
    rows = [
        {"name": one["name"], "colour": panel_svg.colour(index), "said": panel_svg.last_value(one, panel["unit"])}
        for index, one in enumerate(series)
    ]
    drawn = ""
    if series and panel["type"] == "timeseries":
        drawn = panel_svg.lines(series, panel["unit"], step)
    elif series and panel["type"] in ("bargauge", "table"):
        drawn = panel_svg.bars(series, panel["unit"])
    more = sum(query["more"] for query in panel["queries"])
    return {**panel, "rows": rows, "drawn": drawn, "more": more}
