"""The chart's options on the run's cluster: switching them, their objects, what they leave, and what they must keep."""

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from trainyard.chart.helm import parse
from trainyard.components import MONITORING
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import RELEASE, installed

LOGS, SERVING = "logs", "serving"
ALL = (MONITORING, LOGS, SERVING)
STILL = (SERVING,)  # these run nothing themselves: permissions, limits and routes for teams' workloads
ON = ",".join(f"{option}.enabled=true" for option in ALL)
SERVERS = ("prometheus", "alertmanager", "kube-state-metrics", "node-exporter")  # images of monitoring
IMAGES = (*SERVERS, "otel-collector")
OFFERED = ("server-torch", "server-tensorflow", "server-sklearn")  # images that serving offers to teams
# Objects that aren't in an option's templates: the umbrella chart and the option's own programs make them.
BESIDE: dict[str, list[tuple[str, str, str]]] = {
    MONITORING: [
        ("Secret", SYSTEM, f"{RELEASE}-prometheus-store"),
        *(("ConfigMap", space, f"{RELEASE}-usage") for space in (SYSTEM, NAMESPACE, OTHER)),
    ],
    LOGS: [("Secret", SYSTEM, f"{RELEASE}-logs-s3")],
    SERVING: [],
}
# Objects that stay when an option is switched off, see docs/upgrades.md: series and silences.
CLAIMS = {MONITORING: [f"data-{RELEASE}-{one}-0" for one in ("prometheus", "alertmanager")], LOGS: list[str](),
          SERVING: list[str]()}  # fmt: skip
GONE_S = 60.0  # for pods and for objects that Kubernetes removes with their owner
Objects = list[dict[str, Any]]


def sets(on: Iterable[str]) -> dict[str, Any]:
    """Values that enable these options and disable the others."""
    chosen = set(on)
    return {option: {"enabled": option in chosen} for option in ALL}


@contextmanager
def values(on: Iterable[str]) -> Iterator[Path]:
    """A values file of these options, while the block runs."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(sets(on), file)
        file.flush()
        yield Path(file.name)


def objects(context: Context, on: Sequence[str] = ALL) -> dict[str, Objects]:
    """The objects in the installed release that come from each option's templates."""
    return of_text(installed(context).helm("get", "manifest", RELEASE), on)


def of_text(rendered: str, on: Sequence[str]) -> dict[str, Objects]:
    """The objects in rendered text that come from each option's templates."""
    found: dict[str, Objects] = {option: [] for option in on}
    for part in rendered.split("\n---\n"):
        for option in on:
            if f"# Source: {RELEASE}/charts/{option}/" in part:
                found[option] += parse(part)
    return found


def left(context: Context, brought: dict[str, Objects]) -> list[str]:
    """The options' objects that still exist, by name; ending pods get a minute."""
    looked = [obj for listed in brought.values() for obj in listed]
    beside = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}
              for option in brought for kind, namespace, name in BESIDE[option]]  # fmt: skip
    asked = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*looked, *beside]})
    end = time.monotonic() + GONE_S
    while True:
        said = context.kubectl("get", "-f", "-", "--ignore-not-found", "-o", "name", input=asked).stdout.split()
        said += [f"pod/{pod['metadata']['name']}" for listed in brought.values() for pod in pods(context, listed)]
        if not said or time.monotonic() > end:
            return said
        time.sleep(2)


def pods(context: Context, brought: Objects) -> Objects:
    """The pods of these workloads."""
    found = []
    for obj in brought:
        selector = ((obj.get("spec") or {}).get("selector") or {}).get("matchLabels")
        if obj["kind"] in ("Deployment", "StatefulSet", "DaemonSet") and selector:
            labels = ",".join(f"{key}={value}" for key, value in selector.items())
            found += context.kubectl.get("pods", "-n", SYSTEM, "-l", labels)
    return found


def require_claims(context: Context, on: Iterable[str]) -> list[str]:
    """The claims that stay when these are switched off. Raises CheckError if one is missing."""
    due = [name for option in on for name in CLAIMS[option]]
    there = {claim["metadata"]["name"] for claim in context.kubectl.get("pvc", "-n", SYSTEM)}
    require(set(due) <= there, f"claims are gone: {sorted(set(due) - there)}")
    return due


def drop_claims(context: Context) -> None:
    """Removes the remains of disabled options, so that the next check begins with nothing."""
    claims = [name for option in ALL for name in CLAIMS[option]]
    context.kubectl("delete", "pvc", "-n", SYSTEM, *claims, "--ignore-not-found", "--wait=false", check=False)
