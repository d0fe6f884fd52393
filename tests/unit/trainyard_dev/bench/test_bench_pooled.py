"""A publication to which other machines add: what stays, what is joined, what is drawn anew, what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard_dev.bench import environment, page, pooled, registry, runner, summary
from trainyard_dev.bench.results import Result, Run, summarise
from trainyard_dev.bench.summary import Summary

Bench = SimpleNamespace


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions of today."""
    today = {"volcano": "v1.2.3"}
    monkeypatch.setattr(environment, "versions", lambda scheduler: today | {"machine": "here"})
    return today


def plan() -> list[Run]:
    return registry.plan("fake", True)


def measured(bench: Bench, ids: Iterable[str], machine: str = "here", **others: float) -> list[Result]:
    """Results of these runs, each `used` by its seed."""
    return [
        Result(
            run, {"used": 90.0 + 3 * run.seed} | others, {"curve": [[0.0, 1.0]]},
            bench.configurations[run.column].digest, {"volcano": "v1.2.3", "machine": machine}, 60.0, run.command,
        )
        for run in plan() if run.id in {f"fake.{name}" for name in ids}
    ]  # fmt: skip


def published(results: list[Result]) -> Summary:
    return summary.build(results, plan())


def join(old: list[Result], new: list[Result]) -> Summary:
    return added(published(old), new)


def added(before: Summary, results: list[Result]) -> Summary:
    """What is published of these results after another publication."""
    new = pooled.adding(before, plan(), results)
    return pooled.pool(before, published(new), plan(), new)


SOME = ("small.ours.s1", "small.kube-default.s1", "large.ours.s1", "large.ours.s2")
REST = ("small.ours.s2", "small.kube-default.s2", "large.kube-default.s1", "large.kube-default.s2")


def test_in_parts_the_figures_are_those_of_all_at_once(fake_bench: Bench) -> None:
    old, new = measured(fake_bench, SOME, "there"), measured(fake_bench, REST)
    made, whole = join(old, new), published(measured(fake_bench, SOME + REST))
    assert made.figures == whole.figures
    assert (made.runs, made.planned, made.seconds) == (whole.runs, whole.planned, whole.seconds)
    assert (made.settings, made.configurations) == (whole.settings, whole.configurations)
    assert made.machines == ["here", "there"]
    [first, *_] = made.figures
    assert (first.value, first.low, first.high, first.seeds) == (94.5, 93.0, 96.0, [1, 2])
    assert first.command == "bin/trainyard bench replay fake --case small --column ours --seed 1-2"


def test_joined_twice_it_is_the_same(fake_bench: Bench) -> None:
    old, new = measured(fake_bench, SOME), measured(fake_bench, REST)
    once = join(old, new)
    assert added(once, new) == once


def test_seed_by_seed_none_gets_lost(fake_bench: Bench) -> None:
    first = fake_bench.plan(True)
    fake_bench.plan = lambda full: (
        first + [replace(one, seed=seed) for one in first if one.seed == 1 for seed in (3, 4)]
    )
    ids = [f"small.ours.s{seed}" for seed in (1, 2, 3, 4)]
    made = published(measured(fake_bench, ids[:1], "there"))
    for count in (2, 3, 4):  # what was measured here is still here when more is published
        made = added(made, measured(fake_bench, ids[1:count]))
    assert made.figures == published(measured(fake_bench, ids)).figures
    assert (made.runs, made.seconds) == ({"fake": 4}, 240)


def test_the_same_seeds_measured_anew_take_the_place_of_the_old(fake_bench: Bench) -> None:
    old, new = measured(fake_bench, SOME), measured(fake_bench, SOME)
    for one in new:
        one.values["used"] += 1
    assert [one.value for one in join(old, new).figures] == [one.value for one in published(new).figures]


def test_fewer_of_the_same_seeds_do_not(fake_bench: Bench) -> None:
    [new] = measured(fake_bench, ["large.ours.s2"])
    new.values["used"] = 1.0
    old = measured(fake_bench, SOME)
    assert join(old, [new]).figures == published(old).figures


def test_what_only_a_part_of_the_runs_has_is_no_figure_of_all(fake_bench: Bench) -> None:
    fake_bench.figures = lambda results: [one for name in ("used", "end") for one in summarise(results, name, "%", 100)]
    old, new = measured(fake_bench, ["small.ours.s1"], end=5.0), measured(fake_bench, ["small.ours.s2"])
    assert [one.metric for one in join(old, new).figures] == ["used"]


