"""What several commands share: options, the cluster with its contract, texts of files, words beside the result."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard.errors import TrainyardError, UsageError

if TYPE_CHECKING:
    from trainyard.contract import Contract
    from trainyard.kube import Access, Kube

contract_file = click.option(
    "--contract",
    "contract_file",
    type=click.Path(path_type=Path),
    help="Contract file to use instead of the cluster's contract.",
)
wait = click.option("--wait/--no-wait", default=True, help="Wait until every replica is ready.")
timeout = click.option(
    "--timeout", type=click.IntRange(1), default=600, show_default=True, help="Maximum time to wait, in seconds."
)


def output(*forms: str) -> Callable[..., Any]:
    """The option -o of these forms, the first one unless told otherwise."""
    return click.option("-o", "--output", "form", type=click.Choice(forms), default=forms[0], show_default=True)


def say(text: str) -> None:
    """What is not the result goes to standard error."""
    click.echo(text, err=True)


def connected(access: Access) -> tuple[Kube, Contract]:
    """The cluster, and what the chart has published there."""
    kube = access.connect()
    return kube, contract_of(kube, None)


def cluster_for(access: Access, contract_file: Path | None, team: str) -> Kube | None:
    """The cluster; None where the contract's file and the team are given. An error names that way, too."""
    try:
        return None if contract_file and team else access.connect()
    except TrainyardError as error:
        hint = f"{error.hint}; without a cluster, pass --contract FILE and -n TEAM"
        raise UsageError(error.what, where=error.where, hint=hint) from None


def contract_of(kube: Kube | None, file: Path | None) -> Contract:
    """The contract of a file, else the cluster's; one of the two is given."""
    from trainyard import contract

    if file:
        return contract.load(file)
    assert kube is not None
    return contract.live(kube)


def read(name: str, hint: str = "") -> str:
    """A file's text, or with "-" standard input's, with its line ends as they are. Raises UsageError."""
    try:
        return (sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()).decode()
    except UnicodeDecodeError:
        raise UsageError("not UTF-8 text", where=name) from None
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=name, hint=hint) from None


def difference(name: str, old: str, new: str, done: str) -> str:
    """What was changed in a file, for people."""
    before, after = ([f"{line}\n" for line in text.splitlines()] for text in (old, new))
    return "".join(difflib.unified_diff(before, after, name, f"{name} ({done})"))


def drawable(svg: Path | None) -> None:
    """Raises UsageError where there is no folder for the drawing."""
    if svg and svg.parent != Path() and not svg.parent.is_dir():
        raise UsageError(f"no such folder: {svg.parent}", hint="create the folder, or choose another --svg")
