"""Commands under `trainyard attacks`."""

from __future__ import annotations

import click

from trainyard_dev import campaigns
from trainyard_dev.attacks import page, results
from trainyard_dev.attacks.run import attack


@click.group()
def attacks() -> None:
    """Every attack on record, tried against this tree."""


@attacks.command("run")
def run_() -> int:
    """Put every attempt to this tree on a real API server.

    Results go to out/attacks/results.json, of which `make publish` makes a page. Exit code 1: something is let through,
    refused by another guard than named, or a guard has no attempt that shows it.
    """
    report = attack(click.echo)
    results.write(report)
    for line in page.terminal(report):
        click.echo(line)
    return campaigns.ended("attacks", good=not results.problems(report))
