"""The bench of packing: what is counted while a cluster fills up, its plan, and its part of the page."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from trainyard_dev.bench import packing, registry, traces
from trainyard_dev.bench.packed import Packed
from trainyard_dev.bench.results import Result
from trainyard_dev.bench.traces import Node, Pod

NODES = [Node("a", 96000, 1000, 8), Node("b", 96000, 1000, 8), Node("c", 32000, 1000)]
MARKED = ("allocated", "fragmented", "slots", *(f"refused{gpus}" for gpus in packing.SIZES))
ONE, WIDE, CORES = Pod("one", 10000, 1, 1), Pod("wide", 64000, 1, 8), Pod("cores", 30000, 1)


def test_what_is_given_away_and_left_over() -> None:
    state = Packed(NODES, [WIDE])
    for pod, node in ((ONE, "a"), (CORES, "c"), (CORES, "b"), (CORES, ""), (WIDE, "b"), (WIDE, "")):
        state.add(pod, node)
    assert state.arrived == 100 * 17 / 16
    assert state.allocated == 100 * 9 / 16
    assert state.fragmented == 100 * 7 / 16
    assert state.values() == {
        "allocated": state.allocated,
        "fragmented": state.fragmented,
        "refused1": 0,
        "refused8": 50,
        "slots": 0,
        "slots_ideal": 0,
    }
    assert state.refused(2) is None


def test_a_node_without_cores_is_no_room_for_a_wide_pod() -> None:
    state = Packed(NODES, [WIDE])
    assert state.values()["slots"] == 2
    state.add(CORES, "a")
    state.add(CORES, "a")
    assert (state.values()["slots"], state.values()["slots_ideal"]) == (1, 2)
    assert state.fragmented == 50


def test_refusals_are_judged_by_what_is_free_afterwards() -> None:
    state = Packed(NODES, [WIDE])
    state.add(CORES, "")
    state.add(Pod("special", 1000, 1, 1, models=("T4",)), "")
    state.judge()
    assert state.refused_fitting == {0: 1, 1: 0}
    state.judge()
    assert state.refused_fitting == {0: 1, 1: 0}


def _measured(monkeypatch: pytest.MonkeyPatch, placed: Sequence[str], pods: Sequence[Pod]) -> dict[str, float]:
    """The bench's values for these placements, without a scheduler."""
    monkeypatch.setattr(traces, "openb_nodes", lambda share: NODES)
    monkeypatch.setattr(traces, "workload", lambda name, seed, nodes: list(pods))
    monkeypatch.setattr(packing, "place", lambda *_: (list(placed), 100.0))
    monkeypatch.setattr(packing, "column", lambda name: name)
    run = packing.plan(False)[0]

    class Harness:
        def add_queue(self, name: str) -> None:
            pass

    return packing.measure(run, Harness())  # type: ignore[arg-type]


def test_figures_are_taken_when_the_pods_ask_for_all_gpus_and_for_130_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [WIDE, CORES, *[ONE] * 8, WIDE]
    placed = ["a", "c", *["b"] * 7, "", ""]
    values = _measured(monkeypatch, placed, pods)
    assert (values["allocated@100"], values["bound@100"]) == (100 * 15 / 16, pytest.approx(100))
    assert (values["refused1@100"], values["refused8@100"]) == (12.5, 0)
    assert (values["refused8@130"], values["allocated@130"]) == (50, 100 * 15 / 16)
    assert (values["cpu_placed"], values["cpu_refused_fitting"]) == (100, 0)
    assert values["gpu_refused_fitting"] == 1  # the eighth small pod would have fitted on b


def test_a_run_that_ends_before_all_gpus_are_asked_for_has_no_such_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "allocated@100" not in _measured(monkeypatch, ["a"], [WIDE])


def test_the_plan_begins_with_a_list_on_all_nodes_and_has_every_list_and_seed() -> None:
    full = registry.plan("packing", True)
    first = full[: len(packing.SEEDS) * len(packing.CORE)]
    assert {run.case for run in first} == {"default@1"}
    assert {run.seed for run in first} == {run.seed for run in full} == set(packing.SEEDS)
    whole = {(run.settings["list"], run.column, run.seed) for run in full if run.settings["share"] == 1}
    assert whole >= {(name, of, seed) for name in packing.LISTS for of in packing.CORE for seed in packing.SEEDS}
    changes = {(run.settings["list"], run.column) for run in full if run.settings["share"] < 1}
    assert changes == {("default", of) for of in packing.CORE}
    assert len({run.id for run in full}) == len(full)
    assert len(packing.plan(False)) < 20


def _results(configurations: Sequence[str], case: str = "default@1") -> list[Result]:
    results = []
    for column in configurations:
        for seed in (1, 2):
            run = packing.Run("packing", case, column, seed, {"list": "default", "share": 1.0})
            values = {f"{name}@{mark}": 90.0 + seed for name in MARKED for mark in packing.MARKS}
            values |= dict.fromkeys(("cpu_placed", "cpu_refused_fitting", "gpu_refused_fitting", "memory"), 5.0)
            values |= {f"{name}@{mark}": 99.5 for name in ("bound", "slots_ideal") for mark in packing.MARKS}
            results.append(Result(run, values, "d", {}, 1.0, "c"))
    return results


def test_the_section_shows_the_bound_and_every_configuration_and_embeds_what_is_drawn(tmp_path: Path) -> None:
    found = packing.figures(_results(["ours", "kube-default", "volcano-default"]))
    text = packing.section(found)
    assert "| `ours` | 91.5 (91–92) |" in text and "| `volcano-default` | 91.5 (91–92) |" in text
    assert "| *limit* | 99.5 |" in text
    packing.draw(found, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [packing.PLOT] and f"(benchmarks/{packing.PLOT})" in text


def test_the_section_compares_the_lists_of_each_share() -> None:
    quarter = _results(["ours"], "default@0.25") + _results(["ours"], "cpu050@0.25")
    text = packing.section(packing.figures(_results(["ours"], "default@0.1") + quarter))
    assert "### Lists compared, 25 % of the nodes" in text
    assert "Lists compared, 10 %" not in text
    assert "| configuration | default@0.25 | cpu050@0.25 |" in text
    assert "| `ours` | 2 | 8 | 8 | 91.5 | 91.5 | 5 |" in text
    assert "`default@0.1`:\n" in text


def test_the_section_of_nothing_is_how_it_is_measured() -> None:
    assert packing.section([]).startswith(packing.INTRODUCTION)
