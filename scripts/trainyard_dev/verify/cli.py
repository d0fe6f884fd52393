"""`trainyard verify`: a dry run of `versions sync`, checks of other files, and the tree's budget."""

from pathlib import Path

import click

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.sync import cli as sync
from trainyard_dev.sync import invariants
from trainyard_dev.sync.tree import Difference
from trainyard_dev.verify import budget, classes
from trainyard_dev.versions import read


@click.command()
def verify() -> None:
    """Check pins, generated files and the tree's size. Copies and generated files must be up to date, and the tree
    within its budget.
    """
    found, said = differences(ROOT)
    for difference in found:
        click.echo(str(difference))
    if found:
        count = "1 difference" if len(found) == 1 else f"{len(found)} differences"
        raise TrainyardError(count, hint="fix the files listed above")
    click.echo("every copy of a pin matches versions.yaml, and every generated file is up to date")
    click.echo(said)


def differences(root: Path) -> tuple[list[Difference], str]:
    """All differences of a tree, sorted by file, and a sentence about its budget.

    Raises:
        TrainyardError: versions.yaml or files.yaml itself can't be read.
    """
    raw = read(root)
    tree = sync.write(root, dry=True, upstream=lambda name: None)
    found = {*tree.differences(), *invariants.differences(root, raw)}
    if not (root / ".git").exists():
        return sorted(found), "files were not counted: this is not a git checkout"
    ledger, texts = classes.read(root), classes.tracked(root)
    listed = classes.entries(ledger)
    figures = budget.figures(ledger, listed, texts)
    counted = (classes.differences(listed, texts, tree.made), budget.differences(root, ledger, figures, listed, texts))
    found |= {Difference(*one) for check in counted for one in check}
    return sorted(found), ", ".join(map(str, figures))
