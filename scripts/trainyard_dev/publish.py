"""`trainyard publish`: what is made from this tree or from the results of campaigns, and is in no commit."""

import shutil
from collections.abc import Callable
from pathlib import Path

import click

from trainyard.errors import TrainyardError
from trainyard.paths import OUT, ROOT
from trainyard_dev.attacks import results as attacks
from trainyard_dev.bench import page as benchmarks
from trainyard_dev.bench import summary as figures
from trainyard_dev.corpus import page as corpus
from trainyard_dev.corpus import results as asked
from trainyard_dev.monitoring import dashboards


def _dashboards(folder: Path) -> str:
    dashboards.write(folder)
    return "of this tree"


def _attacks(folder: Path) -> str:
    report = attacks.read(OUT)
    folder.mkdir()
    (folder / "attacks.md").write_text(attacks.page(report))
    return f"of commit {report.commit}"


def _corpus(folder: Path) -> str:
    texts = {"corpus.md": corpus.render(), "files.md": corpus.files()}
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return f"of {asked.read()[0]}"


def _benchmarks(folder: Path) -> str:
    folder.mkdir()
    found = figures.read()
    plots = benchmarks.draw(folder)
    (folder / benchmarks.PAGE.name).write_text(benchmarks.render(found))
    return f"{len(found.figures)} figures, {len(plots)} plots, of the rows in {figures.FOLDER.relative_to(ROOT)}"


# Each writes into its own folder and returns what it was made from. Raises TrainyardError where results are missing.
WRITERS: dict[str, Callable[[Path], str]] = {
    "dashboards": _dashboards,
    "benchmarks": _benchmarks,
    "attacks": _attacks,
    "corpus": _corpus,
}


@click.command()
def publish() -> None:
    """Write dashboards, pages and plots of the last campaigns to out/publish/."""
    write(OUT / "publish")


def write(top: Path) -> None:
    """Writes everything into the folder, which it replaces, and prints what is missing."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir(parents=True)
    for name, writer in WRITERS.items():
        try:
            click.echo(f"{name}: {writer(top / name)}")
        except TrainyardError as error:
            click.echo(f"{name}: missing. {error}")
    click.echo(f"written: {top}")
