"""Ours with one setting changed that costs or saves processor time; the effect of each is published."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from trainyard.bench.columns import Column

ALL_NODES = "--percentage-nodes-to-find=100"


def columns(ours: Column) -> list[Column]:
    """Ours with each change."""
    return [
        replace(ours, name="ours-go-default", label="Go's own garbage collection", env=()),
        _changed(ours, "ours-affinity0", "no preferred node affinity", _nodeorder("nodeaffinity.weight")),
        _changed(ours, "ours-images0", "no image locality", _nodeorder("imagelocality.weight")),
        _changed(
            ours, "ours-pods0", "no preferred pod affinity and spread",
            _nodeorder("podaffinity.weight", "podtopologyspread.weight"),
        ),
        _changed(ours, "ours-volumes0", "no volumes looked at", _predicates("VolumeBindingEnable", "VolumeZoneEnable",
                                                                            "NodeVolumeLimitsEnable")),
        _changed(ours, "ours-podpredicates0", "no pod affinity, spread and ports looked at",
                 _predicates("PodAffinityEnable", "PodTopologySpreadEnable", "NodePortsEnable")),
        _changed(ours, "ours-cache", "predicates cached by template", _predicates("CacheEnable", value=True)),
        _changed(ours, "ours-errorcache", "refusals cached", _error_cache),
        replace(ours, name="ours-some-nodes", label="not all nodes searched",
                flags=tuple(flag for flag in ours.flags if flag != ALL_NODES)),
    ]  # fmt: skip


def _changed(ours: Column, name: str, label: str, change: Callable[[dict[str, Any]], None]) -> Column:
    config = copy.deepcopy(yaml.safe_load(ours.config))
    change(config)
    return replace(ours, name=name, label=label, config=yaml.safe_dump(config, sort_keys=False))


def _plugin(config: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [plugin for tier in config["tiers"] for plugin in tier["plugins"] if plugin["name"] == name]
    return found.setdefault("arguments", {})  # type: ignore[no-any-return]


def _nodeorder(*weights: str) -> Callable[[dict[str, Any]], None]:
    return lambda config: _plugin(config, "nodeorder").update(dict.fromkeys(weights, 0))


def _predicates(*switches: str, value: bool = False) -> Callable[[dict[str, Any]], None]:
    return lambda config: _plugin(config, "predicates").update({f"predicate.{one}": value for one in switches})


def _error_cache(config: dict[str, Any]) -> None:
    config.pop("configurations")
