"""What `serving` measured: figures to keep, a table, and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trainyard_dev.bench import plots, summary, tables
from trainyard_dev.bench.results import Figure
from trainyard_dev.bench.serving import CONNECTIONS, FORMS, LIBRARY, Found

NAME, WITH_GPU = "serving", "serving-gpu"
MOST_ROWS, ONE = "32 rows", "1 connection"


def write(found: Found, folder: Path) -> Path:
    """Writes all figures, and the medians as a plot beside them; returns the former's path."""
    bench, command = WITH_GPU if found.gpu else NAME, "bin/trainyard bench serving"
    figures = []
    for one in found.figures:
        several = f"{one.connections} connection{'s' if one.connections > 1 else ''}"
        case, column = f"{one.model}, {one.rows} rows, {several}", f"{one.who}, {one.form}".removesuffix(", ")
        said = {"per_second": (one.per_second, "1/s"), "cpu_ms": (one.cpu_ms, "ms")}
        said |= {f"p{share}_ms": (value, "ms") for share, value in one.latency_ms.items()}
        said["failed"] = (float(sum(one.failed.values())), "requests")
        for metric, (value, unit) in said.items():
            figures.append(Figure.once(bench, case, column, metric, value, unit, command))
    for who, mib in found.memory_mib.items():
        figures.append(Figure.once(bench, "in memory", who, "mib", mib, "MiB", command))
    file = summary.write_made(figures, folder, "; ".join(filter(None, (found.machine, found.gpu))))
    draw(figures, folder)
    return file


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """The medians of a large request, one at a time; `figures` are of one file."""
    medians = [one for one in figures if one.metric == "p50_ms" and one.case.endswith(f"{MOST_ROWS}, {ONE}")]
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in medians:
        groups.setdefault(one.case.rpartition(f", {MOST_ROWS}")[0].replace(", ", ",\n"), {})[one.column] = (one.value,)
    title = f"A request of {MOST_ROWS.split()[0]} images, one at a time: half are answered within"
    plots.bars(folder / f"{figures[0].bench}.svg", groups, title=title, y="ms", log_y=True)


def table(found: Found) -> str:
    """A line for each model, server and number of rows; latencies of one connection, requests a second of several."""
    alone, many = CONNECTIONS
    heads = ["model", "who", "rows", "library ms"]
    heads += [f"{form} {what}" for form in FORMS for what in ("p50 ms", "p99 ms", "CPU ms", "requests/s", "failed")]
    lines = []
    at = {(one.model, one.who, one.form, one.rows, one.connections): one for one in found.figures}
    for model, who, rows in dict.fromkeys(
        (one.model, one.who, one.rows) for one in found.figures if one.who != LIBRARY
    ):
        line = [model, who, str(rows), f"{at[model, LIBRARY, '', rows, 1].latency_ms['50']:.2f}"]
        for form in FORMS:
            single, several = (at[model, who, form, rows, connections] for connections in (alone, many))
            failed = sum(single.failed.values()) + sum(several.failed.values())
            line += [f"{single.latency_ms[share]:.2f}" for share in ("50", "99")]
            line += [f"{single.cpu_ms:.2f}", f"{several.per_second:,.0f}", str(failed)]
        lines.append(line)
    return tables.markdown(heads, lines)
