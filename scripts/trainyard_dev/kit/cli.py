"""Commands under `trainyard kit`."""

from pathlib import Path

import click

from trainyard.paths import OUT
from trainyard_dev import campaigns
from trainyard_dev import engine as engines
from trainyard_dev.kit import build as building
from trainyard_dev.kit import rehearse as rehearsal


@click.group()
def kit() -> None:
    """Turn a bare Linux machine into a cluster of one node, offline."""


@kit.command()
@click.argument("folder", type=click.Path(path_type=Path), default=OUT / "kit")
@click.option("--level", default=1, show_default=True, help="Compression level of xz, 0 to 9.")
@click.option("--provider", default="auto", type=click.Choice(["auto", "docker", "podman"]), show_default=True)
def build(folder: Path, level: int, provider: str) -> None:
    """Build the parts of the kit in FOLDER, each at most 45 MiB."""
    made = building.build(engines.find(provider), folder, level)
    for name, archive in made["archives"].items():
        size = sum((folder / one).stat().st_size for one in archive)
        click.echo(f"{name:8}{len(archive):3} parts {size / 1024**2:7.1f} MiB")


@kit.command()
@click.argument("folder", type=click.Path(path_type=Path), default=OUT / "kit")
@click.option("--times", default=2, show_default=True, help="Runs, each from nothing.")
@click.option("--provider", default="auto", type=click.Choice(["auto", "docker", "podman"]), show_default=True)
def rehearse(folder: Path, times: int, provider: str) -> None:
    """Run the kit of FOLDER in a bare container with a mock GPU, within the limits of a borrowed machine."""
    runs = []
    for number in range(1, times + 1):
        click.echo(f"\nrun {number} of {times}")
        runs.append(rehearsal.rehearse(engines.find(provider), folder, folder / f"rehearsal-{number}"))
    click.echo(f"\n{'STEP':28}{'OUTCOME':10}SECONDS")
    for steps in zip(*runs, strict=True):
        click.echo(f"{steps[0]['step']:28}{steps[0]['outcome']:10}{'  '.join(str(one['seconds']) for one in steps)}")
    campaigns.ended("kit-test", good=True, whole=times > 1)
