"""All figures in one file, with what they were measured with: what the page is made from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.bench import configurations, environment, registry
from trainyard_dev.bench.results import Figure, Result, Run, numbers, ranges, seeds_by_group
from trainyard_dev.versions import load

FILE = "summary.json"


@dataclass(frozen=True)
class Summary:
    """What is published.

    `configurations`: name -> its label and digest; `runs`: bench -> how many were measured, `planned`: of how many;
    `failed`: ids of runs that ended in an error; `settings`: group of runs -> digest of what its case means; `drawn`:
    group -> seeds, in words, with which the curves of its bench were drawn; `plots`: names of the files.
    """

    trainyard: str
    made: str  # the day, UTC
    machines: list[str]
    programs: dict[str, str]
    configurations: dict[str, dict[str, str]]
    runs: dict[str, int]
    planned: dict[str, int]
    failed: list[str]
    settings: dict[str, str]
    drawn: dict[str, str]
    plots: list[str]
    seconds: float  # of all runs
    figures: list[Figure]

    def of(self, bench: str) -> list[Figure]:
        """The figures of one bench."""
        return [figure for figure in self.figures if figure.bench == bench]


def build(results: Sequence[Result], planned: Sequence[Run], failed: Iterable[str] = ()) -> Summary:
    """The figures of these results, bench by bench in the order of the page; `planned`: all runs that were wanted."""
    by_bench = {name: [one for one in results if one.run.bench == name] for name in registry.names()}
    by_bench = {name: found for name, found in by_bench.items() if found}
    used = {one.run.column: one.digest for one in results}
    return Summary(
        trainyard=load().raw["trainyard"],
        made=datetime.now(UTC).date().isoformat(),
        machines=sorted({one.versions[environment.MACHINE] for one in results}),
        programs={name: version for one in results for name, version in environment.programs(one.versions).items()},
        configurations={
            name: {"label": column.label, "digest": used[name]}
            for name, column in configurations.configurations().items()
            if name in used
        },
        runs={name: len(found) for name, found in by_bench.items()},
        planned={name: sum(run.bench == name for run in planned) for name in by_bench},
        failed=sorted(failed),
        settings={one.run.group: one.run.settings_digest for one in results},
        drawn={},
        plots=[],
        seconds=round(sum(one.seconds for one in results)),
        figures=[figure for name, found in by_bench.items() for figure in registry.load(name).figures(found)],
    )


def draw(made: Summary, results: Sequence[Result], folder: Path) -> Summary:
    """Draws all plots; the summary with their names.

    The curves of a bench take the place of earlier ones where these results have every run that those were drawn with,
    and else stay. What needs figures alone is always drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, str] = {}
    for name in registry.names():
        before = {group: said for group, said in made.drawn.items() if group.startswith(f"{name}.")}
        found = [one for one in results if one.run.bench == name]
        here = seeds_by_group(found)
        if any(not set(numbers(said)) <= here.get(group, set()) for group, said in before.items()):
            found = []
        else:
            before = {group: ranges(sorted(seeds)) for group, seeds in here.items()}
            for old in folder.glob(f"{name}-*.svg"):
                old.unlink()
        if figures := made.of(name):
            registry.load(name).draw(figures, found, folder)
        drawn |= before
    return replace(made, drawn=drawn, plots=sorted(file.name for file in folder.glob("*.svg")))


def write(summary: Summary, file: Path) -> None:
    """One figure a line. Raises TrainyardError where two figures have the same id."""
    ids = [figure.id for figure in summary.figures]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise TrainyardError(f"two figures are called {twice[0]}", hint="give each metric of a bench its own name")
    head = {key: value for key, value in asdict(summary).items() if key != "figures"}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        json.dumps(head, indent=1).removesuffix("\n}") + ',\n "figures": [\n' + _lines(summary) + "\n ]\n}\n"
    )


def read(file: Path) -> Summary:
    """What `write` wrote. Raises TrainyardError for a file that is absent or something else."""
    try:
        data: dict[str, Any] = json.loads(file.read_text())
        return Summary(**(data | {"figures": [Figure(**figure) for figure in data["figures"]]}))
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = getattr(error, "strerror", None) or "it is no summary of benchmarks"
        raise TrainyardError(
            f"can't be read: {why}", where=str(file), hint="run `make bench`, then `bin/trainyard bench publish`"
        ) from None


def outdated(summary: Summary) -> list[str]:
    """Our configurations that were measured with another rendered text than the chart's of today."""
    today = configurations.configurations()
    ours = {name: said["digest"] for name, said in summary.configurations.items() if name.split("-")[0] == "ours"}
    return [name for name, digest in ours.items() if name not in today or today[name].digest != digest]


def _lines(summary: Summary) -> str:
    return ",\n".join(f"  {json.dumps(asdict(figure), ensure_ascii=False)}" for figure in summary.figures)
