"""Sharing GPUs: what nodes and pods say, simulated best fit, and the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard_dev.bench import bestfit, configurations, fractional_gpus, fractional_rounds, sharing
from trainyard_dev.bench.results import Measured, Result
from trainyard_dev.bench.traces import Node, Pod

NODE = Node("n1", 8000, 8000, 2, "T4")


def half(name: str, milli: int = 500, models: tuple[str, ...] = ()) -> Pod:
    """A pod that asks for a fraction of a GPU."""
    return Pod(name, 1000, 1000, 1, milli, models)


def test_pod_asks_for_hundredths_of_each_card() -> None:
    def limits(pod: Pod) -> dict[str, str]:
        return {
            key: value
            for key, value in fractional_gpus.pod(pod)["spec"]["containers"][0]["resources"]["requests"].items()
            if "/" in key
        }

    assert limits(half("a", 460)) == {
        fractional_gpus.NUMBER: "1",
        fractional_gpus.CORES: "46",
        fractional_gpus.MEMORY: "46",
    }
    assert limits(Pod("b", 1000, 1000, 8)) == {
        fractional_gpus.NUMBER: "8",
        fractional_gpus.CORES: "100",
        fractional_gpus.MEMORY: "100",
    }
    assert limits(Pod("c", 1000, 1000)) == {}


def test_cards_that_are_given_away_twice_are_found() -> None:
    taken = {
        "a": fractional_gpus._cards("GPU-n1-0,NVIDIA,60,60:"),
        "b": fractional_gpus._cards("GPU-n1-1,NVIDIA,60,60:"),
        "c": {},
    }
    assert fractional_gpus.overfull(taken) == 0
    assert fractional_gpus.overfull(taken | {"d": {"GPU-n1-1": 41}}) == 1


def test_configurations_weigh_parts_of_cards_and_keep_nothing_for_whole_ones() -> None:
    config = configurations.column("ours-sharing").config
    assert "deviceshare.VGPUEnable: true" in config
    assert f"binpack.resources.{fractional_gpus.CORES}: 40" in config
    assert "nvidia.com/gpu" not in config
    assert fractional_gpus.RESERVE not in config
    assert "deviceshare" not in configurations.column("ours").config


@pytest.mark.parametrize(
    ("pods", "placed"),
    [
        ([half("a"), half("b"), half("c"), half("d"), half("e")], 4),
        ([half("a", 600), half("b", 600), half("c", 500)], 2),
        ([half("a", 400), Pod("b", 1000, 1000, 1), half("c", 600)], 3),
        ([half("a", 400), Pod("b", 1000, 1000, 2)], 1),
        ([Pod("a", 8000, 1000), half("b")], 1),
        ([Pod("a", 1000, 8001)], 0),
        ([half("a", models=("V100",))], 0),
        ([half("a", models=("V100", "T4"))], 1),
    ],
)
def test_best_fit_gives_no_card_twice(pods: list[Pod], placed: int) -> None:
    found = bestfit.place([NODE], pods)
    assert sum(map(bool, found)) == placed
    assert len(found) == len(pods)


def test_best_fit_leaves_the_least_free() -> None:
    nodes = [Node("large", 8000, 8000, 8), Node("small", 2000, 8000, 1), Node("none", 64000, 8000)]
    pods = [half("a"), half("b"), half("c"), Pod("d", 5000, 1)]
    assert bestfit.place(nodes, pods) == ["small", "small", "large", "none"]


def test_curve_and_marks() -> None:
    pods = [half(f"p{index}", 100) for index in range(26)]
    curve = sharing._curve(pods, ["n1"] * 20 + [""] * 6, 2000)
    assert sharing._at_marks(curve) == {100: 100.0, 130: 100.0}
    assert sharing._thin(curve)[0] == [2.0, 5.0]
    assert sharing._thin(curve)[-1] == [130.0, 100.0]


def test_plan_has_every_seed_first_and_names_its_cases() -> None:
    full = sharing.plan(True)
    assert len({run.id for run in full}) == len(full)
    assert {run.seed for run in full[:10]} == set(sharing.SEEDS)
    assert {run.case for run in full} >= {"default@0.1", "default@0.1+20", "busy@1"}
    assert len(sharing.plan(False)) == 1


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    (tmp_path / "openb").mkdir()
    table = ["workload,sc_policy,tune,seed,100,130"]
    for seed, value in ((42, 90), (43, 92)):
        table.append(f"openb_pod_list_default,06-FGD,1.3,{seed},{value},{value + 1}")
        table.append(f"openb_pod_list_default,06-FGD,2.0,{seed},1,1")
        table.append(f"openb_pod_list_cpu050,06-FGD,1.3,{seed},2,2")
    (tmp_path / sharing.PUBLISHED).write_text("\n".join(table) + "\n")
    monkeypatch.setenv("TRAINYARD_DATA", str(tmp_path))

    def result(column: str, seed: int, value: float) -> Result:
        run = sharing._run("default", 0.1, column, seed)
        values = {f"allocated@{mark}": value for mark in sharing.MARKS}
        values |= {f"{sharing.SIMULATED}@{mark}": 93.0 + seed for mark in sharing.MARKS}
        values |= {"cpu_placed": 100.0, "cardless": 0, "overfull": 0}
        values |= {f"refused_{kind}": 10.0 for kind in sharing.KINDS}
        curve = [[2.0, 2.0], [130.0, value]]
        measured = Measured(values, {"curve": curve, sharing.SIMULATED: curve})
        return Result(run, measured.values, measured.series, "d", {}, 1.0, run.command)

    return [
        result(*row) for row in (("ours-sharing", 1, 90.0), ("ours-sharing", 2, 91.0), ("default-sharing", 1, 80.0))
    ]


def test_figures_have_what_is_on_paper_and_published_beside(results: list[Result]) -> None:
    found = {one.id: one for one in sharing.figures(results)}
    assert len(found) == len(sharing.figures(results))
    assert found["sharing.default@0.1.ours-sharing.allocated@100"].value == 90.5
    assert found["sharing.default@0.1.best-fit.allocated@130"].value == 94.5
    published = found["sharing.default@1.published-FGD.allocated@100"]
    assert (published.value, published.low, published.high, published.seeds) == (91.0, 90.0, 92.0, [42, 43])
    assert {one.case for one in found.values()} == {"default@0.1", "default@1"}


def test_section_and_plot(results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = sharing.section(sharing.figures(results))
    monkeypatch.delenv("TRAINYARD_DATA")
    for part in ("`ours-sharing` | 90.5 (90–91)", "`published-FGD` | 91 (90–92)", "`best-fit` | 94.5"):
        assert part in said
    sharing.draw([], results, tmp_path)
    [drawn] = [file.name for file in tmp_path.glob("*.svg")]
    assert drawn == "sharing-default-0_1.svg"
    assert f"benchmarks/{drawn}" in said


def test_a_pod_on_every_card_and_what_a_round_costs_then(results: list[Result], tmp_path: Path) -> None:
    pods = [fractional_rounds._placed(NODE, index, shared=True) for index in range(NODE.gpus)]
    assert {one["spec"]["nodeName"] for one in pods} == {"n1"}
    assert [one["metadata"]["annotations"][fractional_gpus.ASSIGNED] for one in pods] == [
        "GPU-n1-0,NVIDIA,100,100:",
        "GPU-n1-1,NVIDIA,100,100:",
    ]
    assert all(fractional_gpus._id(NODE, index) in fractional_gpus._register(NODE) for index in range(NODE.gpus))
    [run, *_] = fractional_rounds.plan()
    results.append(Result(run, {fractional_rounds.METRIC: 188.7}, {}, "d", {}, 1.0, run.command))
    found = sharing.figures(results)
    assert [one.value for one in found if one.case == run.case] == [188.7]
    said = sharing.section(found)
    assert "| configuration | busy@0.1 |\n| --- | ---: |\n| `ours-sharing` | 188.7 |" in said
    assert "### busy" not in said
    sharing.draw([], results, tmp_path)
    assert [file.name for file in tmp_path.glob("*.svg")] == ["sharing-default-0_1.svg"]
