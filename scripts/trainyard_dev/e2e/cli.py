"""`trainyard e2e`."""

import sys
from pathlib import Path
from typing import Any

import click

from trainyard.paths import OUT
from trainyard_dev import campaigns, changes
from trainyard_dev.e2e import selection
from trainyard_dev.e2e.run import Options, run


@click.command()
@click.option("--name", default="trainyard", show_default=True, help="Name of the cluster.")
@click.option("--provider", default="auto", type=click.Choice(["auto", "docker", "podman"]), show_default=True)
@click.option("--images", default="auto", type=click.Choice(["auto", "pull", "build"]), show_default=True)
@click.option("--gpu", default="auto", type=click.Choice(["auto", "mock", "real"]), show_default=True)
@click.option("--keep", is_flag=True, help="Keep the cluster running afterwards.")
@click.option("--full", is_flag=True, help="Run all checks, not only those of the main job.")
@click.option("--only", default="", help="Comma-separated ids or groups of checks, such as gang,train.pytorchjob.")
@click.option("--reuse", is_flag=True, help="Run on a kept cluster with this tree's chart, and keep the cluster.")
@click.option("--changed", is_flag=True, help="Run the main job and checks whose inputs changed since they passed.")
@click.option("--list", "listing", is_flag=True, help="List the checks, run none.")
@click.option(
    "--out", default=OUT / "e2e", type=click.Path(path_type=Path, file_okay=False), help="Folder for the report."
)
def e2e(full: bool, only: str, changed: bool, listing: bool, **given: Any) -> None:
    """Test the platform end to end on a real cluster. Makes a cluster, installs the chart, trains MNIST on GPUs and
    writes a report. Exit code 0: every check passed.
    """
    if listing:
        click.echo(selection.table())
        return
    words = tuple(word for word in only.split(",") if word)
    left: frozenset[str] = frozenset()
    if changed and not full:
        found = selection.changed(changes.paths())
        left = selection.long(found)
        more = found - left
        words = tuple(sorted(selection.chosen([], full=False) | more))
        print(f"changed since the last good run: {', '.join(sorted(more)) or 'only the main job'}", flush=True)
        if left:  # they stay due: only a run with all of them is remembered as good
            print(f"skipped, as each takes minutes alone; run with FULL=1: {', '.join(sorted(left))}", flush=True)
    good = run(Options(only=words, full=full, **given))
    for line in campaigns.due() if changed or full else ():
        print(line, flush=True)
    if not good:
        sys.exit(1)
    if (changed or full) and not left:
        changes.remember()
