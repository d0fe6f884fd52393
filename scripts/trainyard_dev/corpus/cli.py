"""Commands under `trainyard corpus`."""

import click

from trainyard_dev import campaigns
from trainyard_dev.corpus import results, run


@click.group()
def corpus() -> None:
    """Compare lint with the API server on upstream's examples."""


@corpus.command("run")
def run_() -> int:
    """Put every example to lint and to a real API server, as it is and with lint's hints followed.

    Then again on a server that fills in what the platform knows. Results go to out/corpus/; `make publish` makes pages
    of them. Exit code 1: lint and a server differ, or a file needs a second round.
    """
    wrong, count = [], 0
    for file in (results.FILE, results.FILLED):
        click.echo(f"{file.stem}:")
        with run.served(fills=file == results.FILLED) as asking:
            found = run.every(asking, click.echo)
        results.write(found, file)
        wrong += [f"{one.group}/{one.file}: {what}" for one in found for what in one.differences]
        wrong += [f"{one.group}/{one.file}: {one.again} edits in a second round" for one in found if one.again]
        count = len(found)
    for line in wrong:
        click.echo(line)
    click.echo(f"{count} files, {len(wrong)} differences; written: {results.FILE.parent}")
    return campaigns.ended("corpus", good=not wrong)