def test_what_no_longer_holds_is_not_published(fake_bench: Bench, programs: dict[str, str]) -> None:
    old = published(measured(fake_bench, SOME))
    new = measured(fake_bench, ["small.ours.s2"])
    [mine] = published(new).figures

    def kept(changed: Summary = old) -> list[str]:
        figures = pooled.pool(changed, published(new), plan(), new).figures
        return [f"{one.case}.{one.column}" for one in figures if one != mine]

    assert kept() == ["small.ours", "small.kube-default", "large.ours"]
    assert kept(replace(old, settings=old.settings | {"fake.large.ours": "another"})) == kept()[:2]
    programs["volcano"] = "v1.3.0"
    assert kept() == []
    programs["volcano"] = "v1.2.3"
    fake_bench.configurations["kube-default"] = replace(fake_bench.configurations["kube-default"], config="another")
    assert kept() == ["small.ours", "large.ours"]


def test_figures_in_real_time_are_of_one_machine(fake_bench: Bench) -> None:
    fake_bench.POOLED = False
    old = published(measured(fake_bench, SOME))
    new = measured(fake_bench, ["small.ours.s2"])
    made = pooled.pool(old, published(new), plan(), new)
    assert [one.seeds for one in made.figures] == [[2]], "the others are of another machine"
    assert pooled.pool(old, published([]), plan(), []).figures == old.figures
    assert pooled.left(old, plan()) == plan(), "what is lacking can't be measured alone"
    assert pooled.left(published(measured(fake_bench, SOME + REST)), plan()) == []


def test_a_run_is_counted_once_however_often_it_is_published(
    fake_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = SimpleNamespace(**vars(fake_bench) | {"POOLED": False})
    monkeypatch.setattr(registry, "names", lambda: ["fake", "timed"])
    monkeypatch.setattr(registry, "load", {"fake": fake_bench, "timed": timed}.__getitem__)
    new = [replace(one, run=replace(one.run, bench="timed")) for one in measured(fake_bench, ["small.ours.s2"])]
    planned = [*plan(), new[0].run]
    old, here = published(measured(fake_bench, SOME)), summary.build(new, planned)
    made = pooled.pool(old, here, planned, new)
    assert made.runs == {"fake": 4, "timed": 1}
    assert made.seconds == old.seconds + 60
    assert pooled.pool(made, here, planned, new) == made


def test_curves_stay_until_all_their_runs_are_here(fake_bench: Bench, tmp_path: Path) -> None:
    old = summary.draw(published(measured(fake_bench, SOME)), measured(fake_bench, SOME), tmp_path)
    assert old.drawn["fake.large.ours"] == "1-2"
    new = measured(fake_bench, REST)
    made = summary.draw(pooled.pool(old, published(new), plan(), new), new, tmp_path)
    assert (tmp_path / "fake-curve.svg").read_text() == "4 runs"
    assert (tmp_path / "fake-bars.svg").read_text() == "[94.5, 94.5, 94.5, 94.5]"
    assert made.drawn == old.drawn
    said = "\nSeeds: `small` 1-2, `large` 1-2. Curves are still those of fewer seeds: `small` `ours` 1, `small`"
    assert f"{said} `kube-default` 1.\n" in page.render(made)
    everything = measured(fake_bench, SOME + REST)
    again = summary.draw(pooled.pool(made, published(everything), plan(), everything), everything, tmp_path)
    assert (tmp_path / "fake-curve.svg").read_text() == "8 runs"
    assert "Curves are still" not in page.render(again)


def test_commands_measure_what_is_not_published_and_publish_beside_the_rest(
    fake_bench: Bench, bench_tree: Path, trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_measure", _pretend(fake_bench))
    file = page.FOLDER / summary.FILE
    ended = trainyard("bench", "run", "--full", "--unpublished")
    assert "No such file" in ended.error()
    summary.write(published(measured(fake_bench, SOME, "there")), file)
    assert "4 runs, 4 to measure" in trainyard("bench", "list", "--full", "--unpublished").out
    assert "3 figures of 4 runs" in trainyard("bench", "run", "--full", "--unpublished").out
    assert "4 figures of 8 of 8 runs" in trainyard("bench", "publish").out
    assert "0 runs, measured\n" in trainyard("bench", "list", "--full", "--unpublished").out
    assert "here; there. " in page.PAGE.read_text()
    assert "3 figures of 4 of 8 runs" in trainyard("bench", "publish", "--alone").out
    assert "there" not in summary.read(file).machines


def _pretend(bench: Bench) -> Callable[..., None]:
    """Writes a run's result without a server."""

    def measure(run: Run, worlds: object, folder: Path) -> None:
        [result] = measured(bench, [run.id.removeprefix("fake.")])
        (folder / runner.RUNS).mkdir(parents=True, exist_ok=True)
        (folder / runner.RUNS / f"{run.id}.json").write_text(result.to_json())

    return measure
