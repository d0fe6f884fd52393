"""Figures as Markdown tables: configurations as rows, the limit next to the measurements, the spread in brackets."""

from collections.abc import Mapping, Sequence

from trainyard_dev.bench.results import Figure

LACKING = "–"


def find(figures: Sequence[Figure], case: str, column: str, metric: str) -> Figure | None:
    """Finds the figure of this case, configuration and metric; None where it was not measured."""
    wanted = (case, column, metric)
    return next((one for one in figures if (one.case, one.column, one.metric) == wanted), None)


def cases(figures: Sequence[Figure]) -> list[str]:
    """Names of all cases in order of appearance."""
    return list(dict.fromkeys(one.case for one in figures))


def configurations(figures: Sequence[Figure], case: str = "") -> list[str]:
    """Names of all configurations, or of one case's, in order of appearance."""
    return list(dict.fromkeys(one.column for one in figures if not case or one.case == case))


def by_column(figures: Sequence[Figure], case: str, metrics: Mapping[str, str], *, bounds: bool = True) -> str:
    """One case: a row for each configuration, a column for each metric (metric -> heading).

    With `bounds` a last row holds the limits of those metrics that have one limit for all configurations.
    """
    there = [m for m in metrics if any(one.case == case and one.metric == m for one in figures)]
    head = ["configuration", *(metrics[m] for m in there)]
    rows = [
        [f"`{column}`", *(cell(find(figures, case, column, m)) for m in there)]
        for column in configurations(figures, case)
    ]
    limits = [_limit([one for one in figures if (one.case, one.metric) == (case, m)]) for m in there]
    if bounds and any(limits):
        rows.append(["*limit*", *(limit or LACKING for limit in limits)])
    return markdown(head, rows)


def by_case(figures: Sequence[Figure], metric: str) -> str:
    """One metric: a row for each configuration, a column for each case, the limits in the last row."""
    found = [one for one in figures if one.metric == metric]
    rows = [
        [f"`{name}`", *(cell(find(found, case, name, metric)) for case in cases(found))]
        for name in configurations(found)
    ]
    limits = [_limit([one for one in found if one.case == case]) for case in cases(found)]
    if any(limits):
        rows.append(["*limit*", *(limit or LACKING for limit in limits)])
    return markdown(["configuration", *cases(found)], rows)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, numbers to the right: all but the first column."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cell(figure: Figure | None) -> str:
    """Value and unit-less spread over the seeds: `97.2 (96.8–97.9)`; a dash where nothing was measured."""
    if figure is None:
        return LACKING
    ends = number(figure.low), number(figure.high)
    mean = number(figure.value)
    return mean if set(ends) == {mean} else f"{mean} ({ends[0]}–{ends[1]})"


def number(value: float) -> str:
    """Formats a number with three to four digits: 0, 0.034, 3.21, 97.2, 1,234, 21.6 million."""
    size = abs(value)
    if size >= 1e7:
        return f"{value / 1e6:,.1f} million"
    if size >= 1000 or value == round(value):
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.2g}"


def _limit(figures: Sequence[Figure]) -> str:
    """The common limit, else the range of limits; empty where there is none."""
    bounds = {number(one.bound): one.bound for one in figures if one.bound is not None}
    limits = sorted(bounds, key=bounds.__getitem__)
    if not limits:
        return ""
    return limits[0] if len(limits) == 1 else f"{limits[0]}–{limits[-1]}"
