"""Published figures, the page made from them, their commands, and what `make verify` reports about them."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.bench import page, registry, runner, summary, tables
from trainyard_dev.bench.results import Figure, Result
from trainyard_dev.sync import invariants, pages
from trainyard_dev.sync.tree import Tree
from trainyard_dev.versions import load

Call = Callable[..., Any]


def said(root: Path) -> list[tuple[str, str, str]]:
    """The findings of `verify` about the page, and about its configurations."""
    pages.write(tree := Tree(root, dry=True))
    return [*((one.file, one.what, one.hint) for one in tree.differences()), *invariants.measured(root)]


@pytest.fixture
def tree(fake_bench: SimpleNamespace, bench_tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree in which the commands measure the fake bench and publish."""

    @contextmanager
    def opened() -> Iterator[Any]:
        yield SimpleNamespace(clear=lambda: None, pods={}, server=SimpleNamespace(folder=bench_tree))

    monkeypatch.setattr(runner, "_open", opened)
    return bench_tree


def results(fake_bench: SimpleNamespace) -> list[Result]:
    versions = {"volcano": "v1.2.3", "machine": "2 cores"}
    return [
        Result(
            run, {"used": 90.0 + run.seed}, fake_bench.configurations[run.column].digest, versions, 60.0, run.command
        )
        for run in registry.plan("fake", False)
    ]


def figure(column: str, value: float, bound: float | None = 100.0, case: str = "small", metric: str = "used") -> Figure:
    return Figure.once("fake", case, column, metric, value, "%", "command", bound)


def test_a_configuration_is_printed_as_it_is_measured(trainyard: Call) -> None:
    done = trainyard("bench", "config", "kube-tuned")
    assert done.code == 0
    assert "percentageOfNodesToScore: 100" in done.out
    assert done.out.startswith("# kube-tuned: kube-scheduler, tuned; digest ")
    refused = trainyard("bench", "config", "no-such")
    assert refused.code == 2
    assert "unknown configuration no-such" in refused.err


def built(fake_bench: SimpleNamespace) -> summary.Summary:
    return summary.build(results(fake_bench))


def test_figures_are_read_as_they_were_written_each_with_its_source(
    fake_bench: SimpleNamespace, tmp_path: Path
) -> None:
    made = built(fake_bench)
    [file] = summary.write(made, tmp_path / "deep")
    assert summary.read(tmp_path / "deep") == made
    head, first, _ = file.read_text().splitlines()
    row = dict(zip(head.split(","), next(csv.reader([first])), strict=True))
    assert (file.name, row["column"], row["value"], row["seeds"]) == ("fake.csv", "ours", "91.5", "1-2")
    assert row["versions"] == f"trainyard {load().raw['trainyard']}, volcano 1.2.3"
    assert row["overlay"] == "charts/trainyard/overlays/packed.yaml" and row["digest"] and row["commit"]
    assert row["command"] == "bin/trainyard bench replay fake --case small --column ours --seed 1-2"


def test_two_figures_of_one_name_are_refused(fake_bench: SimpleNamespace, tmp_path: Path) -> None:
    made = built(fake_bench)
    with pytest.raises(TrainyardError, match=r"two figures have the name fake\.small\.ours\.used"):
        summary.write(replace(made, figures=[*made.figures, made.figures[0]]), tmp_path)


@pytest.mark.parametrize(
    "text", ["case\nsmall\n", "case,column,metric,value,low,high,bound,unit,seeds\na,b,c,x,1,1,,,1\n"]
)
@pytest.mark.usefixtures("fake_bench")
def test_a_file_that_holds_no_figures(text: str, tmp_path: Path) -> None:
    (tmp_path / "fake.csv").write_text(text)
    with pytest.raises(TrainyardError, match="it holds no figures"):
        summary.read(tmp_path)


def test_new_figures_take_the_place_of_published_ones_and_others_stay(fake_bench: SimpleNamespace) -> None:
    before = built(fake_bench)
    new = summary.build([one for one in results(fake_bench) if one.run.column == "ours" and one.run.seed == 1])
    found = {one.column: one.value for one in summary.merged(before, new).figures}
    assert found == {"ours": 91.0, "kube-default": 91.5}


def test_a_figure_without_version_or_overlay_is_named(fake_bench: SimpleNamespace) -> None:
    made = built(fake_bench)
    assert summary.unproved(made) == []
    name = "fake.small.ours.used"
    for lacking in ("versions", "overlay"):
        sources = {**made.sources, name: replace(made.sources[name], **{lacking: ""})}
        assert summary.unproved(replace(made, sources=sources)) == [name]


