"""Commands under `trainyard bench`."""

import sys
from collections.abc import Sequence

import click

from trainyard.errors import TrainyardError, UsageError
from trainyard_dev import campaigns
from trainyard_dev.bench import configurations, gate, page, registry, results, runner, serving, summary, tables
from trainyard_dev.bench.results import Result, Run

AGAIN = click.option("--again", is_flag=True, help="Measure again even if results exist.")
FULL = click.option("--full", is_flag=True, help="Measure everything (takes hours) instead of a part.")


@click.group()
def bench() -> None:
    """Benchmark real schedulers on published traces."""


@bench.command("list")
@FULL
def list_benches(full: bool) -> None:
    """List benches with their cases and configurations.

    What is left to measure of each stands beside, with the time that it will take by what runs like it took. Without
    --full this is the part that `make bench` measures.
    """
    known = runner.Forecast(results.read(runner.FOLDER / runner.RUNS))
    for name in registry.BENCHES:
        runs = registry.plan(name, full)
        todo = [run for run in runs if not runner.held(run, runner.FOLDER)]
        left = f"{len(todo)} to measure, about {runner.minutes_text(sum(map(known.of, todo)))}" if todo else "measured"
        count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
        click.echo(f"{name}: {registry.load(name).TITLE}\n  {count}, {left}")
        for what in ("case", "column", "seed") if runs else ():
            click.echo(f"  {what + 's:':9}{', '.join(dict.fromkeys(str(getattr(run, what)) for run in runs))}")


@bench.command()
@FULL
@click.option("--only", multiple=True, metavar="BENCH", help="Run only this benchmark; can be repeated.")
@AGAIN
def run(full: bool, only: tuple[str, ...], again: bool) -> None:
    """Measure a part of every bench, or with --full everything.

    Writes figures and a page of them to out/bench/. Every result is kept as soon as it is there: the same command
    goes on where it was interrupted.
    """
    for name in only:
        registry.load(name)
    chosen = [name for name in registry.BENCHES if name in only] or list(registry.BENCHES)
    runs = [one for name in chosen for one in registry.plan(name, full)]
    outcome = runner.execute(runs, runner.FOLDER, again=again)
    found = [result for one in runs if (result := runner.held(one, runner.FOLDER))]
    if found:
        made = summary.build(found)
        summary.write(made, runner.FOLDER)
        page.write(made, runner.FOLDER / page.PAGE.name)
        click.echo(f"{len(made.figures)} figures of {len(found)} runs: {runner.FOLDER / page.PAGE.name}")
    campaigns.ended("bench", good=not outcome.failed, whole=not only)
    _end(outcome)


@bench.command()
@click.argument("name", metavar="BENCH")
@click.option("--case", default="", help="Run only this case; list cases with `trainyard bench list --full`.")
@click.option("--column", default="", help="Run only this configuration, even one that the benchmark does not list.")
@click.option("--seed", "seeds", default="", metavar="1-3,7", help="Run only these seeds; any number is a seed.")
@AGAIN
def replay(name: str, case: str, column: str, seeds: str, again: bool) -> None:
    """Measure runs of one bench, and print what they gave.

    Without options it is the part that `make bench` measures; options choose among all runs that are planned.
    """
    runs = select(name, case, column, _numbers(seeds))
    outcome = runner.execute(runs, runner.FOLDER, again=again)
    _print([result for one in runs if (result := runner.held(one, runner.FOLDER))])
    _end(outcome)


@bench.command()
def publish() -> None:
    """Write docs/benchmarks.md from all that is measured, and figures and plots to docs/benchmarks/.

    Runs of the full plan count whose configuration is still today's. What is published besides stays.
    """
    runs = [one for name in registry.BENCHES for one in registry.plan(name, True)]
    found = [result for one in runs if (result := runner.held(one, runner.FOLDER))]
    if not found:
        raise TrainyardError("no results exist for the current configurations", hint="run `make bench FULL=1`")
    made = summary.merged(summary.read(), summary.build(found))
    summary.write(made)
    _page()
    click.echo(f"{len(made.figures)} figures, of {len(found)} of {len(runs)} runs updated: {page.PAGE}")


@bench.command("gate")
def run_gate() -> None:
    """Measure a few runs of our configuration, in minutes; exit code 1 where a figure is out of its range.

    A change of the scheduler's configuration needs it: `make verify` asks for a configuration that was measured in full
    or has passed here.
    """
    wanted = gate.ranges()
    runs = list({run.id: run for one in wanted for run in select(one.bench, one.case, one.column, [one.seed])}.values())
    outcome = runner.execute(runs, runner.FOLDER, again=True)
    found = [result for one in runs if (result := runner.held(one, runner.FOLDER))]
    _print(found)
    missed = gate.judge(wanted, found)
    for violation in missed:
        click.echo(violation, err=True)
    _end(outcome)
    if missed:
        sys.exit(1)
    gate.remember(wanted)
    click.echo(f"{len(wanted)} figures of {len(runs)} runs are within range")


