"""The cost of options on a run's cluster: a row for each part, and its drawing."""

from typing import Any

from trainyard_dev.report import panel_svg, templates
from trainyard_dev.report.model import COSTS, Run


def table(run: Run) -> list[dict[str, Any]]:
    """A row for each part of an option, followed by the sum of the option; empty if no check measured it.

    The figure `costs` of a check has one entry a pod,
    `[{"option", "part", "pod", "cores", "memory_mib", "limit_mib", "ready_s"}]`:
    cores are the mean over the measurement, memory is the working set, limits and seconds are of a pod.
    """
    pods = [pod for check in run.checks for pod in check.figures.get(COSTS, [])]
    rows = []
    for option in dict.fromkeys(pod["option"] for pod in pods):
        mine = [pod for pod in pods if pod["option"] == option]
        for part in dict.fromkeys(pod["part"] for pod in mine):
            rows.append(_row(option, part, [pod for pod in mine if pod["part"] == part]))
        rows.append({**_row(option, "all", mine), "limit_mib": 0})
    return rows


def _row(option: str, what: str, pods: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "option": option,
        "what": what,
        "pods": len(pods),
        "cores": round(sum(pod["cores"] for pod in pods), 4),
        "memory_mib": round(sum(pod["memory_mib"] for pod in pods), 1),
        "limit_mib": max(pod["limit_mib"] for pod in pods),
        "ready_s": max(pod["ready_s"] for pod in pods),
    }


def drawn(run: Run) -> str:
    """Cores and memory of each part as bars; "" if no check measured it."""
    parts = [row for row in table(run) if row["what"] != "all"]
    if not parts:
        return ""

    def series(key: str, factor: float) -> list[dict[str, Any]]:
        return [{"name": f"{row['what']} ({row['pods']} pods)", "values": [row[key] * factor]} for row in parts]

    cores = panel_svg.bars(series("cores", 1), "cores")
    return templates.render("costs.html", drawings=[cores, panel_svg.bars(series("memory_mib", 2**20), "bytes")])
