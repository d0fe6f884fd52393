"""Commands under `trainyard serve`, which serves a model if no subcommand is given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainyard import structured
from trainyard.commands import common
from trainyard.errors import TrainyardError, UsageError
from trainyard.kube import Access, options

if TYPE_CHECKING:
    from trainyard.serving.plan import ServeRequest

AMOUNTS = {"cpu": "500m", "memory": "1Gi"}
SERVE = "model"  # the command that `trainyard serve NAME` stands for


class Serving(click.Group):
    """A group whose first word may be a model."""

    @property
    def usual(self) -> click.Command:
        """The command that a word stands for which is none."""
        return self.commands[SERVE]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What is no command and doesn't ask for help is a model, or an option before it."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [SERVE, *args]
        return super().parse_args(ctx, args)


@click.group(cls=Serving)
def serve() -> None:
    """Serve a registered model, and roll it back.

    \b
    trainyard serve digits                        serve the version registered last
    trainyard serve digits@3f2a --canary-share 25 serve a canary beside the version in service
    trainyard serve digits@3f2a                   replace the version in service
    trainyard serve rollback digits               return to the previous version
    """


def _yaml(ctx: click.Context, param: click.Parameter, value: Path | None) -> dict[str, Any]:
    import yaml

    if value is None:
        return {}
    try:
        found = yaml.safe_load(value.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"can't read the values: {error.strerror}", where=str(value), hint="correct --values"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError("invalid YAML", where=str(value), hint="correct the file") from None
    if not isinstance(found, dict):
        raise UsageError(
            "the values are not a map", where=str(value), hint="use keys of charts/model-server/values.yaml"
        )
    return found


def _amount(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from trainyard.policy import cel

    try:
        if not value or cel.amount(value) > 0:
            return value
    except cel.CelError:
        pass
    raise UsageError(f"invalid quantity: --{param.name} {value}", hint=f"write it like {AMOUNTS[str(param.name)]}")


@serve.command(SERVE)
@click.argument("model")
@click.option("--replicas", type=click.IntRange(0), help="Number of pods. Initial default: 2.")
@click.option("--cpu", default="", callback=_amount, help=f"CPU request of one pod, such as {AMOUNTS['cpu']}.")
@click.option("--memory", default="", callback=_amount, help=f"Memory of one pod, such as {AMOUNTS['memory']}.")
@click.option("--gpus", type=click.IntRange(0), help="GPUs of one pod, from the team's queue.")
@click.option(
    "--scale-by", type=click.Choice(("cpu", "requests", "concurrency", "none")), help="Metric for autoscaling."
)
@click.option("--min", "minimum", type=click.IntRange(0), help="Minimum number of pods when autoscaling.")
@click.option("--max", "maximum", type=click.IntRange(1), help="Maximum number of pods when autoscaling.")
@click.option(
    "--target", type=click.IntRange(1), help="Target per pod: CPU percent, requests per second, or concurrent requests."
)
@click.option("--scale-source", type=click.Choice(("adapter", "keda", "keda-http")), help="Source of request metrics.")
@click.option(
    "--from", "reach", type=click.Choice(("team", "namespaces", "outside")), help="Clients to allow. Default: team."
)
@click.option(
    "--by", type=click.Choice(("nodePort", "loadBalancer", "ingress", "gateway")), help="Access for outside clients."
)
@click.option("--host", default="", help="Host name of the ingress or gateway.")
@click.option("--key", is_flag=True, help="Issue a key, print it once, and require a key from now on.")
@click.option("--revoke-keys", is_flag=True, help="Revoke all keys issued before.")
@click.option(
    "--canary-share", type=click.IntRange(1, 99), help="Serve as a canary, with this share of the replicas in percent."
)
@click.option(
    "--runtime", type=click.Choice(("model-server", "triton", "vllm")), help="Server software. Default: model-server."
)
@click.option("--image", default="", help="Image of the server, instead of the platform's.")
@click.option("--kserve/--no-kserve", default=None, help="Use KServe's InferenceService.")
@click.option(
    "--values",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_yaml,
    help="File with additional values of charts/model-server.",
)
@common.wait
@common.timeout
@click.option("--dry-run", is_flag=True, help="Print the objects without applying them.")
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("name", "yaml", "json")),
    default="name",
    help="Output format; yaml and json print the objects for kubectl apply.",
)
@options
def model(
    model: str,
    key: bool,
    revoke_keys: bool,
    wait: bool,
    timeout: int,
    dry_run: bool,
    form: str,
    access: Access,
    **said: Any,
) -> None:
    """Serve a registered version of MODEL. MODEL is NAME or NAME@VERSION. Omitted settings keep their current values.
    The new version gets requests once it is warm; pods of the old version finish their requests in progress.
    """
    from trainyard.serving import apply, plan, render, settings, shelf
    from trainyard.serving.cards import split

    split(model)
    kube, known = common.connected(access)
    plan.part(known)
    text, digest = plan.new_key() if key else ("", "")
    wish = _wish(said, digest, revoke_keys)
    with shelf.opened(kube, known) as found:
        card = found.find(model)
    before = settings.read(apply.served(kube, card.name))
    values = plan.values(known, kube.namespace, card, wish, before)
    objects = render.objects(values, kube.namespace)
    if dry_run or form != "name":
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        documents = "".join(f"---\n{structured.text(obj, 'yaml')}" for obj in objects)
        click.echo(structured.text(listed, form) if form == "json" else documents, nl=False)
        if dry_run:
            _shown(text, aside=True)
            return
    gone = apply.send(kube, objects, card.name)
    for name in gone:
        click.echo(f"deleted {name}", err=True)
    _shown(text, aside=form != "name")
    canary = bool(wish.canary)
    share = f" with {wish.canary} % of the replicas" * canary
    click.echo(f"starting {card.title}{share} at {_address(card.name, kube.namespace)}", err=True)
    if wait and not values.get("inferenceService", {}).get("enabled"):
        apply.wait(kube, card.name, timeout, common.say, canary=canary)
        click.echo(f"{card.title} is in service", err=True)
    if form == "name" and not text:
        click.echo(_address(card.name, kube.namespace))


@serve.command()
@click.argument("model")
@click.option(
    "--to", default="", metavar="VERSION", help="Earlier version, or a prefix of it. Default: the previous version."
)
@common.wait
@common.timeout
@click.option("--dry-run", is_flag=True, help="Print the target version without changing anything.")
@options
def rollback(model: str, to: str, wait: bool, timeout: int, dry_run: bool, access: Access) -> None:
    """Roll back to the previous version. If a canary exists, only removes the canary. The previous version comes from
    the cluster's history: nothing is rendered, and nothing is read from the store.
    """
    from trainyard.kube.client import JSON_PATCH
    from trainyard.serving import apply, versions
    from trainyard.serving.cards import split

    name, _ = split(model)
    kube = access.connect()
    now = apply.deployment(kube, name)
    if now is None:
        what, hint = f"{name} is not in service", "list served models with `trainyard serve list`"
        if apply.served(kube, name):
            what, hint = (
                f"{name} is served by KServe, which rolls back by itself",
                "serve NAME@VERSION instead",
            )
        raise TrainyardError(what, where=kube.namespace, hint=hint)
    path = kube.path("apps/v1", "deployments", apply.name_of(name))
    if not to and apply.deployment(kube, name, canary=True):
        if not dry_run:
            kube.delete(f"{path}-canary")
            kube.patch(path, versions.whole(now), content=JSON_PATCH)
        click.echo(
            f"{'would delete' if dry_run else 'deleted'} the canary of {name}; the version in service stays", err=True
        )
    else:
        served = versions.of_template(now["spec"]["template"])
        target = versions.before(versions.history(kube, name), served.version if served else "", to)
        change = versions.change(now, target)
        click.echo(f"{'would roll' if dry_run else 'rolling'} {name} back to {target.version}", err=True)
        if not dry_run:
            kube.patch(path, change, content=JSON_PATCH)
        click.echo(f"{name}@{target.version}")
    if wait and not dry_run:
        apply.wait(kube, name, timeout, common.say)


@serve.command("list")
@common.output("table", "json", "yaml", "name")
@options
def list_(form: str, access: Access) -> None:
    """List models in service. Shows version, replicas, access and address."""
    from trainyard.serving import overview

    kube = access.connect()
    rows = overview.rows(kube)
    if form in ("json", "yaml"):
        click.echo(structured.text([row.document() for row in rows], form), nl=False)
    elif form == "name":
        for name in dict.fromkeys(row.model for row in rows):
            click.echo(name)
    elif rows:
        click.echo(overview.table(rows))
    else:
        click.echo(f"no models are in service in {kube.namespace}; serve one with `trainyard serve MODEL`", err=True)


@serve.command()
@click.argument("model")
@options
def stop(model: str, access: Access) -> None:
    """Stop serving MODEL. Its versions stay registered."""
    from trainyard.serving import apply
    from trainyard.serving.cards import split

    name, _ = split(model)
    kube = access.connect()
    gone = apply.stop(kube, name)
    if not gone:
        raise TrainyardError(
            f"{name} is not in service", where=kube.namespace, hint="list served models with `trainyard serve list`"
        )
    for one in gone:
        click.echo(f"deleted {one}", err=True)


def _wish(said: dict[str, Any], digest: str, only: bool) -> ServeRequest:
    from trainyard.serving.plan import ServeRequest

    words = ("cpu", "memory", "host", "image", "replicas", "gpus", "minimum", "maximum", "target", "kserve", "values")
    asked: dict[str, Any] = {word: said[word] for word in words}
    asked |= {"scale_by": said["scale_by"] or "", "source": said["scale_source"] or "", "access": said["reach"] or "",
              "by": said["by"] or "", "runtime": said["runtime"] or ""}  # fmt: skip
    return ServeRequest(**asked, canary=said["canary_share"] or 0, keys=(digest,) if digest else (), only=only)


def _shown(key: str, *, aside: bool) -> None:
    """Says a key that was made, once. `aside`: standard output has something else."""
    if key:
        click.echo("this key is shown only once; the cluster keeps only its digest:", err=True)
        click.echo(key, err=aside)


def _address(name: str, namespace: str) -> str:
    return f"http://model-{name}.{namespace}.svc"
