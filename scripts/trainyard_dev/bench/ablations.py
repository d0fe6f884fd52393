"""Ours with one setting changed that costs or saves processor time; the effect of each is published."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainyard_dev.bench.configurations import Configuration

ALL_NODES = "--percentage-nodes-to-find=100"
Change = Callable[["Configuration"], "Configuration"]


def column(name: str, baseline: Configuration) -> Configuration:
    """The baseline with the change of this name."""
    label, change = NAMES[name]
    return replace(change(baseline), name=name, label=label)


def _config(change: Callable[[dict[str, Any]], None]) -> Change:
    """A change of the parsed configuration."""
    return lambda baseline: baseline.changed(change)


def _arguments(plugin: str, **values: object) -> Change:
    """Arguments of a plugin; _ stands for the dot."""

    def change(config: dict[str, Any]) -> None:
        for found in (one for tier in config["tiers"] for one in tier["plugins"] if one["name"] == plugin):
            found.setdefault("arguments", {}).update({key.replace("_", "."): value for key, value in values.items()})

    return _config(change)


def _together(*names: str) -> Change:
    """All these changes of NAMES at once."""
    return lambda baseline: functools.reduce(lambda column, name: NAMES[name][1](column), names, baseline)


def _without(flag: str) -> Change:
    return lambda baseline: replace(baseline, flags=tuple(one for one in baseline.flags if one != flag))


# Where rounds begin more often than in the chart: name -> milliseconds.
PERIODS_MS = {"ours-200ms": 200, "ours-50ms": 50}
# Name -> what is changed in the baseline, and how.
NAMES: dict[str, tuple[str, Change]] = {
    "ours-go-default": ("garbage collected as Go does by default", lambda baseline: replace(baseline, env=())),
    "ours-some-nodes": ("not all nodes searched: 42 % of 1,000", _without(ALL_NODES)),
    "ours-affinity0": ("preferred node affinity not scored", _arguments("nodeorder", nodeaffinity_weight=0)),
    "ours-images0": ("images on nodes not scored", _arguments("nodeorder", imagelocality_weight=0)),
    "ours-pods0": (
        "preferred pod affinity and spread not scored",
        _arguments("nodeorder", podaffinity_weight=0, podtopologyspread_weight=0),
    ),
    "ours-volumes0": (
        "volumes not looked at",
        _arguments(
            "predicates",
            predicate_VolumeBindingEnable=False,
            predicate_VolumeZoneEnable=False,
            predicate_NodeVolumeLimitsEnable=False,
        ),
    ),
    "ours-neighbours0": (
        "pod affinity, spread and ports not looked at",
        _arguments(
            "predicates",
            predicate_PodAffinityEnable=False,
            predicate_PodTopologySpreadEnable=False,
            predicate_NodePortsEnable=False,
        ),
    ),
    "ours-no-balance": (
        "balance of CPU, memory and GPUs not scored",
        _arguments("nodeorder", balancedresource_weight=0),
    ),
    "ours-cache": (
        "answers on taints and affinity kept by template",
        _arguments("predicates", predicate_CacheEnable=True),
    ),
    "ours-errorcache": ("refusals of nodes kept", _config(lambda config: config.pop("configurations", None))),
    "ours-200ms": ("a round every 200 ms instead of every second", lambda baseline: baseline),
    "ours-50ms": ("a round every 50 ms", lambda baseline: baseline),
    "ours-least": (
        "fewer nodes searched, and affinity0, images0, pods0, volumes0, neighbours0 and no-balance, at once",
        _together(
            "ours-some-nodes",
            "ours-affinity0",
            "ours-images0",
            "ours-pods0",
            "ours-volumes0",
            "ours-neighbours0",
            "ours-no-balance",
        ),
    ),
}
