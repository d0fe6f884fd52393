"""`trainyard adopt`."""

from pathlib import Path
from typing import Any

import click

from trainyard import contract, kube, yaml_edit, yaml_lines
from trainyard.commands import common
from trainyard.commands.lint import find_site
from trainyard.errors import UsageError
from trainyard.policy import fill
from trainyard.policy.lint.report import Site

Object = dict[str, Any]


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-i", "--write", is_flag=True, help="Write the files. Without it, they are unchanged.")
@click.option("-o", "--output", default="", metavar="FILE", help='Write the result of one FILE here ("-": print it).')
@click.option("--contract", "file", default="", metavar="FILE", help=f"Contract file; also ${contract.VARIABLE}.")
@click.option("--live", is_flag=True, help="Use the contract of the kubeconfig's cluster.")
@click.option(
    "--team", default="", metavar="NAME", help="Team whose defaults apply. Default: the namespace's, or the only team."
)
@kube.options
def adopt(
    files: tuple[str, ...], write: bool, output: str, file: str, live: bool, team: str, access: kube.Access
) -> int:
    """Fill in the platform's defaults in manifests. Shows the difference for each FILE. FILE is YAML or JSON with plain
    manifests: jobs of any kind, pods, workflows, claims. What stands there stays, with its comments and order; only
    images that the site has a stand-in for are replaced, with a warning. On a cluster that fills in manifests itself
    (docs/filled-in.md) this is not needed.

    Exit code 0: nothing is missing, or all was written; 1: --write would change something; 2: wrong usage.
    """
    if output and (write or len(files) != 1):
        raise UsageError("--output is for one FILE, and without --write", hint="give one of the two, and one FILE")
    if write and "-" in files:
        raise UsageError("standard input can't be written to", hint="print the result: --output=-")
    judged = find_site(file, live, team or access.namespace, access)
    if judged.contract.assumed:
        told = "no contract found, and the chart's defaults may not be your site's"
        hint = "pass --contract FILE, or a kubeconfig whose cluster answers"
        if write or output:
            raise UsageError(told, hint=hint)
        click.echo(f"warning: {told}: {hint}", err=True)
    read = [(name, common.read(name, "name files with manifests")) for name in files]
    made = [(name, old, _adopted(name, old, judged)) for name, old in read]
    changed = [(name, old, new) for name, old, new in made if new != old]
    if output == "-":
        click.echo(made[0][2].encode(), nl=False)
        return 0
    if output:
        Path(output).write_bytes(made[0][2].encode())
    for name, old, new in changed:
        click.echo(
            common.difference(name, old, new, "adopted").encode(), nl=False
        )  # in UTF-8, as the file is, whatever the locale
        if write:
            Path(name).write_bytes(new.encode())
    written = f"written to {output}" if output else "written" if write else "to be written: add --write"
    click.echo(f"{len(changed)} of {len(files)} files {written}" if changed else "nothing is missing", err=True)
    return 1 if changed and not write and not output else 0


def _adopted(name: str, text: str, judged: Site) -> str:
    """The text with what is filled in; says on standard error what it is."""
    wanted = []
    for document in yaml_lines.documents(text, name):
        data = document.data
        if isinstance(data, dict) and data.get("kind") == "List" and isinstance(data.get("items"), list):
            wanted.append(data | {"items": [_object(one, name, judged) for one in data["items"]]})
        else:
            wanted.append(_object(data, name, judged))
    return yaml_edit.edited(text, name, wanted)


def _object(obj: Any, name: str, judged: Site) -> Any:
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str) or "apiVersion" not in obj:
        raise UsageError("contains an object without apiVersion and kind", where=name, hint="pass plain manifests")
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(obj.get("spec", {}), dict):
        raise UsageError("has an object whose metadata or spec is not a map", where=name, hint="make it one")
    made = fill.filled(obj, judged.contract, judged.team(str(meta.get("namespace") or "")))
    title = f"{name}: {obj['kind']} {meta.get('name') or meta.get('generateName') or '(no name)'}"
    if made.names:
        click.echo(f"{title}: {', '.join(made.names)}", err=True)
    for old, new in made.images:
        click.echo(f"{title}: warning: {new} replaces the image {old}", err=True)
    return made.obj
