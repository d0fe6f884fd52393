"""Commands under `trainyard corpus`."""

from __future__ import annotations

from collections.abc import Sequence

import click
import yaml

from trainyard.paths import ROOT
from trainyard.policy import fill
from trainyard_dev import campaigns
from trainyard_dev.apiserver import running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package
from trainyard_dev.corpus import results, run, volcano
from trainyard_dev.corpus.judge import Result

TEAMS = ROOT / "tests" / "policies" / "teams.yaml"
FILLS = (f"{fill.API}/{fill.KIND}",)


@click.group()
def corpus() -> None:
    """Upstream's examples, by which lint is held against the API server."""


@corpus.command("run")
def run_() -> int:
    """Put every example to lint and to a real API server, as it is and with lint's hints followed.

    Then again on a server that fills in what the platform knows. Results go to out/corpus/; `make publish` makes pages
    of them. Exit code 1: lint and a server differ, or a file needs a second round.
    """
    wrong, count = [], 0
    for file, serves in ((results.FILE, ()), (results.FILLED, FILLS)):
        click.echo(f"{file.stem}:")
        found = _asked(serves)
        results.write(found, file)
        wrong += [f"{one.group}/{one.file}: {what}" for one in found for what in one.differences]
        wrong += [f"{one.group}/{one.file}: {one.again} edits in a second round" for one in found if one.again]
        count = len(found)
    for line in wrong:
        click.echo(line)
    click.echo(f"{count} files, {len(wrong)} differences; written: {results.FILE.parent}")
    return campaigns.ended("corpus", good=not wrong)


def _asked(serves: Sequence[str]) -> list[Result]:
    """Every example, judged by a server of its own. `serves`: what the chart is told of it."""
    objects = package.render("kind", values=[TEAMS], serves=serves)
    with running() as server:
        extra = TEAMS.with_name("extra.yaml")
        install(server, [*objects, *yaml.safe_load_all(extra.read_text())])
        with volcano.admission(server):
            asker = run.asker(server, run.contract(objects), "vision", fills=bool(serves))
            return run.every(asker, click.echo)