def test_the_page_holds_versions_configurations_and_sections(fake_bench: SimpleNamespace) -> None:
    text = page.render(built(fake_bench))
    for part in (
        "# Benchmarks\n",
        "from the figures of [fake](benchmarks/fake.csv)",
        "| fake: small | GPUs used, % | 91.5 (91–92) | – | – | 91.5 (91–92) | 100 |",
        f"| `ours` | label of ours | `{fake_bench.configurations['ours'].digest}` |",
        "volcano 1.2.3. **This tree has volcano ",
        "Seeds: `small` 1-2.\n\n| configuration | GPUs used, % |",
        "| `kube-default` | 91.5 (91–92) |",
        "| *limit* | 100 |",
        "    bin/trainyard bench replay fake --case small --column ours --seed 1-2\n",
        "CC BY 4.0",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("baseline", "other", "lost"),
    [(90.0, 95.0, True), (95.0, 90.0, False), (95.0, 95.0, False), (95.001, 95.002, False)],
)
def test_a_loss_is_a_greater_distance_from_the_limit(baseline: float, other: float, lost: bool) -> None:
    found = page.losses([figure("ours", baseline), figure("kube-default", other)])
    assert [(mine.column, best.column) for mine, best in found] == ([("ours", "kube-default")] if lost else [])


def test_a_loss_against_a_limit_of_zero_names_the_best_other() -> None:
    found = [figure("ours", 3.0, 0.0), figure("a", 2.0, 0.0), figure("b", 1.0, 0.0), figure("ours-order", 0.0, 0.0)]
    assert [best.column for _, best in page.losses(found)] == ["b"]


def test_the_best_variant_stands_for_ours_only_where_a_case_has_no_plain_one() -> None:
    variants = [figure("ours-reclaim", 3.0, 0.0), figure("ours-strict", 4.0, 0.0), figure("kube-default", 2.0, 0.0)]
    assert [(mine.column, best.column) for mine, best in page.losses(variants)] == [("ours-reclaim", "kube-default")]
    assert page.losses([*variants, figure("ours", 1.0, 0.0)]) == []


def test_memory_below_its_limit_is_no_loss_and_raw_bindings_are_no_rival() -> None:
    mine, other = (replace(figure(column, value), unit="MiB") for column, value in (("ours", 50.0), ("a", 90.0)))
    assert page.losses([mine, other, figure("ours", 50.0, metric="rate"), figure("raw", 100.0, metric="rate")]) == []
    assert page.losses([replace(mine, value=110.0), other])


def test_without_a_limit_the_bench_says_of_what_less_is_better(fake_bench: SimpleNamespace) -> None:
    mine, other = figure("ours", 3.0, bound=None), figure("a", 2.0, bound=None)
    assert page.losses([mine, other]) == []
    fake_bench.LESS = ("used",)
    assert page.losses([mine, other]) == [(mine, other)]
    assert page.losses([replace(mine, value=1.0), other]) == []


@pytest.mark.usefixtures("fake_bench")
def test_figures_of_other_cases_metrics_and_without_a_limit_are_no_loss() -> None:
    others = [
        figure("a", 99.0, case="large"),
        figure("a", 99.0, metric="other"),
        figure("a", 99.0, bound=None),
        figure("ours", 10.0, bound=None, metric="unbound"),
        figure("a", 99.0, metric="unbound"),
    ]
    assert page.losses([figure("ours", 90.0), *others]) == []


def test_losses_stand_on_the_page(fake_bench: SimpleNamespace) -> None:
    made = built(fake_bench)
    assert "In no measured case" in page.render(made)
    worse = [replace(one, value=80.0) if one.column == "ours" else one for one in made.figures]
    text = page.render(replace(made, figures=worse))
    assert "| fake: small | GPUs used, % | 80 (91–92) | `kube-default` | 91.5 (91–92) | 100 | 1-2 |" in text


def test_figures_of_different_seeds_are_told_apart(fake_bench: SimpleNamespace) -> None:
    found = [one for one in results(fake_bench) if (one.run.column, one.run.seed) != ("ours", 2)]
    text = page.render(summary.build(found))
    assert "\nSeeds: `small` 1 (`kube-default` 1-2).\n" in text
    assert "| fake: small | GPUs used, % | 91 | `kube-default` | 91.5 (91–92) | 100 | 1 against 1-2 |" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.0341, "0.034"), (1, "1"), (3.214, "3.21"), (97.24, "97.2"), (100, "100"), (1234.5, "1,234"),
        (21_600_000, "21.6 million"), (-0.5, "-0.5"),
    ],
)  # fmt: skip
def test_numbers_that_can_be_read(value: float, text: str) -> None:
    assert tables.number(value) == text


