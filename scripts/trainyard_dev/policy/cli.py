"""Commands under `trainyard policy`."""

import dataclasses
import json
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import click
import yaml

from trainyard import structured
from trainyard.errors import UsageError
from trainyard.policy.rules import rules
from trainyard_dev.chart import package, parts
from trainyard_dev.policy.check import Verdict, site

EXAMPLE = "example"
WIDTH = 100


@click.group()
def policy() -> None:
    """List admission rules, or test manifests against them."""


@policy.command("list")
@click.option("-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True)
def list_rules(output: str) -> None:
    """List all rules with their requirements."""
    found = rules()
    if output != "table":
        click.echo(_structured([dataclasses.asdict(rule) for rule in found], output), nl=False)
        return
    for rule in found:
        click.echo(f"{rule.id}  {rule.name:20}{rule.about}")


@policy.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--team", default="", metavar="NAME", help="Team to check as; required if the values have several.")
@click.option("--values", "values", multiple=True, metavar="FILE", help="Values file of your platform.")
@click.option("--profile", type=click.Choice(parts.profiles()), default="kind", show_default=True)
@click.option("--as", "user", default="", metavar="USER", help="User name of the member who submits.")
@click.option("-o", "--output", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True)
def test(files: tuple[str, ...], team: str, values: tuple[str, ...], profile: str, user: str, output: str) -> None:
    """Say what the platform would admit of FILE... ("-": standard input), without a cluster.

    A real API server starts on this machine with the platform's rules, rights and quotas. It is asked about each object
    as a member of the team, and about each pod that an operator would make of it as that operator. Without --values,
    the platform is the profile's with one team made up. Exit code 1: something is refused.
    """
    objects = [obj for file in files for obj in _read(file)]
    if not objects:
        raise UsageError("the files contain no objects", where=", ".join(files), hint="pass Kubernetes objects")
    for file in values:
        if not Path(file).is_file():
            raise UsageError("values file not found", where=file, hint="correct --values")
    with tempfile.TemporaryDirectory(prefix="policy-") as folder:
        given = [Path(file) for file in values] or [_example(Path(folder), team or EXAMPLE)]
        platform = package.render(profile, values=given)
        with site(platform, team, user) as found:
            verdicts = found.check(objects)
    if output == "table":
        _table(verdicts)
    else:
        click.echo(
            _structured([dataclasses.asdict(one) | {"refused": one.refused} for one in verdicts], output), nl=False
        )
    sys.exit(any(verdict.refused for verdict in verdicts))


def _read(file: str) -> list[dict[str, Any]]:
    """Reads the objects of a file, lists expanded. Raises UsageError for a file that is no manifest."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        found = [doc for doc in yaml.safe_load_all(text) if doc is not None]
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text"
        raise UsageError(f"can't be read: {why}", where=file, hint='pass a file, or "-" for standard input') from None
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 1
        raise UsageError(f"is not valid YAML, see line {line}", where=file, hint="correct that line") from None
    objects: list[dict[str, Any]] = []
    for doc in found:
        listed = isinstance(doc, dict) and str(doc.get("kind", "")).endswith("List")
        items = (doc.get("items") or []) if listed else [doc]
        for obj in items if isinstance(items, list) else [items]:
            if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str) or "apiVersion" not in obj:
                raise UsageError("contains an object without apiVersion and kind", where=file, hint="add both")
            if not isinstance(obj.get("metadata", {}), dict) or not isinstance(obj.get("spec", {}), dict):
                raise UsageError("has an object whose metadata or spec is not a map", where=file, hint="make it one")
            objects.append(obj)
    return objects


def _example(folder: Path, team: str) -> Path:
    """Writes values with one made-up team."""
    file = folder / "values.yaml"
    made = {"name": team, "gid": 20001, "members": {"groups": [f"{team}-members"]}, "queues": []}
    file.write_text(yaml.safe_dump({"global": {"contract": {"teams": [made]}}}))
    return file


def _structured(data: list[dict[str, Any]], output: str) -> str:
    return structured.text(json.loads(json.dumps(data)), output)


def _table(verdicts: list[Verdict]) -> None:
    """Prints one line for each object, with its violations below."""
    names = [f"{verdict.kind}/{verdict.name}" for verdict in verdicts]
    wide = max(map(len, names))
    for name, verdict in zip(names, verdicts, strict=True):
        word = "refused" if verdict.refused else "warned" if verdict.findings else "admitted"
        click.echo(f"{name:{wide}}  {word:9} as {verdict.identity}")
        for finding in verdict.findings:
            text = f"{finding.by}: {finding.message}" if finding.refuses else f"{finding.by} (warns): {finding.message}"
            click.echo(textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="      "))
    refused = sum(verdict.refused for verdict in verdicts)
    click.echo(f"\n{len(verdicts)} objects: {len(verdicts) - refused} admitted, {refused} refused")
