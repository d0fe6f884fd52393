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
@click.option("--name", default="trainyard", show_default=True, help="The cluster's name.")
@click.option("--provider", default="auto", type=click.Choice(["auto", "docker", "podman"]), show_default=True)
@click.option("--images", default="auto", type=click.Choice(["auto", "pull", "build"]), show_default=True)
@click.option("--gpu", default="auto", type=click.Choice(["auto", "mock", "real"]), show_default=True)
@click.option("--keep", is_flag=True, help="Leave the cluster running.")
@click.option("--full", is_flag=True, help="Every check, not only the main job's.")
@click.option("--only", default="", help="Ids or groups of checks, with commas: gang,train.pytorchjob.")
@click.option("--reuse", is_flag=True, help="Check on a cluster that was kept, with this tree's chart; keep it.")
@click.option("--changed", is_flag=True, help="The main job, and every check whose inputs changed since one passed.")
@click.option("--list", "listing", is_flag=True, help="List the checks and do nothing else.")
@click.option(
    "--out", default=OUT / "e2e", type=click.Path(path_type=Path, file_okay=False), help="Folder of the report."
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
        print(
            f"changed since the last good run: {', '.join(sorted(more)) or 'nothing beyond the main job'}", flush=True
        )
        if left:  # they stay due: only a run with all of them is remembered as good
            print(
                f"skipped, minutes each with nothing beside it; FULL=1 runs them: {', '.join(sorted(left))}", flush=True
            )
    good = run(Options(only=words, full=full, **given))
    for line in campaigns.due() if changed or full else ():
        print(line, flush=True)
    if not good:
        sys.exit(1)
    if (changed or full) and not left:
        changes.remember()