def test_tables_leave_a_dash_where_nothing_was_measured() -> None:
    found = [figure("ours", 90.0), figure("a", 80.0, metric="other", bound=None), figure("ours", 70.0, 60.0, "large")]
    assert tables.by_column(found, "small", {"used": "used", "other": "other", "none": "none"}) == (
        "| configuration | used | other |\n| --- | ---: | ---: |\n"
        "| `ours` | 90 | – |\n| `a` | – | 80 |\n| *limit* | 100 | – |\n"
    )
    assert tables.by_case([one for one in found if one.column == "ours"], "used") == (
        "| configuration | small | large |\n| --- | ---: | ---: |\n| `ours` | 90 | 70 |\n| *limit* | 100 | 60 |\n"
    )


def test_measure_publish_and_verify(tree: Path, trainyard: Call, fake_bench: SimpleNamespace) -> None:
    ended = trainyard("bench", "run")
    assert (ended.code, ended.err) == (0, "")
    assert "2 figures of 4 runs" in ended.out
    for name in ("fake.csv", "benchmarks.md"):
        assert (tree / "out" / name).is_file()
    summary.write(summary.read(tree / "out"))
    assert "4 of 8 runs" in trainyard("bench", "publish").out
    assert {file.name for file in (tree / "docs/benchmarks").iterdir()} == {"fake.csv", "fake.svg"}
    assert said(tree) == []

    text = page.PAGE.read_text()
    page.PAGE.write_text(text.replace("91.5", "98.5"))
    out_of_date = ("docs/benchmarks.md", "it is not up to date (made again)", "run `bin/trainyard versions sync`")
    assert said(tree) == [out_of_date]
    assert trainyard("bench", "page").code == 0
    assert page.PAGE.read_text() == text

    fake_bench.configurations["ours"] = replace(fake_bench.configurations["ours"], config="the chart: has changed")
    stale, (where, what, hint) = said(tree)
    assert stale == out_of_date, "the page has to say that it is stale"
    assert (where, what) == (
        "docs/benchmarks",
        "ours is neither the measured configuration nor a configuration that passed the gate",
    )
    assert hint == "run `bin/trainyard bench gate`, then `bin/trainyard bench page`"
    assert trainyard("bench", "page").code == 0
    assert "> **Stale:** the chart's `ours` changed since this was measured" in page.PAGE.read_text()
    assert len(said(tree)) == 1
    digest = fake_bench.configurations["ours"].digest
    (tree / "docs/benchmarks/gate.yaml").write_text(f"passed: {{ours: {digest}}}\n")
    assert said(tree) == [], "a stale page may stay once the gate has passed"
    printed = trainyard("bench", "publish").out
    assert "2 figures, of 2 of 8 runs updated" in printed, "figures of another configuration are not published"


def test_verify_in_a_tree_with_half_of_it(tree: Path) -> None:
    assert said(tree) == []
    page.PAGE.parent.mkdir(parents=True)
    page.PAGE.write_text("# Benchmarks\n")
    [(where, what, hint)] = said(tree)
    assert (where, what) == ("docs/benchmarks.md", "its source docs/benchmarks is missing")
    assert hint == "remove the file, or restore its source"


def test_nothing_to_publish(tree: Path, trainyard: Call) -> None:
    assert trainyard("bench", "publish").error().startswith("no results exist for the current configurations. run ")


def test_a_failed_run_is_reported_and_the_rest_is_published(
    tree: Path, trainyard: Call, fake_bench: SimpleNamespace
) -> None:
    whole = fake_bench.measure

    def measure(run: Any, harness: Any) -> Any:
        if run.seed == 2:
            raise TrainyardError("the scheduler stood still")
        return whole(run, harness)

    fake_bench.measure = measure
    ended = trainyard("bench", "run")
    assert ended.code == 1
    assert "fake.small.ours.s2 failed: the scheduler stood still" in ended.err
    assert "2 figures of 2 runs" in ended.out


def test_a_replay_prints_what_it_measured(tree: Path, trainyard: Call) -> None:
    words = ("bench", "replay", "fake", "--case", "large", "--column", "ours", "--seed", "5")
    ended = trainyard(*words)
    assert ended.code == 0
    assert "[1/1] fake large ours, seed 5 (all by " in ended.out
    assert "fake.large.ours.s5 (0 s)\n  used  95\n" in ended.out
    assert "1 of 1 runs have results" in trainyard(*words).out


def test_the_list_says_what_is_left(tree: Path, trainyard: Call) -> None:
    assert (
        "fake: A fake bench\n  4 runs, 4 to measure, about 2 min\n  cases:   small\n" in trainyard("bench", "list").out
    )
    trainyard("bench", "run")
    assert "4 runs, measured\n" in trainyard("bench", "list").out
    assert "cases:   small, large\n  columns: ours, kube-default\n" in trainyard("bench", "list", "--full").out
