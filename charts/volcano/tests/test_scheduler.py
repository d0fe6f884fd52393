"""The scheduler's configuration: effects of switches, and refusal of conflicting combinations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from found import one, pod_of

from rendering import Objects, Rendering
from trainyard.paths import ROOT
from trainyard_dev.bench import configurations
from trainyard_dev.chart import parts

OWN = "volcano.custom.scheduler_config_override"
SWITCH = "global.contract.scheduler"
RESERVING, STRICT = {"queueingStrategy": "ReservingFIFO"}, {"queueingStrategy": "StrictFIFO"}


def override(actions: str = "allocate, backfill", *tiers: list[Any], **contract: Any) -> dict[str, Any]:
    """Values with a configuration of one's own; a plugin is a name, or a dict."""
    tiers = tiers or (["priority", "gang", "conformance"], ["predicates", "capacity"])
    plugins = [{"plugins": [{"name": p} if isinstance(p, str) else p for p in tier]} for tier in tiers]
    text = yaml.safe_dump({"actions": actions, "tiers": plugins})
    return {"volcano": {"custom": {"scheduler_config_override": text}}, "global": {"contract": contract}}


def text_of(objects: Objects) -> str:
    return str(one(objects, "ConfigMap", "trainyard-scheduler-configmap")["data"]["volcano-scheduler.conf"])


def plugins(text: str) -> list[list[str]]:
    return [[plugin["name"] for plugin in tier["plugins"]] for tier in yaml.safe_load(text)["tiers"]]


def test_a_comment_is_no_other_configuration(render: Rendering) -> None:
    """Measurements are tied to the parsed configuration."""
    text = text_of(render())
    assert configurations.canonical(f"# changed\n{text}") == configurations.canonical(text)
    assert configurations.canonical(text.replace("backfill", "preempt")) != configurations.canonical(text)


def test_reclaim_asks_capacity_in_the_tier_that_names_victims(render: Rendering) -> None:
    text = text_of(render(sets=[f"{SWITCH}.reclaim=true"]))
    assert yaml.safe_load(text)["actions"] == "allocate, backfill, reclaim"
    assert plugins(text)[0] == ["priority", "gang", "conformance", "capacity"]
    assert sum(tier.count("capacity") for tier in plugins(text)) == 1
    gang = yaml.safe_load(text)["tiers"][0]["plugins"][1]
    assert gang == {"name": "gang", "enablePreemptable": False, "enableReclaimable": False}


def test_preempt_compares_nodes(render: Rendering) -> None:
    text = text_of(render(sets=[f"{SWITCH}.preempt=true"]))
    arguments = {one["name"]: one["arguments"] for one in yaml.safe_load(text)["configurations"]}
    assert arguments.pop("preempt") == {
        "predicateErrorCacheEnable": False,
        "enableTopologyAwarePreemption": True,
        "minCandidateNodesPercentage": 100,
    }
    assert set(arguments) == {"allocate", "backfill"}
    assert all("TopologyAware" not in key for found in arguments.values() for key in found)


def test_submission_order_puts_sla_before_gang(render: Rendering) -> None:
    text = text_of(render(sets=[f"{SWITCH}.queueingStrategy=ReservingFIFO"]))
    assert plugins(text)[:2] == [["priority", "sla"], ["gang", "conformance"]]
    assert yaml.safe_load(text)["actions"] == "allocate, backfill"


def test_strict_order_puts_a_program_beside_the_scheduler_that_its_extender_asks(
    chart: Path, render: Rendering
) -> None:
    objects = render(sets=[f"{SWITCH}.queueingStrategy=StrictFIFO"])
    _, gate = pod_of(objects, "Deployment", "trainyard-scheduler")["containers"]
    extender = yaml.safe_load(text_of(objects))["tiers"][0]["plugins"][-1]
    assert extender["name"] == "extender"
    port = gate["args"][1].removeprefix("--port=")
    assert extender["arguments"]["extender.urlPrefix"] == f"http://127.0.0.1:{port}"
    assert [gate["name"], gate["args"][0]] == ["queue-gate", "queue-gate"]
    assert gate["securityContext"]["readOnlyRootFilesystem"]
    assert len(pod_of(render(), "Deployment", "trainyard-scheduler")["containers"]) == 1


