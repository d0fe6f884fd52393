"""Commands under `trainyard attacks`."""

import click

from trainyard.paths import OUT
from trainyard_dev import campaigns
from trainyard_dev.attacks import results
from trainyard_dev.attacks.attempts import attempts
from trainyard_dev.attacks.run import attack


@click.group()
def attacks() -> None:
    """Run attacks that the platform must refuse."""


@attacks.command("run")
def run_() -> int:
    """Put every attempt to this tree, on a real API server.

    Results go to out/attacks/results.json. Exit code 1: something is let through, is refused by another guard than
    named or in other words, or a guard has no attempt.
    """
    report = attack(attempts(), click.echo)
    file = results.write(OUT, report)
    wrong = results.problems(report)
    for line in [*wrong, results.counts(report), f"written: {file}"]:
        click.echo(line)
    return campaigns.ended("attacks", good=not wrong)
