"""Commands under `trainyard corpus`."""

from __future__ import annotations

import click
import yaml

from trainyard.paths import ROOT
from trainyard_dev.apiserver import running
from trainyard_dev.apiserver.install import install
from trainyard_dev.chart import package
from trainyard_dev.corpus import page as pages
from trainyard_dev.corpus import results, run, volcano

TEAMS = ROOT / "tests" / "policies" / "teams.yaml"


@click.group()
def corpus() -> None:
    """Upstream's examples, by which lint is held against the API server."""


@corpus.command("run")
def run_() -> int:
    """Put every example to lint and to a real API server, as it is and with lint's hints followed.

    Results go to docs/corpus/results.json, then docs/corpus.md is written. Exit code 1: lint and the server differ.
    """
    objects = package.render("kind", values=[TEAMS])
    with running() as server:
        extra = TEAMS.with_name("extra.yaml")
        install(server, [*objects, *yaml.safe_load_all(extra.read_text())])
        with volcano.admission(server):
            found = run.every(run.asker(server, run.contract(objects), "vision"), show=click.echo)
    results.write(ROOT, found, results.versions())
    (ROOT / pages.PAGE).write_text(pages.render(ROOT))
    wrong = [f"{one.group}/{one.file}: {what}" for one in found for what in one.differences]
    for line in wrong:
        click.echo(line)
    click.echo(f"{len(found)} files, {len(wrong)} differences; written: {results.FILE}, {pages.PAGE}")
    return int(bool(wrong))


@corpus.command()
def page() -> None:
    """Write docs/corpus.md again."""
    (ROOT / pages.PAGE).write_text(pages.render(ROOT))
    click.echo(f"written: {pages.PAGE}")
