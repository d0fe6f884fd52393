"""Commands under `trainyard attacks`."""

from __future__ import annotations

import click

from trainyard.paths import ROOT
from trainyard_dev import campaigns
from trainyard_dev.attacks import page as pages
from trainyard_dev.attacks import results
from trainyard_dev.attacks.run import BEFORE, attack


@click.group()
def attacks() -> None:
    """What was tried against an earlier release, tried against this tree."""


@attacks.command("run")
def run_() -> int:
    """Put every attempt to the earlier release and to this tree, each on a real API server.

    Results go to docs/attacks/results.json, then docs/attacks.md is written. Exit code 1: something is let through now,
    refused by another guard than named, or a hole or a guard has no attempt that shows it.
    """
    report = attack(click.echo)
    results.write(ROOT, report)
    (ROOT / pages.PAGE).write_text(pages.render(report))
    for line in pages.terminal(report):
        click.echo(line)
    return campaigns.ended("attacks", good=not results.problems(report))


@attacks.command()
def page() -> None:
    """Write docs/attacks.md again."""
    (ROOT / pages.PAGE).write_text(pages.page(ROOT))
    click.echo(f"written: {pages.PAGE}, of attempts against {BEFORE.version}")
