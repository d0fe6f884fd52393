"""The runner: results are kept, a failure affects no other run, and time is forecast and recorded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard_dev.bench import environment, registry, results, runner
from trainyard_dev.bench.cli import select
from trainyard_dev.bench.results import Result, Run
from trainyard_dev.bench.runner import Forecast, execute

RUN = Run("fake", "small", "ours", 1, {"size": 3})
SIZES = {"ours": 3, "kube-default": 4}


@pytest.fixture
def opened(tmp_path: Path) -> SimpleNamespace:
    """Counts API servers that were made, cleared and ended."""
    count = SimpleNamespace(made=0, cleared=0, ended=0, pods={})

    @contextmanager
    def opener() -> Iterator[Any]:
        count.made += 1
        folder = tmp_path / "server"
        folder.mkdir(exist_ok=True)
        (folder / "vc-scheduler.log").write_text("last words of a scheduler\n")

        def clear() -> None:
            count.cleared += 1

        yield SimpleNamespace(clear=clear, pods=count.pods, server=SimpleNamespace(folder=folder))
        count.ended += 1

    count.opener = opener
    return count


@pytest.fixture
def run(fake_bench: SimpleNamespace, opened: SimpleNamespace, tmp_path: Path) -> Callable[..., runner.Outcome]:
    """Measures the fake bench's plan, or other runs, into a folder of the test."""

    def call(runs: list[Run] | None = None, **options: Any) -> runner.Outcome:
        chosen = registry.plan("fake", False) if runs is None else runs
        return execute(chosen, tmp_path / "bench", opener=opened.opener, **options)

    return call


def test_one_api_server_serves_all_runs_and_is_emptied_between(
    run: Callable[..., runner.Outcome], opened: SimpleNamespace, tmp_path: Path
) -> None:
    assert [one.id for one in run().measured] == [one.id for one in registry.plan("fake", False)]
    assert (opened.made, opened.cleared, opened.ended) == (1, 3, 1)
    found = results.read_one(tmp_path / "bench/runs/fake.small.ours.s1.json")
    assert found
    assert (found.run, found.values) == (RUN, {"used": 91.0})
    assert found.versions[environment.MACHINE]


def test_a_server_with_very_many_pods_is_not_emptied_but_replaced(
    run: Callable[..., runner.Outcome], opened: SimpleNamespace
) -> None:
    opened.pods |= dict.fromkeys(range(runner.CLEARED + 1))
    run()
    assert (opened.made, opened.cleared, opened.ended) == (4, 0, 4)


def test_each_run_of_a_fresh_bench_has_its_own(
    run: Callable[..., runner.Outcome], opened: SimpleNamespace, fake_bench: SimpleNamespace
) -> None:
    fake_bench.FRESH = True
    run()
    assert (opened.made, opened.cleared, opened.ended) == (4, 0, 4)


