"""Commands under `trainyard cluster`."""

import json

import click
import yaml

from trainyard.errors import TrainyardError
from trainyard_dev import engine as engines
from trainyard_dev.cluster import environment, lifecycle
from trainyard_dev.gpu import detect
from trainyard_dev.gpu.mock import MockGpuSpec
from trainyard_dev.images import source

_name = click.option(
    "--name", default="trainyard", show_default=True, envvar="TRAINYARD_CLUSTER", help="Name of the cluster."
)
_engine = click.option("--provider", default="auto", type=click.Choice(["auto", "docker", "podman"]), show_default=True)


@click.group()
def cluster() -> None:
    """Manage a Kubernetes cluster on this machine, with kind."""


@cluster.command()
@_name
@_engine
@click.option(
    "--images",
    default="auto",
    type=click.Choice(["auto", "pull", "build"]),
    show_default=True,
    help="Pull images from public registries, or build them locally.",
)
@click.option("--gpu", default="auto", type=click.Choice(["auto", "mock", "real"]), show_default=True)
@click.option("--gpus", default=4, show_default=True, help="Mock GPUs per GPU node.")
@click.option("--login", is_flag=True, help="Let the API server accept tokens of an OIDC issuer, once configured.")
def up(name: str, provider: str, images: str, gpu: str, gpus: int, login: bool) -> None:
    """Create a cluster: a control plane, two GPU nodes, one CPU node."""
    spec = MockGpuSpec(count=gpus)
    engine = engines.find(provider)
    chosen = detect.choose(gpu)
    options = lifecycle.Options(name, source.choose(images), chosen.kind, spec, chosen.uuids, chosen.reason, login)
    lifecycle.up(engine, options)
    click.echo(f"\nThe cluster is up. Use it with:\n  export KUBECONFIG={lifecycle.kubeconfig(name)}")


@cluster.command()
@_name
@click.option("--member", default="", metavar="TEAM", help="Act as ada, a member of this team.")
def env(name: str, member: str) -> None:
    """Print what the shell needs to use a cluster: its kubeconfig, the pinned kubectl and helm.

    \b
    eval "$(bin/trainyard cluster env)"
    """
    for line in environment.lines(name, member):
        click.echo(line)


@cluster.command()
@_name
@_engine
def down(name: str, provider: str) -> None:
    """Delete a cluster. Keep the cache of images and binaries."""
    if not lifecycle.down(engines.find(provider), name):
        raise TrainyardError(f"no cluster named {name}", hint="list kind's clusters with `podman ps` or `docker ps`")
    click.echo(f"cluster {name} removed")


@cluster.command()
@_name
@_engine
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def status(name: str, provider: str, output: str) -> None:
    """Show a cluster's nodes, GPUs and pods."""
    state = lifecycle.status(engines.find(provider), name)
    if output != "table":
        click.echo(
            json.dumps(state, indent=2) if output == "json" else yaml.safe_dump(state, sort_keys=False),
            nl=output == "json",
        )
        return
    click.echo(f"cluster {state['name']} on {state['engine']}, KUBECONFIG={state['kubeconfig']}\n")
    click.echo(f"{'NODE':32}{'READY':7}{'POOL':15}{'GPUS':6}TAINTS")
    for node in state["nodes"]:  # type: ignore[attr-defined]
        taints = ", ".join(node["taints"]) or "none"
        click.echo(f"{node['name']:32}{'yes' if node['ready'] else 'NO':7}{node['pool']:15}{node['gpus']:<6}{taints}")
    click.echo("\npods: " + ", ".join(f"{count} {phase.lower()}" for phase, count in state["pods"].items()))  # type: ignore[attr-defined]


@cluster.command()
@click.argument("image")
@_engine
def load(image: str, provider: str) -> None:
    """Load IMAGE from the container engine into the cluster."""
    click.echo(f"use it in pods as {lifecycle.load_image(engines.find(provider), image)}")
