"""`trainyard runs compare`: runs side by side."""

from pathlib import Path

import click

from trainyard import structured
from trainyard.commands import common
from trainyard.commands.run_names import complete
from trainyard.errors import UsageError
from trainyard.kube import Access, options

FORMS = ("table", "json", "yaml")


@click.command()
@click.argument("names", metavar="NAME NAME...", nargs=-1, required=True, shell_complete=complete)
@click.option("--different", is_flag=True, help="Show only rows in which the runs differ.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Also draw the metrics to this file.")
@common.output("table", "json", "yaml")
@options
def compare(names: tuple[str, ...], different: bool, svg: Path | None, form: str, access: Access) -> None:
    """Compare runs side by side. Shows parameters, metrics, data and code, each with its digest. Metrics are the
    numbers in a job's metrics.json, and those that pipeline steps return or log as kfp Metrics. Rows in which the runs
    differ are marked. For a deleted job, the metrics are shown as long as the store keeps them.
    """
    from trainyard.commands.run_names import NamedRun, named_or_gone
    from trainyard.observe import comparison, comparison_svg
    from trainyard.pipelines.runs import facts, nodes, snapshot, stored
    from trainyard.training import facts as of_jobs

    if len(names) < 2:
        raise UsageError("only one run given", hint="pass at least two runs")
    common.drawable(svg)
    kube = access.connect()
    chosen = [named_or_gone(kube, name) for name in names]

    def of(one: NamedRun) -> comparison.Facts:
        if one.gone:
            return of_jobs.gone(kube, one.name, store)
        return (
            of_jobs.of(kube, one.job, store) if one.job else facts.of(nodes.run(snapshot.fetch(kube, one.name)), store)
        )

    with stored.reached(kube) as store:
        runs = [of(one) for one in chosen]
    found = comparison.lines(runs, different=different)
    if svg:
        svg.write_text(comparison_svg.draw(runs, comparison.lines(runs)), encoding="utf-8")
        click.echo(f"metrics drawn in {svg}", err=True)
    if form == "table":
        click.echo(comparison.table(runs, found))
    else:
        click.echo(structured.text(comparison.data(runs, found), form), nl=False)
