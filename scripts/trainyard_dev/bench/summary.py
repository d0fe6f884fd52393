"""Published figures: a CSV file for each bench, each row with its versions and settings; page and plots follow."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev import recorded
from trainyard_dev.bench import configurations, environment, registry
from trainyard_dev.bench.results import Figure, Result, numbers, ranges
from trainyard_dev.versions import load

FOLDER = ROOT / "docs" / "benchmarks"
MEASURED = ("case", "column", "metric", "value", "low", "high", "bound", "unit", "seeds")
NONE = "none"  # as overlay: the configuration uses no values of the chart


@dataclass(frozen=True)
class Source:
    """Versions and settings with which a figure was measured.

    `versions`: programs as `kubernetes 1.34.2, …`; `overlay`: values of the chart under ours; `digest`: of the
    parsed configuration.
    """

    versions: str
    overlay: str
    digest: str
    machine: str
    commit: str
    day: str
    command: str


@dataclass(frozen=True)
class Summary:
    """Figures, and their sources by id."""

    figures: list[Figure]
    sources: dict[str, Source]

    def of(self, bench: str) -> list[Figure]:
        """The figures of one bench."""
        return [figure for figure in self.figures if figure.bench == bench]


def build(results: Sequence[Result]) -> Summary:
    """The figures of these results, bench by bench in the order of the page."""
    by_group = {one.run.group: one for one in results}
    figures = []
    for name in registry.BENCHES:
        if found := [one for one in results if one.run.bench == name]:
            figures += registry.load(name).figures(found)
    return Summary(figures, {one.id: source(one, by_group.get(one.group)) for one in figures})


def source(figure: Figure, measured: Result | None = None) -> Source:
    """The source for this tree and machine today; `measured`: a run of the figure's, None for a figure without runs."""
    programs = environment.programs(measured.versions) if measured else {}
    versions = ", ".join(f"{name} {said.lstrip('v')}" for name, said in {**_tree(), **programs}.items())
    ours = measured is not None and figure.column.startswith("ours")
    overlay = configurations.OVERLAY.relative_to(ROOT).as_posix() if ours else NONE
    digest = measured.digest if measured else ""
    day = datetime.now(UTC).date().isoformat()
    return Source(versions, overlay, digest, environment.machine(), recorded.commit(ROOT, ()), day, figure.command)


def _tree() -> dict[str, str]:
    return {"trainyard": str(load().raw["trainyard"])}


def merged(before: Summary, new: Summary) -> Summary:
    """Merges by bench: new figures replace those of the same id; other published ones follow."""
    ids = {one.id for one in new.figures}
    figures = [*new.figures, *(one for one in before.figures if one.id not in ids)]
    order = {name: place for place, name in enumerate(registry.BENCHES)}
    figures.sort(key=lambda one: order[one.bench])
    return Summary(figures, {one.id: (new if one.id in ids else before).sources[one.id] for one in figures})


def write(summary: Summary, folder: Path | None = None) -> list[Path]:
    """A file for each bench, in `FOLDER` or another. Raises TrainyardError where two figures have the same id."""
    ids = [figure.id for figure in summary.figures]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise TrainyardError(f"two figures have the name {twice[0]}", hint="give each metric of a bench its own name")
    folder = folder or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for bench in dict.fromkeys(one.bench for one in summary.figures):
        files.append(folder / f"{bench}.csv")
        with files[-1].open("w", newline="") as stream:
            out = csv.writer(stream, lineterminator="\n")
            out.writerow([*MEASURED, *(one.name for one in fields(Source))])
            for figure in summary.of(bench):
                said = {**asdict(figure), "seeds": ranges(figure.seeds)}
                cells = ["" if said[name] is None else said[name] for name in MEASURED]
                out.writerow([*cells, *asdict(summary.sources[figure.id]).values()])
    return files


def write_made(figures: Sequence[Figure], folder: Path, machine: str = "") -> Path:
    """Writes figures of one bench made just now; returns the file. `machine`: this machine's description."""
    sources = {one.id: source(one) for one in figures}
    if machine:
        sources = {name: replace(one, machine=machine) for name, one in sources.items()}
    [file] = write(Summary(list(figures), sources), folder)
    return file


def read(folder: Path | None = None, benches: Iterable[str] = ()) -> Summary:
    """Reads what `write` wrote for these benches; without any, for all of the page. Raises TrainyardError."""
    figures, sources = list[Figure](), dict[str, Source]()
    for bench in benches or registry.BENCHES:
        file = (folder or FOLDER) / f"{bench}.csv"
        try:
            with file.open(newline="") as stream:
                for row in csv.DictReader(stream):
                    one = _figure(bench, row)
                    figures.append(one)
                    sources[one.id] = Source(**{name.name: row[name.name] for name in fields(Source)})
        except (OSError, ValueError, KeyError, TypeError) as error:
            why = getattr(error, "strerror", None) or f"it holds no figures: {error}"
            raise TrainyardError(f"can't be read: {why}", where=str(file), hint="restore it from Git") from None
    return Summary(figures, sources)


def _figure(bench: str, row: dict[str, str]) -> Figure:
    case, column, metric, *amounts, bound, unit, seeds = (row[name] for name in MEASURED)
    value, low, high = map(float, amounts)
    limit = float(bound) if bound else None
    return Figure(bench, case, column, metric, value, low, high, limit, unit, numbers(seeds), row["command"])


def unproved(summary: Summary) -> list[str]:
    """Ids of figures that lack the versions and overlay with which they were measured."""
    return [one for one, said in summary.sources.items() if not (said.versions and said.overlay)]


def moved(summary: Summary, bench: str) -> list[str]:
    """Programs whose versions in this tree differ from those of a bench, as `kubernetes 1.36.4`."""
    pins = _tree() | {name: tool.number for name, tool in load().tools.items()}
    found = {}
    for figure in summary.of(bench):
        for said in filter(None, summary.sources[figure.id].versions.split(", ")):
            name, _, version = said.partition(" ")
            if name in pins and pins[name] != version:
                found[name] = pins[name]
    return [f"{name} {version}" for name, version in found.items()]


def outdated(summary: Summary) -> list[str]:
    """Our configurations whose rendered text has changed since they were measured."""
    today = configurations.configurations()
    ours = {one.column: summary.sources[one.id].digest for one in summary.figures if one.column.startswith("ours")}
    return [name for name, digest in ours.items() if name not in today or today[name].digest != digest]
