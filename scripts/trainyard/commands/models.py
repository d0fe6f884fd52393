"""Commands under `trainyard models`."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard import structured
from trainyard.commands.common import connected, output, say
from trainyard.errors import UsageError
from trainyard.kube import Access, options

if TYPE_CHECKING:
    from trainyard.kube import Kube

TENSOR = re.compile(r"([A-Za-z0-9_.-]+):([A-Z0-9]+):(-?\d+(?:,-?\d+)*)(?::(\w+))?")
SPELLED = "write NAME:DATATYPE:SHAPE, such as image:FP32:-1,784; -1 means any length"


@click.group()
def models() -> None:
    """Register and compare versions of models. MODEL is NAME, which means the version registered last, or NAME@VERSION;
    a unique prefix of the version is enough.
    """


@models.command("list")
@click.argument("name", default="")
@output("table", "json", "yaml", "name")
@options
def list_(name: str, form: str, access: Access) -> None:
    """List registered models, or the versions of one. Marks the version in service."""
    from trainyard.serving import comparison, shelf
    from trainyard.serving.cards import split

    if name:
        split(name)
    kube, known = connected(access)
    with shelf.opened(kube, known) as found:
        cards = found.listed(name)
    if form in ("json", "yaml"):
        served = _served(kube)
        rows = [card.document() | {"inService": served.get(card.name) == card.version} for card in cards]
        click.echo(structured.text(rows, form), nl=False)
    elif form == "name":
        for card in cards:
            click.echo(card.title)
    elif cards:
        click.echo(comparison.listing(cards, _served(kube)))
    else:
        hint = "register one with `trainyard models register FOLDER NAME`"
        click.echo(f"no models{f' called {name}' if name else ''} in {kube.namespace}; {hint}", err=True)


@models.command()
@click.argument("first", metavar="MODEL")
@click.argument("second", metavar="MODEL", default="")
@output("table", "json", "yaml")
@options
def compare(first: str, second: str, form: str, access: Access) -> None:
    """Compare two versions of a model. Shows data, code, run, metrics and digest. With one MODEL, compares that version
    with the one in service.
    """
    from trainyard.serving import comparison, shelf

    kube, known = connected(access)
    with shelf.opened(kube, known) as found:
        one = found.find(first)
        if not second:
            now = _served(kube).get(one.name)
            if not now:
                raise UsageError(f"{one.name} is not in service", hint="pass a second version to compare with")
            one, second = found.find(f"{one.name}@{now}"), one.title
        other = found.find(second)
    if form == "table":
        click.echo(comparison.table(one, other))
    else:
        click.echo(structured.text(comparison.compared(one, other), form), nl=False)


@models.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--framework", default="", help="Framework: pytorch, tensorflow, sklearn or onnx.")
@click.option("--file", default="", help="Model file or folder in FOLDER; required if FOLDER contains several.")
@click.option("--input", "inputs", multiple=True, metavar="NAME:DATATYPE:SHAPE", help="Input tensor; may be repeated.")
@click.option(
    "--output-tensor", "outputs", multiple=True, metavar="NAME:DATATYPE:SHAPE[:METHOD]", help="Output tensor."
)
@click.option(
    "--builder", default="", metavar="FILE.py:FUNCTION", help="Function that builds the module for PyTorch weights."
)
@click.option("--metric", "metrics", multiple=True, metavar="NAME=VALUE", help="Quality metric; may be repeated.")
@click.option("--data", default="", help="Training data.")
@click.option("--code", default="", help="Training code: a commit or a digest.")
@click.option("--run", default="", help="Run that trained the model.")
@click.option(
    "--version", default="", help="Version. Default: derived from the content; equal content has an equal version."
)
@click.option("--dry-run", is_flag=True, help="Print the card without uploading anything.")
@output("name", "json", "yaml")
@options
def register(folder: Path, dry_run: bool, form: str, access: Access, **said: Any) -> None:
    """Register FOLDER as a version of model NAME. Reads FOLDER/model.json and FOLDER/metrics.json; options override
    them. Uploads all files in FOLDER. A registered version never changes.

    \b
    trainyard models register results digits --framework pytorch \\
      --input image:FP32:-1,784 --output-tensor logits:FP32:-1,10
    """
    from trainyard.serving import shelf

    tensors = {key: [_tensor(one) for one in said[key]] for key in ("inputs", "outputs")}
    card = shelf.complete(folder, {**said, **tensors, "metrics": dict(map(_number, said["metrics"]))})
    if dry_run:
        click.echo(structured.text(card, "yaml" if form == "yaml" else "json"), nl=False)
        return
    kube, known = connected(access)
    with shelf.opened(kube, known) as found:
        made = found.register(folder, card, say)
    click.echo(structured.text(made.document(), form) if form != "name" else made.title, nl=form == "name")


@models.command()
@click.argument("model")
@click.option("--metric", default="accuracy", show_default=True, help="Metric of the cards to compare.")
@click.option("--gain", type=float, default=0.0, show_default=True, help="Minimum improvement; may be negative.")
@click.option("--minimum", type=float, help="Minimum value of the metric.")
@click.option("--lower", is_flag=True, help="Lower is better, as for a loss.")
@output("text", "json", "yaml")
@options
def gate(model: str, metric: str, gain: float, minimum: float | None, lower: bool, form: str, access: Access) -> None:
    """Check whether a version may replace the one in service. Exit code 1 if it may not."""
    from trainyard.serving import gate as gates
    from trainyard.serving import shelf

    kube, known = connected(access)
    with shelf.opened(kube, known) as found:
        candidate = found.find(model)
        now = _served(kube).get(candidate.name)
        served = found.find(f"{candidate.name}@{now}") if now else None
    verdict = gates.judge(candidate, served, metric, gain=gain, minimum=minimum, lower=lower)
    if form != "text":
        click.echo(structured.text(verdict.document(), form), nl=False)
    if not verdict.passed:
        raise gates.held(verdict)
    if form == "text":
        click.echo(verdict.text)


def _served(kube: Kube) -> dict[str, str]:
    """The version in service by model; {} without permission to list deployments."""
    from trainyard.kube import KubeError
    from trainyard.serving import apply, by_kserve, versions

    try:
        found = kube.list(kube.path("apps/v1", "deployments"), labelSelector=f"{apply.LABEL},trainyard.io/track=stable")
    except KubeError as error:
        if error.status != apply.FORBIDDEN:
            raise
        return {}
    named = [(one, versions.of_template(one["spec"]["template"])) for one in found if not by_kserve.owns(one)]
    named += [(one, versions.of_template(by_kserve.template(one))) for one in by_kserve.listed(kube)]
    return {one["metadata"]["labels"][apply.LABEL]: served.version for one, served in named if served}


def _tensor(text: str) -> dict[str, Any]:
    match = TENSOR.fullmatch(text)
    if not match:
        raise UsageError(f"invalid tensor: {text!r}", hint=SPELLED)
    name, datatype, shape, method = match.groups()
    said: dict[str, Any] = {"name": name, "datatype": datatype, "shape": [int(one) for one in shape.split(",")]}
    return said | ({"method": method} if method else {})


def _number(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not name or not math.isfinite(number):
        raise UsageError(f"invalid number: {text!r}", hint="write --metric NAME=VALUE, such as accuracy=0.97")
    return name, number
