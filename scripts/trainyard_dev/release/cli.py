"""Commands under `trainyard release`."""

from pathlib import Path

import click

from trainyard.paths import OUT


@click.group()
def release() -> None:
    """Build a release, and prove that a site can take it."""


@release.command()
@click.option(
    "--key", default="", metavar="FILE|KMS", help="Key to sign with, as cosign takes it. Defaults to a new one."
)
@click.option("--cuda", is_flag=True, help="Include the images with CUDA (several GB each).")
@click.option("--home", default="", metavar="URL", help="The project's address. Defaults to this clone's origin.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=OUT / "release", help="Folder to write to."
)
def build(out: Path, key: str, cuda: bool, home: str) -> None:
    """Build chart, images, wheels, lists of contents, signatures and notes into out/release/."""
    from trainyard_dev.release import build as building

    made = building.release(out, key=key, cuda=cuda, home=home)
    size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
    click.echo(f"{made} ({size / 1e6:.0f} MB)")


@release.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False)
@click.option("--name", default="trainyard-release", show_default=True, help="Name of the empty cluster to make.")
def test(folder: Path | None, name: str) -> None:
    """Take a release that was built before, as a site does, and try to tamper with it. 1: something is wrong."""
    from trainyard_dev.release import proof

    raise SystemExit(proof.run_all(folder or proof.newest(OUT / "release"), name))