def test_the_tree_is_on_only_where_a_queue_stands_below_another(render: Rendering) -> None:
    def tree(*sets: str) -> bool:
        tiers = yaml.safe_load(text_of(render(sets=sets)))["tiers"]
        return next(p for tier in tiers for p in tier["plugins"] if p["name"] == "capacity").get(
            "enableHierarchy", False
        )

    named = "global.contract.queues[{}].{}"
    queues = [
        named.format(index, key) + f"={value}"
        for index, name in enumerate(("training", "all"))
        for key, value in {"name": name, "weight": 1, "reclaimable": "true"}.items()
    ]
    team = ["global.contract.teams[0].name=vision", "global.contract.teams[0].gid=20001"]
    assert not tree(*queues, *team)
    assert tree(*queues, *team, "global.contract.teams[0].queue.parent=all")


def test_every_gpu_resource_counts_in_packing_and_reserve(render: Rendering) -> None:
    def pool(name: str, resource: str, **gpu: Any) -> dict[str, Any]:
        labels = {"trainyard.io/pool": "gpu", "trainyard.io/gpus": name}
        return {"name": name, "kind": "gpu", "selector": {"pool": name}, "labels": labels,
                "gpu": {"resource": resource} | gpu}  # fmt: skip

    reserve = {"cpu": "7500m", "memory": "100Gi"}
    pools = [
        pool("a100", "nvidia.com/gpu", reserve=reserve), pool("h100", "nvidia.com/gpu", reserve=reserve),
        pool("mi300", "amd.com/gpu", reserve={"cpu": 0, "memory": 0}),
    ]  # fmt: skip
    text = text_of(render({"global": {"contract": {"nodePools": pools}}}))
    arguments = {p["name"]: p.get("arguments") for tier in yaml.safe_load(text)["tiers"] for p in tier["plugins"]}
    assert arguments["binpack"]["binpack.resources"] == "nvidia.com/gpu,amd.com/gpu"
    assert arguments["binpack"]["binpack.resources.amd.com/gpu"] == 40
    assert arguments["resource-strategy-fit"] == {
        "resourceStrategyFitWeight": 0,
        "proportional": {
            "enable": True,
            "resources": "amd.com/gpu,nvidia.com/gpu",
            "resourceProportion": {
                "amd.com/gpu.cpu": 0, "amd.com/gpu.memory": 0,
                "nvidia.com/gpu.cpu": 7.5, "nvidia.com/gpu.memory": 107.3741824,
            },
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            override("allocate", ["gang", "conformance"], ["capacity", "proportion"]),
            f"{OWN}: the plugins proportion and capacity both decide what a queue may have; keep capacity",
        ),
        (override("allocate", ["gangg"], ["capacity"]), f'{OWN}: Volcano has no plugin "gangg"'),
        (override("allocate, gangpreempt"), f'{OWN}: Volcano has no action "gangpreempt"'),
        (
            override("allocate, preempt", ["sla"], ["gang"], ["capacity"], scheduler={"preempt": True}),
            f"{OWN}: the action preempt conflicts with sla before gang",
        ),
        (
            override("allocate, reclaim", ["sla"], ["gang", "capacity"], scheduler={"reclaim": True}),
            f"{OWN}: the action reclaim conflicts with sla before gang",
        ),
        (
            {"global": {"contract": {"scheduler": {"preempt": True, "queueingStrategy": "ReservingFIFO"}}}},
            f"{SWITCH}: preempt conflicts with queueingStrategy: ReservingFIFO",
        ),
        (
            {"global": {"contract": {"scheduler": {"reclaim": True, "queueingStrategy": "ReservingFIFO"}}}},
            f"{SWITCH}: reclaim conflicts with queueingStrategy: ReservingFIFO",
        ),
        (override(scheduler={"reclaim": True}), f"{SWITCH}.reclaim is true, but {OWN} lacks the action reclaim"),
        (override("allocate, preempt"), f"{OWN} has the action preempt, but {SWITCH}.preempt is false"),
        (override(scheduler=RESERVING), f"{SWITCH}.queueingStrategy is ReservingFIFO, but {OWN} has no plugin sla"),
        (override(scheduler=STRICT), f"{SWITCH}.queueingStrategy is StrictFIFO, but {OWN} has no plugin extender"),
        (
            {"global": {"contract": {"scheduler": {"preempt": True, "queueingStrategy": "StrictFIFO"}}}},
            f"{SWITCH}: preempt conflicts with queueingStrategy: StrictFIFO",
        ),
        (
            {"global": {"contract": {"scheduler": {"reclaim": True, "queueingStrategy": "StrictFIFO"}}}},
            f"{SWITCH}: reclaim conflicts with queueingStrategy: StrictFIFO",
        ),
        (
            override("enqueue, allocate", ["sla"], ["gang"], ["capacity"], scheduler=RESERVING),
            f"{SWITCH}.queueingStrategy is ReservingFIFO, but {OWN} has the action enqueue",
        ),
        (
            override("allocate, reclaim", scheduler={"reclaim": True}),
            f"{OWN}: reclaim would take pods from queues within their share, since gang, conformance decides",
        ),
        (
            override("allocate", ["gang"], teams=[{"name": "v", "gid": 20001, "queue": {
                "capability": {"cpu": 1, "memory": 1, "nvidia.com/gpu": 1}}}]),
            f"global.contract.teams: the queue of team v has shares, but {OWN} has no plugin capacity",
        ),
        (
            override(queues=[{"name": n, "weight": 1, "reclaimable": True} for n in ("training", "all")],
                     teams=[{"name": "v", "gid": 20001, "queue": {"parent": "all"}}]),
            f"global.contract.teams: the queue of team v has the parent all, but {OWN} doesn't set enableHier",
        ),
        ({"volcano": {"custom": {"scheduler_config_override": "nonsense"}}}, f"{OWN} is not a scheduler configuration"),
        ({"volcano": {"custom": {"scheduler_config_override": None}}}, f"{OWN} is not a scheduler configuration"),
    ],
    ids=lambda value: value[-70:] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_configuration_that_fights_is_refused(values: dict[str, Any], sentence: str, render: Rendering) -> None:
    reported = render.errors(values)
    assert any(line.startswith(sentence) for line in reported), reported


def test_a_sound_configuration_of_ones_own_is_taken(render: Rendering) -> None:
    assert render.errors(override()) == []
    gang = {"name": "gang", "enableReclaimable": False}
    tiers = (["priority", gang, "conformance", {"name": "capacity", "enableHierarchy": True}], ["predicates"])
    assert (
        render.errors(override("allocate, reclaim, preempt", *tiers, scheduler={"reclaim": True, "preempt": True}))
        == []
    )
    order = {"name": "proportion", "enabledOverused": False, "enabledAllocatable": False}
    assert render.errors(override("allocate", ["gang", "conformance"], ["capacity", order])) == []


def test_the_linter_knows_the_plugins_of_this_release() -> None:
    source = parts.chart_folder("volcano").parents[3] / "pkg" / "scheduler"
    names = [re.search(r'PluginName\s*=\s*"([\w-]+)"', file.read_text()) for file in source.glob("plugins/*/*.go")]
    text = "".join(file.read_text() for file in (ROOT / "charts/volcano/umbrella").glob("_*.tpl"))
    known = text.split('define "trainyard.schedulerPlugins" -}}')[1].split("{{")[0].split()
    assert sorted(known) == sorted({name[1] for name in names if name})
