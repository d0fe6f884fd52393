"""Figures of several machines in one publication: what was measured elsewhere stays, and gets more seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainyard_dev.bench import configurations, registry, runner
from trainyard_dev.bench.results import Figure, Result, Run, ranges, rounded, seeds_by_group
from trainyard_dev.bench.summary import Summary

Held = dict[str, set[int]]  # group -> seeds


def held(published: Summary, planned: Sequence[Run]) -> Held:
    """What the publication holds of today's plan: same settings, configuration and versions of programs."""
    today = {run.group for run in {run.group: run for run in planned}.values() if _still(published, run)}
    found: Held = {}
    for one in published.figures:
        if one.group in today:
            found.setdefault(one.group, set()).update(one.seeds)
    return found


def left(published: Summary, planned: Sequence[Run]) -> list[Run]:
    """The runs that the publication does not hold, or all of a bench in real time where it does not hold all."""
    there = held(published, planned)
    lacking = {run for run in planned if run.seed not in there.get(run.group, ())}
    whole = {run.bench for run in lacking if not registry.load(run.bench).POOLED}
    return [run for run in planned if run in lacking or run.bench in whole]


def adding(published: Summary, planned: Sequence[Run], results: Sequence[Result]) -> list[Result]:
    """Those of the results that change the publication.

    Where it holds seeds that are not here, it keeps those that are both there and here: a mean can't be taken apart.
    """
    there, measured = held(published, planned), seeds_by_group(results)
    return [
        one
        for one in results
        if not registry.load(one.run.bench).POOLED
        or (known := there.get(one.run.group, set())) <= measured[one.run.group]
        or one.run.seed not in known
    ]


def pool(published: Summary, here: Summary, planned: Sequence[Run], results: Sequence[Result]) -> Summary:
    """`here` with what the publication holds beside it; `results`, of `adding`, are those that `here` was made of.

    Where both have a configuration, other seeds are added, and figures of the same seeds are those measured here. A
    bench in real time is taken from here alone, if there is anything of it.
    """
    alone = {one.run.bench for one in results if not registry.load(one.run.bench).POOLED}
    before = held(published, planned)
    there = {group: seeds for group, seeds in before.items() if _bench(group) not in alone}
    if not there:
        return here
    measured = seeds_by_group(results)
    ours, theirs = ({one.id: one for one in found.figures} for found in (here, published))
    figures = []
    for name in dict.fromkeys([*theirs, *ours]):
        old, new = theirs.get(name), ours.get(name)
        if old and not _stays(old, there):
            old = None
        if made := _one(old, new, _seeds(old, new, there), _seeds(new, old, measured)):
            figures.append(made)
    kept = {run.column for run in planned if run.group in there}
    known = here.configurations | {name: said for name, said in published.configurations.items() if name in kept}
    seeds = {group: there.get(group, set()) | measured.get(group, set()) for group in {*there, *measured}}
    counts = {name: sum(len(of) for group, of in seeds.items() if _bench(group) == name) for name in registry.names()}
    counts = {name: count for name, count in counts.items() if count}
    new = [one for one in results if one.run.seed not in before.get(one.run.group, ())]
    return replace(
        here,
        machines=sorted({*published.machines, *here.machines}),
        programs=published.programs | here.programs,
        configurations={name: known[name] for name in configurations.configurations() if name in known},
        runs=counts,
        planned={name: sum(run.bench == name for run in planned) for name in counts},
        settings={run.group: run.settings_digest for run in planned if run.group in seeds},
        drawn={group: said for group, said in published.drawn.items() if group in there},
        seconds=round(published.seconds + sum(one.seconds for one in new)),
        figures=_sorted(figures, planned),
    )


def _one(old: Figure | None, new: Figure | None, there: set[int], here: set[int]) -> Figure | None:
    """What to publish of one figure whose configuration was measured with these seeds there and here."""
    if not there and not here:
        return new or old
    if there <= here:
        return new
    if here <= there:
        return old
    if old is None or new is None:
        return None  # some of the runs can't have it, as a makespan where jobs never end
    if set(old.seeds) & set(new.seeds):
        return max(new, old, key=lambda one: len(one.seeds))
    return _added(old, new)


def _added(old: Figure, new: Figure) -> Figure:
    """The figure over the seeds of both: a figure is the mean over its seeds, and so is its limit."""
    seeds = sorted([*old.seeds, *new.seeds])

    def mean(first: float, second: float) -> float:
        return rounded((first * len(old.seeds) + second * len(new.seeds)) / len(seeds))

    return replace(
        new,
        value=mean(old.value, new.value),
        bound=None if old.bound is None or new.bound is None else mean(old.bound, new.bound),
        seeds=seeds,
        low=min(old.low, new.low),
        high=max(old.high, new.high),
        command=new.command.rpartition(" ")[0] + f" {ranges(seeds)}",
    )


def _sorted(figures: list[Figure], planned: Sequence[Run]) -> list[Figure]:
    """As `summary.build` has them: by bench, metric as it first comes, then in the order of the plan."""
    places = {group: place for place, group in enumerate(dict.fromkeys(run.group for run in planned))}
    metrics = {name: place for place, name in enumerate(dict.fromkeys((one.bench, one.metric) for one in figures))}
    benches = {name: place for place, name in enumerate(registry.names())}
    return sorted(
        figures,
        key=lambda one: (benches[one.bench], metrics[one.bench, one.metric], places.get(one.group, len(places))),
    )


def _stays(old: Figure, there: Held) -> bool:
    """Whether a published figure is still wanted: of what holds; what no run measured, while its bench has any."""
    if f"--column {old.column} " in old.command:
        return old.group in there
    return any(_bench(group) == old.bench for group in there)


def _seeds(figure: Figure | None, other: Figure | None, measured: Held) -> set[int]:
    """Those that the figure's configuration was measured with, whether or not they gave the figure."""
    either = figure or other
    return set(measured.get(either.group, figure.seeds if figure else ())) if either else set()


def _still(published: Summary, run: Run) -> bool:
    said = published.configurations.get(run.column)
    if said is None or published.settings.get(run.group) != run.settings_digest:
        return False
    now = runner.today(run)
    return now is not None and said["digest"] == now[0] and now[1].items() <= published.programs.items()


def _bench(group: str) -> str:
    return group.partition(".")[0]