def test_what_is_measured_is_not_measured_again(
    run: Callable[..., runner.Outcome], opened: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    run()
    outcome = run()
    assert (len(outcome.measured), len(outcome.kept), opened.made) == (0, 4, 1)
    assert "4 of 4 runs have results" in capsys.readouterr().out
    assert len(run(again=True).measured) == 4


def test_another_configuration_other_settings_and_other_programs_are(
    run: Callable[..., runner.Outcome], fake_bench: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    changed = fake_bench.configurations["ours"]
    fake_bench.configurations = fake_bench.configurations | {"ours": type(changed)("ours", "ours", "kube", "changed")}
    assert [one.column for one in run().measured] == ["ours", "ours"]
    assert [one.id for one in run([Run("fake", "small", "ours", 1, {"size": 4})]).measured] == [RUN.id]
    here = environment.versions("kube")
    monkeypatch.setattr(environment, "versions", lambda scheduler: here | {"kubernetes": "v9"})
    assert len(run().measured) == 4


def test_another_machine_measures_nothing_again(
    run: Callable[..., runner.Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    here = environment.versions("kube")
    monkeypatch.setattr(environment, "versions", lambda scheduler: here | {environment.MACHINE: "another"})
    assert len(run().kept) == 4


def test_a_run_that_fails_costs_no_other_and_leaves_something_to_read(
    run: Callable[..., runner.Outcome], opened: SimpleNamespace, fake_bench: SimpleNamespace, tmp_path: Path
) -> None:
    whole = fake_bench.measure

    def measure(run: Run, harness: Any) -> dict[str, float]:
        if run.column == "ours":
            raise TrainyardError("the scheduler stood still") if run.seed == 1 else KeyError("pod")
        return whole(run, harness)

    fake_bench.measure = measure
    outcome = run()
    assert [one.column for one in outcome.measured] == ["kube-default", "kube-default"]
    assert outcome.failed["fake.small.ours.s1"].startswith("the scheduler stood still. (")
    assert outcome.failed["fake.small.ours.s2"].startswith("KeyError: 'pod' (")
    assert (opened.made, opened.ended) == (3, 3), "no run follows a failure on the same API server"
    text = (tmp_path / "bench/failed/fake.small.ours.s1.txt").read_text()
    assert "Traceback" in text
    assert "last words of a scheduler" in text
    fake_bench.measure = whole
    assert len(run().measured) == 2
    assert not list((tmp_path / "bench/failed").iterdir())


def test_a_result_that_no_file_can_hold_is_a_failure(
    run: Callable[..., runner.Outcome], fake_bench: SimpleNamespace, tmp_path: Path
) -> None:
    fake_bench.measure = lambda run, harness: {"used": float("inf")}
    assert "not a plain number" in run([RUN]).failed[RUN.id]
    assert not (tmp_path / "bench/runs").exists()


def test_interrupted_by_hand_it_keeps_what_it_has(
    run: Callable[..., runner.Outcome], opened: SimpleNamespace, fake_bench: SimpleNamespace
) -> None:
    whole = fake_bench.measure

    def measure(run: Run, harness: Any) -> dict[str, float]:
        if run.column == "kube-default":
            raise KeyboardInterrupt
        return whole(run, harness)

    fake_bench.measure = measure
    with pytest.raises(KeyboardInterrupt):
        run()
    assert (opened.made, opened.ended) == (1, 1)
    fake_bench.measure = whole
    assert len(run().kept) == 2


def taken(case: str, column: str, seconds: float, bench: str = "fake") -> Result:
    return Result(Run(bench, case, column, 1), {}, "", {}, seconds, "")


def test_the_forecast_knows_runs_that_are_alike() -> None:
    clock = Forecast([taken("small", "ours", 10), taken("small", "ours", 20), taken("small", "raw", 3)])
    assert clock.of(RUN) == 15
    assert clock.of(Run("fake", "small", "new", 1)) == 11
    assert clock.of(Run("fake", "new", "new", 1)) == 11
    assert clock.of(Run("new", "new", "new", 1)) == runner.GUESS_S


def test_the_forecast_of_another_case_goes_by_its_size() -> None:
    whole = Run("fake", "list@1", "ours", 1, {"share": 1.0})
    clock = Forecast([Result(whole, {}, "d", {}, 600.0, "")])
    assert clock.of(replace(whole, case="list@0.1", settings={"share": 0.1})) == pytest.approx(6.0)
    clock = Forecast([Result(replace(whole, settings={"count": 150}), {}, "d", {}, 60.0, "")])
    assert clock.of(replace(whole, case="trace", settings={"count": None})) == pytest.approx(400.0)


def test_a_plan_that_names_a_run_twice_measures_it_once(fake_bench: SimpleNamespace) -> None:
    fake_bench.plan = lambda full: [RUN, Run("fake", "small", "ours", 2), RUN]
    assert [one.seed for one in registry.plan("fake", False)] == [1, 2]


@pytest.mark.parametrize(
    ("case", "column", "seeds", "ids"),
    [
        ("small", "ours", [1], ["small.ours.s1"]),
        ("large", "ours", [], ["large.ours.s1", "large.ours.s2"]),
        ("large", "", [7], ["large.ours.s7", "large.kube-default.s7"]),
        ("", "ours", [2], ["small.ours.s2", "large.ours.s2"]),
        ("", "", [], ["small.ours.s1", "small.ours.s2", "small.kube-default.s1", "small.kube-default.s2"]),
    ],
)
def test_runs_are_chosen_by_case_configuration_and_seed(
    case: str, column: str, seeds: list[int], ids: list[str], fake_bench: SimpleNamespace
) -> None:
    chosen = select("fake", case, column, seeds)
    assert [one.id for one in chosen] == [f"fake.{name}" for name in ids]
    assert all(one.settings == {"size": 3} for one in chosen)


def test_a_run_that_is_chosen_has_the_settings_that_it_has_in_the_plan(fake_bench: SimpleNamespace) -> None:
    fake_bench.plan = lambda full: [Run("fake", "small", name, 1, {"size": size}) for name, size in SIZES.items()]
    [chosen] = select("fake", "small", "kube-default", [1])
    assert chosen.settings == {"size": 4}, "not those of the case's first run, which is of another configuration"
    assert [one.settings for one in select("fake", "small", "kube-default", [7])] == [{"size": 4}]
    fake_bench.configurations["new"] = fake_bench.configurations["ours"]
    assert [one.settings for one in select("fake", "small", "new", [1])] == [{"size": 3}]


def test_what_is_no_scheduler_is_measured_only_where_it_is_planned(fake_bench: SimpleNamespace) -> None:
    fake_bench.configurations["raw"] = replace(fake_bench.configurations["ours"], name="raw", scheduler="raw")
    with pytest.raises(UsageError, match=r"^fake needs a scheduler, and raw is none\. use another configuration\.$"):
        select("fake", "small", "raw", [])
    fake_bench.plan = lambda full: [RUN, Run("fake", "large", "raw", 1)]
    assert [one.id for one in select("fake", "small", "raw", [])] == ["fake.small.raw.s1"]


def test_a_case_and_a_configuration_that_do_not_exist(fake_bench: SimpleNamespace) -> None:
    with pytest.raises(UsageError, match=r"has no case huge\. use one of small, large"):
        select("fake", "huge", "", [])
    with pytest.raises(UsageError, match=r"unknown configuration theirs\. use one of ours, kube-default"):
        select("fake", "small", "theirs", [])


@pytest.mark.parametrize("seeds", ["x", "1-", "-1", "1,b", "1.5", "3-1", ","])
def test_seeds_that_are_no_numbers(seeds: str, fake_bench: SimpleNamespace, trainyard: Callable[..., Any]) -> None:
    ended = trainyard("bench", "replay", "fake", "--seed", seeds)
    assert ended.code == 2
    assert ended.error() == f"--seed: {seeds} contains no seeds. write numbers, such as 1-3,7."


def test_an_unknown_bench_is_reported_before_anything_starts(trainyard: Callable[..., Any]) -> None:
    for words in (("run", "--only", "nothing"), ("replay", "nothing")):
        ended = trainyard("bench", *words)
        assert ended.code == 2
        assert ended.error().startswith("unknown bench nothing. use one of ")


def test_a_result_depends_on_the_programs_that_ran() -> None:
    assert set(environment.versions("kube")) == {"kubernetes", "etcd", "machine"}
    assert set(environment.versions("volcano")) == {"kubernetes", "etcd", "volcano", "machine"}


def test_the_machine_in_words(tmp_path: Path) -> None:
    (tmp_path / "cpu").write_text("processor\t: 0\nmodel name\t: A Processor\nprocessor\t: 1\n")
    (tmp_path / "memory").write_text("MemTotal:       25165824 kB\n")
    said = environment.machine(tmp_path / "cpu", tmp_path / "memory")
    assert said.endswith("cores, 24 GiB, A Processor")
    assert environment.machine(tmp_path / "none", tmp_path / "none").split(", ")[1:]


@pytest.mark.parametrize(("seconds", "text"), [(12, "12 s"), (120, "2 min"), (5000, "83 min"), (7200, "2.0 h")])
def test_times_in_words(seconds: float, text: str) -> None:
    assert runner.minutes_text(seconds) == text
