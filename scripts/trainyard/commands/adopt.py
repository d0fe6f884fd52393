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
@click.option("-i", "--write", is_flag=True, help="Write the files instead of only showing the differences.")
@click.option("-o", "--output", default="", metavar="FILE", help='Write the result of FILE here ("-": print it).')
@click.option("--contract", "file", default="", metavar="FILE", help=f"Contract file. Default: ${contract.VARIABLE}.")
@click.option("--live", is_flag=True, help="Use the contract of the kubeconfig's cluster.")
@click.option(
    "--team", default="", metavar="NAME", help="Team whose defaults apply. Default: the namespace's, or the only one."
)
@kube.options
def adopt(
    files: tuple[str, ...], write: bool, output: str, file: str, live: bool, team: str, access: kube.Access
) -> int:
    """Add the platform's defaults to manifests. Shows the difference for each FILE. FILE is YAML or JSON with plain
    manifests: jobs of any kind, pods, workflows, claims. Existing fields, comments and order are kept; only images for
    which the site has a stand-in are replaced, with a warning. Clusters that add the defaults themselves
    (docs/filled-in.md) don't need this command.

    Exit code 0: nothing is missing, or all files were written; 1: --write would change a file; 2: wrong usage.
    """
    if output and (write or len(files) != 1):
        raise UsageError("--output needs a single FILE and no --write", hint="remove --write or the other FILEs")
    if write and "-" in files:
        raise UsageError("--write can't write to standard input", hint="print the result with --output=-")
    judged = find_site(file, live, team or access.namespace, access)
    if judged.contract.assumed:
        told = "no contract found; the chart's defaults may differ from your site's"
        hint = "pass --contract FILE, or a kubeconfig whose cluster answers"
        if write or output:
            raise UsageError(told, hint=hint)
        click.echo(f"warning: {told}: {hint}", err=True)
    read = [(name, common.read(name, "pass files with manifests")) for name in files]
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
    written = f"written to {output}" if output else "written" if write else "would change; to write them, add --write"
    click.echo(f"{len(changed)} of {len(files)} files {written}" if changed else "nothing is missing", err=True)
    return 1 if changed and not write and not output else 0


def _adopted(name: str, text: str, judged: Site) -> str:
    """The text with the defaults added; reports them on standard error."""
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
        raise UsageError("found an object without apiVersion or kind", where=name, hint="pass plain manifests")
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(obj.get("spec", {}), dict):
        raise UsageError("found an object whose metadata or spec is not a map", where=name, hint="write it as a map")
    made = fill.filled(obj, judged.contract, judged.team(str(meta.get("namespace") or "")))
    title = f"{name}: {obj['kind']} {meta.get('name') or meta.get('generateName') or '(no name)'}"
    if made.names:
        click.echo(f"{title}: {', '.join(made.names)}", err=True)
    for old, new in made.images:
        click.echo(f"{title}: warning: {new} replaces the image {old}", err=True)
    return made.obj
