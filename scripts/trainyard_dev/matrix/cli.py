"""Commands under `trainyard matrix`."""

from pathlib import Path

import click

from trainyard.errors import UsageError
from trainyard.paths import OUT, ROOT
from trainyard_dev import campaigns
from trainyard_dev.e2e import selection
from trainyard_dev.matrix import page as pages
from trainyard_dev.matrix import results, run, support
from trainyard_dev.versions import read


@click.group()
def matrix() -> None:
    """Test against several minor versions of Kubernetes."""


@matrix.command("run")
@click.option("--kubernetes", "wanted", multiple=True, metavar="1.36", help="Minor version to test. Defaults to all.")
@click.option("--group", "groups", multiple=True, type=click.Choice(list(results.GROUPS)), help="Only this group.")
def run_(wanted: tuple[str, ...], groups: tuple[str, ...]) -> int:
    """Run groups of tests on each minor; results go to docs/support/matrix.json, then the page is written.

    Builds the API servers that the cache lacks, some minutes each. Exit code 1: something failed or could not be built.
    """
    minors = support.minors(read(ROOT))
    for minor in wanted:
        if minor not in minors:
            raise UsageError(f"no tool set builds Kubernetes {minor}", hint=f"use {', '.join(minors)}, or add a set")
    chosen = {minor: version for minor, version in minors.items() if not wanted or minor in wanted}
    found, bad = results.read(ROOT), 0
    for minor, group, one in run.groups(found, chosen, groups or tuple(results.GROUPS)):
        bad += not one.good
        counts = f"{one.passed} passed, {one.failed} failed, {one.skipped} skipped, {one.seconds} s"
        click.echo(f"{minor} {group}: {one.result}, {one.why or counts}")
    write()
    return campaigns.ended("matrix", good=not bad, whole=not wanted and not groups)


@matrix.command("main-job")
@click.argument("summary", type=click.Path(path_type=Path), default=OUT / "e2e" / "summary.json")
def main_job(summary: Path) -> int:
    """Note how the main job of a finished `make e2e` of this commit ended, and write the page.

    SUMMARY is its summary.json; left out: that of this checkout's last run. Exit code 1: it failed.
    """
    minor, one = run.main_job(summary, selection.chosen((), full=False))
    found = results.read(ROOT)
    found.setdefault(minor, {})[results.MAIN_JOB] = one
    results.write(ROOT, found)
    write()
    click.echo(f"{minor} {results.MAIN_JOB}: {one.result}, {one.passed} passed, {one.failed} failed")
    return int(not one.good)


@matrix.command()
def page() -> None:
    """Regenerate docs/support.md."""
    write()
    click.echo(f"written: {pages.PAGE}")


def write() -> None:
    """Writes the page of this tree."""
    (ROOT / pages.PAGE).write_text(pages.render(ROOT, read(ROOT)))
