"""Releases of the chart on the run's cluster: install, upgrade, roll back; and the values they are made with."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from trainyard.chart.release.installed import Installed
from trainyard.chart.release.inventory import goes
from trainyard.kube.kubectl import Kubectl
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.chart import package as chart
from trainyard_dev.chart.previous import TEAMS
from trainyard_dev.e2e import stand_in
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.recorder import require

RELEASE = "trainyard"
TIMEOUT_S = 420
GENERATED = {"access-key", "secret-key", "root-user", "root-password"}
REAL_GPUS = {
    "global": {"contract": {"gpuImages": "cuda"}},
    "nodePrep": {"driverRoot": "/"},
    "nvidia-device-plugin": {"nvidiaDriverRoot": "/"},
    "monitoring": {"mockGpus": {"enabled": False}},
}


def helm(kubectl: Kubectl, *args: str, timeout: float = 60) -> str:
    """Runs the pinned helm on the cluster and returns what it printed."""
    argv = [tools.binary("helm"), "--kubeconfig", kubectl.kubeconfig, *args]
    return run(argv, timeout=timeout).stdout


def installed(context: Context) -> Installed:
    """The run's release."""
    return Installed(context.kubectl, RELEASE, SYSTEM)


@contextmanager
def values(context: Context, tree: Path = ROOT) -> Iterator[list[Path]]:
    """Values files for the time of the block: profile kind, real GPUs where the run has them, stand-ins, the two teams.

    Args:
        tree: the source tree of the version whose profile and teams they are.
    """
    with tempfile.TemporaryDirectory(prefix="values-") as folder:
        files = [tree / "charts" / RELEASE / "profiles" / "kind.yaml"]
        if context.gpu == "real":  # the profile names the mock driver's folder
            file = Path(folder) / "real-gpus.yaml"
            file.write_text(yaml.safe_dump(REAL_GPUS))
            files.append(file)
        if tree == ROOT:
            table = Path(folder) / "stand-ins.yaml"
            table.write_text(yaml.safe_dump(stand_in.values()))
            files.append(table)
        yield [*files, tree / TEAMS]


def put(context: Context, verb: str, package: Path, files: Sequence[Path] = (), change: str = "") -> float:
    """`helm install --wait` or `helm upgrade --wait`; returns its seconds.

    Args:
        files: all the values, but for the chart's own.
        change: what an upgrade sets (`a.b=c,d=e`) on top of the values that the release has.
    """
    flags = [word for file in files for word in ("-f", str(file))]
    if verb == "install":
        flags += ["--create-namespace"]
    else:
        flags += ["--reuse-values", "--set", change] if change else ["--reset-values"]
    return _timed(context, verb, RELEASE, str(package), *flags)


@contextmanager
def changed(context: Context, change: str, back: str) -> Iterator[float]:
    """This tree's chart with other values as long as the block runs; gives the seconds of the upgrade.

    Args:
        change: what the upgrade sets (`a.b=c,d=e`) on top of the values that the release has.
        back: what takes it back afterwards, also when the upgrade or the block fails.
    """
    with tempfile.TemporaryDirectory(prefix="chart-") as folder:
        package = chart.package(Path(folder))
        try:
            seconds = put(context, "upgrade", package, change=change)
            context.contract = read_contract(context.kubectl)
            yield seconds
        finally:
            put(context, "upgrade", package, change=back)
            context.contract = read_contract(context.kubectl)


def read_contract(kubectl: Kubectl) -> dict:
    """The contract as the chart published it."""
    found = kubectl.find("configmap", "trainyard-contract", "-n", SYSTEM)
    require(found, "the chart published no ConfigMap trainyard-contract")
    return yaml.safe_load(found["data"]["contract.yaml"])  # type: ignore[index]


def roll_back(context: Context, revision: int) -> float:
    """`helm rollback --wait` to a revision; returns its seconds."""
    return _timed(context, "rollback", RELEASE, str(revision))


def _timed(context: Context, *args: str) -> float:
    """Runs helm on the release until all is ready; returns its seconds."""
    began = time.monotonic()
    wait = ["--wait", "--timeout", f"{TIMEOUT_S}s"]
    helm(context.kubectl, *args, "-n", SYSTEM, *wait, timeout=TIMEOUT_S + 30)
    return round(time.monotonic() - began, 1)


def test(context: Context) -> None:
    """`helm test`. Raises CommandError."""
    helm(context.kubectl, "test", RELEASE, "-n", SYSTEM, "--timeout", "120s", timeout=150)


def identities(context: Context) -> dict[str, str]:
    """What must never be made anew: UIDs of claims and their volumes, generated keys in Secrets, by name."""
    found = {}
    for space in (SYSTEM, NAMESPACE, OTHER):
        for claim in context.kubectl.get("pvc", "-n", space):
            if goes(claim, RELEASE):
                continue
            name = f"claim {space}/{claim['metadata']['name']}"
            found[name] = f"{claim['metadata']['uid']} {claim['spec'].get('volumeName', '')}"
        for secret in context.kubectl.get("secrets", "-n", space):
            keys = {key: value for key, value in (secret.get("data") or {}).items() if key in GENERATED}
            if keys:
                found[f"Secret {space}/{secret['metadata']['name']}"] = str(sorted(keys.items()))
    return found


def lost(before: dict[str, str], after: dict[str, str]) -> str:
    """What is gone or is another one now, in words; "" when all is the same."""
    words = [f"{name} is {'gone' if name not in after else 'another one'}"
             for name, held in before.items() if after.get(name) != held]  # fmt: skip
    return "; ".join(words)
