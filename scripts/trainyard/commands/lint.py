"""`trainyard lint`."""

import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from trainyard import contract, kube
from trainyard.errors import TrainyardError, UsageError
from trainyard.pipelines.lint import files
from trainyard.policy.lint import advice
from trainyard.policy.lint import page as pages
from trainyard.policy.lint.codes import registry
from trainyard.policy.lint.finding import Finding, Severity
from trainyard.policy.lint.output import FORMATS, render
from trainyard.policy.lint.report import Site, site

PATIENCE_S = 1.0
SUFFIXES = (".yaml", ".yml", ".json")


@click.command()
@click.argument("names", nargs=-1, metavar="FILE...")
@click.option("--contract", "file", default="", metavar="FILE", help=f"Contract file. Default: ${contract.VARIABLE}.")
@click.option("--live", is_flag=True, help="Use the contract of the kubeconfig's cluster.")
@click.option(
    "--team", default="", metavar="NAME", help="Team whose rules apply. Default: the object's namespace, or all teams."
)
@click.option("-o", "--output", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--ignore", multiple=True, metavar="CODE", help="Comma-separated codes to ignore; may be repeated.")
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@click.option("--skip-others", is_flag=True, help="Skip files that lint does not check, for commit hooks.")
@click.option("--page", is_flag=True, help="Print docs/lint.md: every code with its meaning.")
@kube.options
def lint(
    names: tuple[str, ...],
    file: str,
    live: bool,
    team: str,
    form: str,
    ignore: tuple[str, ...],
    strict: bool,
    skip_others: bool,
    page: bool,
    access: kube.Access,
) -> None:
    """Check files for errors that the cluster would reject. FILE is a kfp Python file, a compiled pipeline, a hera or
    Argo workflow, a job manifest or trainyard.yaml. Without --contract and --live, the contract comes from
    $TRAINYARD_CONTRACT, else from the cluster if it answers at once, else from the chart's defaults; then site-specific
    findings are only warnings.

    Exit code 0: no errors; 1: errors; 2: wrong usage. docs/lint.md explains every code.
    """
    if page:
        click.echo(pages.render(), nl=False)
        return
    if not names:
        raise UsageError("no files given", hint="pass pipelines, manifests or trainyard.yaml")
    left_out = _codes(ignore)
    judged = find_site(file, live, team or access.namespace, access)
    found: list[Finding] = []
    looked = 0
    for path in map(Path, dict.fromkeys(names)):
        if not path.exists():
            raise UsageError("no such file", where=str(path), hint="pass pipelines, manifests or trainyard.yaml")
        if skip_others and not files.known(path):
            continue
        looked += 1
        found += [one for one in files.check(path, judged) if one.code not in left_out]
    found += [one for one in _sizes(names, judged, access) if one.code not in left_out]
    click.echo(render(found, form, looked, judged.contract.source))
    if form == "text":
        root = click.get_current_context().find_root()
        for line in advice.lines(
            found, root.command.list_commands(root) if isinstance(root.command, click.Group) else ()
        ):
            click.echo(line)
    limit = Severity.WARNING if strict else Severity.ERROR
    sys.exit(any(one.severity >= limit for one in found))


def _sizes(names: tuple[str, ...], judged: Site, access: kube.Access) -> list[Finding]:
    """Notes on requests that are far from what was used: only where the cluster's contract was read."""
    from trainyard.rightsize import hints

    wanted = [name for name in dict.fromkeys(names) if Path(name).suffix in SUFFIXES and Path(name).is_file()]
    sized = [file for file in map(hints.read, wanted) if file] if judged.contract.live else []
    if not sized:
        return []
    cluster = access.connect()
    team = judged.chosen or cluster.namespace
    seen = hints.known(cluster, team)
    return [
        Finding(file.name, line, hints.CODE, what, hint, severity=Severity.NOTE)
        for file in sized
        if seen
        for line, what, hint in hints.of_file(file, seen, team)
    ]


def _answers(host: str) -> bool:
    """Whether somebody listens there at once: who is on a train should not wait for the cluster at home."""
    parts = urlsplit(host)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 443), timeout=PATIENCE_S):
            return True
    except OSError:
        return False


def _codes(ignore: tuple[str, ...]) -> frozenset[str]:
    found = frozenset(code for one in ignore for code in one.split(",") if code)
    if unknown := sorted(found - registry().keys()):
        raise UsageError(f"unknown code {unknown[0]}", where="--ignore", hint="see docs/lint.md for all codes")
    return found


def find_site(file: str, live: bool, team: str, access: kube.Access) -> Site:
    """By which contract, and as whose, manifests are judged. UsageError for a contract or team that isn't there."""
    if live and file:
        raise UsageError("--live and --contract exclude each other", hint="pass one of them")
    if live:
        return site(contract.live(access.connect()), team)
    try:
        cluster = access.connect() if access.files() and not file else None
    except TrainyardError:
        if access.kubeconfig or access.context:
            raise
        cluster = None
    found = contract.find(file or None, cluster if cluster and _answers(cluster.host) else None)
    return site(found, team)
