"""Releases of the chart on the run's cluster: install, upgrade, roll back; and their values."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trainyard.chart.release.installed import Installed
from trainyard.chart.release.inventory import goes
from trainyard.kube.kubectl import Kubectl
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.chart import package as chart
from trainyard_dev.chart.previous import TEAMS
from trainyard_dev.corpus import stand_in
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.recorder import had

RELEASE = "trainyard"
TIMEOUT_S = 420
UNCHECKED = "--disable-openapi-validation"  # saves a quarter of an upgrade's work; the installation has validated
Change = str | dict[str, Any]
# Keys that are deleted with their option, and differ when it comes back.
PASSING = {f"{RELEASE}-{one}" for one in ("kfp-s3", "logs-s3", "prometheus-store")}
GENERATED = {"access-key", "secret-key", "root-user", "root-password"}
REAL_GPUS = ROOT / "manifests" / "cluster" / "real-gpus.yaml"


def helm(kubectl: Kubectl, *args: str, timeout: float = 60) -> str:
    """Runs the pinned helm on the cluster and returns what it printed."""
    return run([tools.binary("helm"), "--kubeconfig", str(kubectl.kubeconfig or ""), *args], timeout=timeout).stdout


def installed(context: Context) -> Installed:
    """The run's installed release."""
    return Installed(context.kubectl, RELEASE, SYSTEM)


def teams() -> list[dict[str, Any]]:
    """The two teams of a run, in the form of its values."""
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / TEAMS).read_text())["global"]["contract"]["teams"]
    return found


@contextmanager
def values(context: Context, tree: Path = ROOT) -> Iterator[list[Path]]:
    """Values files while the block runs: profile kind, real GPUs if the run has them, stand-ins, the two teams.

    Args:
        tree: the source tree whose profile and teams are used.
    """
    with tempfile.TemporaryDirectory(prefix="values-") as folder:
        files = [tree / "charts" / RELEASE / "profiles" / "kind.yaml"]
        if context.gpu == "real":  # the profile names the mock driver's folder
            files.append(REAL_GPUS)
        if tree == ROOT:
            table = Path(folder) / "stand-ins.yaml"
            table.write_text(yaml.safe_dump(stand_in.values()))
            files.append(table)
        yield [*files, tree / TEAMS]


@cache
def this_chart() -> Path:
    """This tree's chart, packaged once in a run."""
    return chart.package()


def put(context: Context, verb: str, files: Sequence[Path], package: Path | None = None, *, more: str = "") -> float:
    """`helm install --wait` or `helm upgrade --wait`; returns its seconds.

    Args:
        files: all values, except the chart's own.
        package: another version's chart; None: this tree's.
        more: values in the form of `--set` (`a.b=c,d=e`).
    """
    flags = [word for file in files for word in ("-f", str(file))] + (["--set", more] if more else [])
    flags += ["--create-namespace"] if verb == "install" else ["--reset-values", UNCHECKED]
    seconds = _timed(context, verb, RELEASE, str(package or this_chart()), *flags)
    if not package:
        context.contract = read_contract(context.kubectl)
    return seconds


class Layer:
    """Values on top of the run's own and of other layers, while a block runs; `seconds` of the last upgrade."""

    def __init__(self, context: Context) -> None:
        self.context, self.seconds = context, 0.0
        self.values: Change = {}

    def set(self, values: Change) -> float:
        """Upgrade to other values in this layer; returns its seconds."""
        self.values = values
        self.seconds = _upgrade(self.context)
        return self.seconds


@contextmanager
def layer(context: Context, values: Change | None = None) -> Iterator[Layer]:
    """This tree's chart with other values while the block runs; other running entries keep their values.

    Args:
        values: a mapping, or words in the form of `--set` (`a.b=c,d=e`); None: the block sets the first ones.
    """
    found = Layer(context)
    context.layers.append(found)
    try:
        if values is not None:
            found.set(values)
        yield found
    finally:
        context.layers.remove(found)
        _upgrade(context)


@contextmanager
def changed(context: Context, values: Change) -> Iterator[float]:
    """A `layer` that never changes; yields the seconds of the upgrade."""
    with layer(context, values) as found:
        yield found.seconds


def _upgrade(context: Context) -> float:
    """Upgrade to the run's values and those of all layers; returns its seconds."""
    with context.helm, values(context) as files, tempfile.TemporaryDirectory(prefix="layers-") as folder:
        held = [found.values for found in context.layers]
        for number, one in enumerate(one for one in held if not isinstance(one, str)):
            file = Path(folder) / f"{number}.yaml"
            file.write_text(yaml.safe_dump(one))
            files.append(file)
        return put(context, "upgrade", files, more=",".join(one for one in held if isinstance(one, str)))


def read_contract(kubectl: Kubectl) -> dict:
    """The contract that the chart published."""
    found = kubectl.find("configmap", "trainyard-contract", "-n", SYSTEM)
    return yaml.safe_load(had(found, "the chart published no ConfigMap trainyard-contract")["data"]["contract.yaml"])


def roll_back(context: Context, revision: int) -> float:
    """Run `helm rollback --wait` to a revision; returns its seconds."""
    return _timed(context, "rollback", RELEASE, str(revision))


def _timed(context: Context, *args: str) -> float:
    """Run helm on the release until all is ready, one call at a time; returns its seconds."""
    wait = ["--wait", "--timeout", f"{TIMEOUT_S}s"]
    with context.helm:
        began = time.monotonic()
        helm(context.kubectl, *args, "-n", SYSTEM, *wait, timeout=TIMEOUT_S + 30)
        return round(time.monotonic() - began, 1)


def test(context: Context) -> None:
    """Run `helm test`. Raises CommandError."""
    helm(context.kubectl, "test", RELEASE, "-n", SYSTEM, "--timeout", "120s", timeout=150)


def identities(context: Context) -> dict[str, str]:
    """Identities that must never change: UIDs of claims, volumes of bound ones, generated keys in Secrets, by name."""
    found = {}
    for space in (SYSTEM, NAMESPACE, OTHER):
        for claim in context.kubectl.get("pvc", "-n", space):
            if goes(claim, RELEASE):
                continue
            name = f"claim {space}/{claim['metadata']['name']}"
            found[name] = claim["metadata"]["uid"]
            if volume := claim["spec"].get("volumeName"):
                found[f"volume of {name}"] = volume
        for secret in context.kubectl.get("secrets", "-n", space):
            keys = {key: value for key, value in (secret.get("data") or {}).items() if key in GENERATED}
            if keys and secret["metadata"]["name"] not in PASSING:
                found[f"Secret {space}/{secret['metadata']['name']}"] = str(sorted(keys.items()))
    return found


def lost(before: dict[str, str], after: dict[str, str]) -> str:
    """Identities that are gone or differ, in words; "" if all are the same."""
    words = [f"{name} is {'gone' if name not in after else 'another one'}"
             for name, held in before.items() if after.get(name) != held]  # fmt: skip
    return "; ".join(words)
