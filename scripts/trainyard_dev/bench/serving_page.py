"""What `serving` measured, as JSON, as a table and as a plot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from trainyard_dev.bench import plots, tables
from trainyard_dev.bench.serving import CONNECTIONS, FORMS, LIBRARY, ROWS, Found

NAME, WITH_GPU = "serving", "serving-gpu"


def write(found: Found, folder: Path) -> Path:
    """Writes all figures as JSON, and the medians as a plot beside them; returns the former's path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{WITH_GPU if found.gpu else NAME}.json"
    file.write_text(json.dumps(asdict(found), indent=1) + "\n")
    title = f"A request of {ROWS[-1]} images, one at a time: half are answered within"
    plots.bars(file.with_suffix(".svg"), _medians(found), title=title, y="ms", log_y=True)
    return file


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


def _medians(found: Found) -> Mapping[str, Mapping[str, tuple[float]]]:
    """Model -> who and form -> ms."""
    groups: dict[str, dict[str, tuple[float]]] = {}
    for one in found.figures:
        if one.rows == ROWS[-1] and one.connections == CONNECTIONS[0]:
            name = f"{one.who}, {one.form}" if one.form else "the bare library"
            groups.setdefault(one.model.replace(", ", ",\n"), {})[name] = (one.latency_ms["50"],)
    return groups