@bench.command("config")
@click.argument("name")
def print_config(name: str) -> None:
    """Print a configuration as measured, with flags, environment and taints as comments."""
    found = configurations.column(name)
    click.echo(f"# {name}: {found.label}; digest {found.digest}")
    for what, values in (
        ("flag", found.flags),
        ("environment", [f"{key}={value}" for key, value in found.env]),
        ("taint of nodes with GPUs", [found.taint] if found.taint else []),
    ):
        for value in values:
            click.echo(f"# {what}: {value}")
    click.echo(found.config, nl=not found.config.endswith("\n"))


@bench.command("serving")
@click.option("--seconds", type=click.FloatRange(0.2), default=5, show_default=True, help="Seconds per measurement.")
@click.option("--publish", "published", is_flag=True, help="Write the figures into docs/benchmarks/.")
def run_serving(seconds: float, published: bool) -> None:
    """Measure the model server beside the bare library: latency, throughput, CPU of a request; one process each.

    Figures and plot go into out/bench/, or with --publish into docs/benchmarks/. Where TRAINYARD_SERVER_PYTHON names a
    Python that has them, kserve's server and PyTorch are measured too, with the GPU if there is one, and without it.
    Nothing else should run beside it.
    """
    figures, where = serving.measure(seconds, lambda text: click.echo(text, err=True))
    file = serving.write(figures, where, summary.FOLDER if published else runner.FOLDER)
    memory = ", ".join(f"{one.column} {one.value:.0f} MiB" for one in figures if one.metric == "mib")
    click.echo(f"{serving.table(figures)}\n{where}; in memory {memory}: {file}")


@bench.command("page")
def write_page() -> None:
    """Write docs/benchmarks.md and all plots from the published figures."""
    _page()
    click.echo(str(page.PAGE))


def _page() -> None:
    page.draw(summary.FOLDER)
    page.write(summary.read(), page.PAGE)


def select(name: str, case: str, column: str, seeds: Sequence[int]) -> list[Run]:
    """Returns the runs of a bench with these names and seeds; without any, those of the reduced plan.

    A configuration or seed outside the plan is measured as well, on a case of the plan: with the settings of the
    configuration's other seeds, else with those of the case's first run.

    Raises:
        UsageError: no such bench, case or configuration, or one that only other benches can measure.
    """
    everything = {one.id: one for full in (True, False) for one in registry.plan(name, full)}.values()
    settings = {(one.case, one.column): one.settings for one in everything}
    cases = list(dict.fromkeys(one.case for one in everything))
    if case and case not in cases:
        raise UsageError(f"{name} has no case {case}", hint=f"use one of {', '.join(cases)}")
    if not (case or column or seeds):
        return registry.plan(name, False)
    if column and configurations.column(column).scheduler == "raw" and all(one.column != column for one in everything):
        raise UsageError(f"{name} needs a scheduler, and {column} is none", hint="use another configuration")
    chosen: dict[str, Run] = {}
    for one in everything:
        if case and one.case != case:
            continue
        chosen_column = column or one.column
        for seed in seeds or [one.seed]:
            wanted = Run(name, one.case, chosen_column, seed, settings.get((one.case, chosen_column), one.settings))
            chosen.setdefault(wanted.id, wanted)
    return list(chosen.values())


def _numbers(text: str) -> list[int]:
    """Parses a list of seeds; empty for no text. Raises UsageError for anything else."""
    try:
        return results.numbers(text) if text else []
    except ValueError:
        raise UsageError(f"{text} contains no seeds", where="--seed", hint="write numbers, such as 1-3,7") from None


def _print(found: Sequence[Result]) -> None:
    """Prints the values of each run, one line per run."""
    for result in found:
        click.echo(f"\n{result.run.id} ({runner.minutes_text(result.seconds)})")
        wide = max(map(len, result.values), default=0)
        for metric, value in result.values.items():
            click.echo(f"  {metric:{wide}}  {tables.number(value)}")


def _end(outcome: runner.Outcome) -> None:
    """Prints what is missing; exits with code 1 if a run failed."""
    for name, why in outcome.failed.items():
        click.echo(f"{name} failed: {why}", err=True)
    if outcome.failed:
        sys.exit(1)
