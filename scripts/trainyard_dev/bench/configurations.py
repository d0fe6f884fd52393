"""The configurations that are compared: defaults of others, ours, and one change at a time between them.

Ours comes from the chart, byte for byte, with the flags of the chart's Deployment.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.errors import UsageError
from trainyard_dev import tools
from trainyard_dev.bench.harness import GPU
from trainyard_dev.chart import package, parts

PERIOD = "--schedule-period="  # how often a round begins: machine time, not policy
DEFAULT_PERIOD_MS = 1000
RAW = "raw"  # no configuration but a limit: pods bound without any checks
OVERLAY = parts.UMBRELLA / "overlays/packed.yaml"
BASELINE = f"ours: the chart with `{OVERLAY.relative_to(parts.UMBRELLA)}`"
LOGGING = ("--logtostderr", "-v=", "2>&1", "--enable-healthz", "--enable-metrics", "--leader-elect", "--scheduler-conf")


@dataclass(frozen=True)
class Configuration:
    """One configuration.

    `scheduler` is volcano, kube, kueue or raw; `taint` is the effect of the taint on nodes with GPUs, "" for none;
    `env` has variables of the scheduler's environment.
    """

    name: str
    label: str
    scheduler: str
    config: str
    flags: tuple[str, ...] = ()
    taint: str = ""
    env: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        """Digest that changes with the configuration, but not with its comments or layout."""
        environment = (f"{name}={value}" for name, value in self.env)
        text = "\n".join((self.scheduler, canonical(self.config), *self.flags, self.taint, *environment))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def canonical(config: str) -> str:
    """Returns a configuration as one canonical line: parsed, keys sorted, without comments."""
    return json.dumps(yaml.safe_load(config), sort_keys=True)


Maker = Callable[[str], Configuration]  # makes the column of this name


@functools.cache
def column(name: str) -> Configuration:
    """Returns the configuration of this name; only ours renders the chart. Raises UsageError that lists all names."""
    if name not in _makers():
        raise UsageError(f"unknown configuration {name}", hint=f"use one of {', '.join(_makers())}")
    return _makers()[name](name)


def configurations() -> dict[str, Configuration]:
    """All configurations by name, in the order of tables."""
    return {name: column(name) for name in _makers()}


@functools.cache
def _makers() -> dict[str, Maker]:
    baseline, default = "ours", "volcano-default"
    return {
        "kube-default": lambda name: Configuration(name, "kube-scheduler, default", "kube", ""),
        "kube-tuned": lambda name: Configuration(
            name, "kube-scheduler, tuned", "kube", kube_tuned(), taint="PreferNoSchedule"
        ),
        default: lambda name: Configuration(name, "Volcano, its chart's default", "volcano", volcano_default()),
        baseline: lambda name: chart_column(name, BASELINE),
        "ours-order": _chosen("ours, queueingStrategy: ReservingFIFO", "queueingStrategy=ReservingFIFO"),
        "ours-strict": _chosen("ours, queueingStrategy: StrictFIFO", "queueingStrategy=StrictFIFO"),
        "ours-reclaim": _chosen("ours, reclaim", "reclaim=true"),
        "kueue": lambda name: Configuration(
            name, "Kueue, StrictFIFO (its default is BestEffortFIFO)", "kueue", "strategy: StrictFIFO\n"
        ),
        RAW: lambda name: Configuration(name, "only binds: to the next node in turn, without checks", RAW, ""),
    }


def _chosen(label: str, value: str) -> Maker:
    """Returns the maker of the chart's configuration with another choice of `global.contract.scheduler`."""
    return lambda name: chart_column(name, label, f"global.contract.scheduler.{value}")


def chart_column(name: str, label: str, *sets: str) -> Configuration:
    """Returns what the chart renders with `OVERLAY`, then these values."""
    objects = _rendered(sets, packed=True)
    config = next(o["data"] for o in objects if o["metadata"]["name"] == "trainyard-scheduler-configmap")
    container = _container("trainyard-scheduler", objects)
    flags = tuple(word for word in _args(container) if not word.startswith((*LOGGING, PERIOD)))
    env = tuple((one["name"], one["value"]) for one in container.get("env", ()) if one["name"].startswith("GO"))
    return Configuration(name, label, "volcano", config["volcano-scheduler.conf"], flags, "PreferNoSchedule", env)


def period_ms(name: str) -> int:
    """Milliseconds between the rounds of a column's Volcano: the chart's for ours, its own default for others."""
    if not name.startswith("ours"):
        return DEFAULT_PERIOD_MS
    args = _args(_container("trainyard-scheduler", _rendered()))
    [period] = [arg.removeprefix(PERIOD) for arg in args if arg.startswith(PERIOD)]
    return int(float(period.removesuffix("ms"))) if period.endswith("ms") else int(1000 * float(period.rstrip("s")))


def controller_flags(name: str) -> tuple[str, ...]:
    """Flags for requests and threads of Volcano's controllers: the chart's for ours, their default for others."""
    if not name.startswith("ours"):
        return ()
    args = _args(_container("trainyard-controllers", _rendered()))
    return tuple(arg for arg in args if arg.startswith(("--kube-api-", "--worker-threads")))


def _container(deployment: str, objects: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The container of a Deployment of the chart."""
    found = [o for o in objects if o["kind"] == "Deployment" and o["metadata"]["name"] == deployment]
    return dict(found[0]["spec"]["template"]["spec"]["containers"][0])


def _args(container: dict[str, Any]) -> list[str]:
    return " ".join(container["args"]).split()


def chart_queues(*sets: str) -> list[tuple[str, dict[str, Any]]]:
    """Name and spec of every queue that the chart makes with these values, in its order."""
    plan = next(o for o in _rendered(sets) if o["kind"] == "ConfigMap" and o["metadata"]["name"] == "trainyard-setup")
    found = [obj for obj in json.loads(plan["data"]["plan.json"])["objects"] if obj["kind"] == "Queue"]
    return [(obj["metadata"]["name"], obj["spec"]) for obj in found]


@functools.cache
def _rendered(sets: tuple[str, ...] = (), *, packed: bool = False) -> list[dict[str, Any]]:
    return package.render("kind", None, sets, [OVERLAY] if packed else [])


def crds() -> list[dict[str, Any]]:
    """Volcano's kinds and the contract's priority classes, as the chart installs them."""
    found = [obj for obj in _rendered() if obj["kind"] in ("CustomResourceDefinition", "PriorityClass")]
    return [obj for obj in found if "kubeflow" not in obj["metadata"]["name"]]


def volcano_default() -> str:
    """The configuration in Volcano's own chart, from its pinned package."""
    return (tools.module_dir("volcano") / "installer/helm/chart/volcano/config/volcano-scheduler.conf").read_text()


def kube_tuned() -> str:
    """kube-scheduler's configuration for packing by GPUs first: the best that its own settings allow."""
    resources = [{"name": GPU, "weight": 10}, {"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    fit = {"scoringStrategy": {"type": "MostAllocated", "resources": resources}}
    score: dict[str, list[dict[str, Any]]] = {
        "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
        "enabled": [{"name": "NodeResourcesFit", "weight": 10}, {"name": "TaintToleration", "weight": 100}],
    }
    score["disabled"] += [{"name": item["name"]} for item in score["enabled"]]
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"score": score},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": fit}],
    }
    return yaml.safe_dump({"percentageOfNodesToScore": 100, "profiles": [profile]}, sort_keys=False)
