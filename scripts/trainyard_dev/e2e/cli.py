"""`trainyard e2e`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainyard.paths import OUT
from trainyard_dev.e2e.run import Options, run


@click.command()
@click.option("--name", default="trainyard", show_default=True, help="The cluster's name.")
@click.option("--provider", default="auto", type=click.Choice(["auto", "docker", "podman"]), show_default=True)
@click.option("--images", default="auto", type=click.Choice(["auto", "pull", "build"]), show_default=True)
@click.option("--gpu", default="auto", type=click.Choice(["auto", "mock", "real"]), show_default=True)
@click.option("--keep", is_flag=True, help="Leave the cluster running.")
@click.option(
    "--out", default=OUT / "e2e", type=click.Path(path_type=Path, file_okay=False), help="Folder of the report."
)
def e2e(name: str, provider: str, images: str, gpu: str, keep: bool, out: Path) -> None:
    """Make a cluster, install the chart, train MNIST on GPUs, and write a report. Exit code 0: every check passed."""
    if not run(Options(name, provider, images, gpu, keep, out)):
        sys.exit(1)
