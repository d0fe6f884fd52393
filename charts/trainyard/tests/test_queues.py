"""The queue linter: one sentence for each violation, with value and hint, all at once."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from found import plan_of

from rendering import Rendering
from trainyard.paths import ROOT

GPU = "nvidia.com/gpu"
GPU_POOL = {
    "name": "gpu", "kind": "gpu", "labels": {"trainyard.io/pool": "gpu"}, "count": 2,
    "capacity": {"cpu": 16, "memory": "64Gi"}, "gpu": {"resource": GPU, "count": 8},
    "taint": {"key": GPU, "value": "present", "effect": "NoSchedule"},
}  # fmt: skip
CPU_POOL = {
    "name": "cpu", "kind": "cpu", "labels": {"trainyard.io/pool": "cpu"}, "count": 4,
    "capacity": {"cpu": "16000m", "memory": "64Gi"},
}  # fmt: skip


def room(gpus: float, cpu: Any = 0, memory: Any = 0) -> dict[str, Any]:
    return {GPU: gpus, "cpu": cpu, "memory": memory}


def queue(name: str, **rest: Any) -> dict[str, Any]:
    return {"name": name, "weight": 1, "reclaimable": True} | rest


def contract(*queues: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Values with these queues besides the one of jobs that name none."""
    return {"global": {"contract": {"queues": [queue("training"), *queues]} | rest}}


def team(name: str, gid: int = 20001, **rest: Any) -> dict[str, Any]:
    return {"name": name, "gid": gid, "queue": rest}


RECLAIM = {"scheduler": {"reclaim": True}}
POOLS = {"nodePools": [GPU_POOL, CPU_POOL]}
WHERE = "global.contract.queues: queue"


def test_a_tree_that_sums_is_taken(render: Rendering) -> None:
    values = contract(
        queue("all", capability=room(16, "90", "300Gi"), deserved=room(12, 80, "250Gi"),
              guarantee=room(8, 40, "100Gi")),
        queue("batch", parent="all", deserved=room(4, 20, "50Gi")),
        teams=[
            team("vision", parent="all", capability=room(12, 90, "300Gi"), deserved=room(4, "30500m", "100Gi"),
                 guarantee=room(4, 20, "51200Mi")),
            team("speech", 20002, parent="all", deserved=room(4, "29.5", "100Gi"), guarantee=room(4, 20, "50Gi")),
        ],
        **POOLS, **RECLAIM,
    )  # fmt: skip
    assert render.errors(values) == []
    made = {obj["metadata"]["name"]: obj.get("spec") for obj in plan_of(render(values))["objects"]}["vision"]
    assert made["capability"] == room(12, 90, "300Gi") and made["guarantee"]["resource"] == room(4, 20, "51200Mi")
    assert made["deserved"] == room(4, "30500m", "100Gi") and made["parent"] == "all"


def test_what_the_page_of_queues_shows_is_taken(render: Rendering) -> None:
    blocks = (ROOT / "docs" / "queues.md").read_text().split("```yaml\n")[1:]
    assert blocks
    assert [render.errors(yaml.safe_load(block.split("```")[0])) for block in blocks] == [[]] * len(blocks)


def test_exactly_the_capacity_of_the_pools_is_taken(render: Rendering) -> None:
    """96 cores and 384Gi, in other units than the pools'."""
    whole = room(16, "96e0", "393216Mi")
    assert render.errors(contract(queue("q", guarantee=whole, deserved=whole), **POOLS)) == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"global": {"contract": {"defaultQueue": "nobody"}}},
            'global.contract.defaultQueue is "nobody", which is not among global.contract.queues (training).',
        ),
        (
            contract(queue("q", parent="training")),
            'global.contract.defaultQueue is "training", which has queues below it; one job in it would stop all '
            "scheduling; use a queue below it.",
        ),
        (contract(queue("q"), queue("q")), 'names the queue "q" twice; give each its own name.'),
        (contract(queue("default")), '"default" is reserved for Volcano; choose another name.'),
        (
            contract(queue("q", parent="p")),
            f'{WHERE} q has parent "p", which is not among global.contract.queues; name one of them or root.',
        ),
        (contract(queue("a", parent="b"), queue("b", parent="a")), f"{WHERE} a is its own ancestor"),
        (contract(queue("a", parent="a")), f"{WHERE} a is its own ancestor"),
        (
            contract(queue("q", capability={GPU: 8})),
            f"{WHERE} q: capability leaves out cpu, memory, so Volcano's admission takes the queue's limit as zero",
        ),
        (
            contract(queue("q", deserved={"cpu": 1, "memory": "1Gi"}), **RECLAIM),
            f"{WHERE} q: deserved leaves out {GPU}, which counts as zero",
        ),
        (
            contract(queue("q", deserved=room(1, 1, "1Gi") | {"x.io/a": 1}, guarantee=room(1, 1, "1Gi")), **RECLAIM),
            f"{WHERE} q: guarantee leaves out x.io/a, so none of it is kept free; list every resource.",
        ),
        (contract(queue("q", guarantee=room(1))), f"{WHERE} q guarantees {GPU}, so its deserved must have"),
        (
            contract(queue("q", guarantee=room(1, "1500m", 0), deserved=room(1, 1, 0))),
            f"{WHERE} q guarantees 1500m cpu, more than the 1 that it deserves; raise deserved or lower guarantee.",
        ),
        (
            contract(queue("q", deserved=room(1, 1, "2Gi"), capability=room(1, 1, "2G")), **RECLAIM),
            f"{WHERE} q deserves 2Gi memory, more than the 2G of its capability; raise capability or lower deserved.",
        ),
        (
            contract(
                queue("a", guarantee=room(9, 0, 0), deserved=room(9, 0, 0)),
                teams=[team("vision", guarantee=room(8, 0, 0), deserved=room(8, 0, 0))],
                **POOLS,
            ),
            f"global.contract.nodePools has 16 {GPU}, but 17 are promised as guarantee (queues: a, vision); lower",
        ),
        (
            contract(
                queue("a", guarantee=room(0, 0, "200Gi"), deserved=room(0, 0, "200Gi")),
                queue("b", guarantee=room(0, 0, "188417Mi"), deserved=room(0, 0, "188417Mi")),
                **POOLS,
            ),
            "nodePools has 384Gi memory, but 384.001Gi are promised as guarantee (queues: a, b)",
        ),
        (
            contract(queue("a", deserved=room(0, "96001m", 0)), **POOLS, **RECLAIM),
            "nodePools has 96 cpu, but 96.001 are promised as deserved (queues: a); lower these",
        ),
        (
            contract(
                queue("p", deserved=room(4, 1, 1), guarantee=room(4, 1, 1)),
                queue("a", parent="p", deserved=room(3, 0, 0), guarantee=room(3, 0, 0)),
                queue("b", parent="p", deserved=room(2, 0, 0), guarantee=room(2, 0, 0)),
            ),
            f"{WHERE} p has 4 {GPU} as its guarantee, but the queues below it (a, b) have 5; raise it or lower theirs.",
        ),
        (
            {"global": {"contract": {"priorityClasses": [{"name": n, "value": 1} for n in ("a", "b", "a")]}}},
            'global.contract.priorityClasses names the class "a" twice; give each its own name.',
        ),
        (
            {"global": {"contract": {"priorityClasses": [{"name": "system-training", "value": 1}]}}},
            'global.contract.priorityClasses: "system-training" begins with system-, which is reserved for Kubernetes',
        ),
        (
            contract(queue("p"), queue("a", parent="p", deserved=room(1, 0, 0), guarantee=room(1, 0, 0))),
            f"{WHERE} p has 0 {GPU} as its guarantee, but the queues below it (a) have 1; raise it or lower theirs.",
        ),
        (
            contract(queue("p", capability=room(4, 8, 1)), teams=[team("v", parent="p", capability=room(5, 8, 1))]),
            f"global.contract.teams: the queue of team v may use 5 {GPU} (capability), more than the 4 of its parent p",
        ),
        (
            contract(queue("q", deserved=room(4, 0, 0), guarantee=room(2, 0, 0))),
            f"{WHERE} q deserves 4 {GPU}, but only what it guarantees (2) is kept for it while "
            "global.contract.scheduler.reclaim is false; set reclaim to true or guarantee as much.",
        ),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_violation_is_reported(values: dict[str, Any], sentence: str, render: Rendering) -> None:
    reported = render.errors(values)
    assert any(sentence in line for line in reported), reported


def test_sums_are_not_compared_where_a_pool_says_no_number(render: Rendering) -> None:
    much = room(1000, 1000, "1000Gi")
    values = contract(queue("q", guarantee=much, deserved=much))
    for key in ("count", "capacity"):
        pools = [GPU_POOL, {name: value for name, value in CPU_POOL.items() if name != key}]
        reported = render.errors({"global": {"contract": values["global"]["contract"] | {"nodePools": pools}}})
        assert {line.split(" as ")[0] for line in reported} == {
            f"global.contract.nodePools has 16 {GPU}, but 1000 are promised"
        }
    assert render.errors(values) == []


def test_all_violations_come_in_one_message(render: Rendering) -> None:
    values = contract(
        queue("a", parent="nobody", deserved={GPU: 40}),
        queue("b", guarantee=room(20, 1, 1), deserved=room(10, 1, 1)),
        teams=[team("vision", capability={"cpu": 1})],
        defaultQueue="none",
        **POOLS,
    )
    values["minio"] = {"enabled": False}
    reported = render.errors(values)
    for words in ("defaultQueue", 'parent "nobody"', "a: deserved leaves out", "b guarantees 20",
                  "20 are promised as guarantee (queues: b)", "team vision: capability leaves out",
                  "minio.enabled is false", "reclaim is false"):  # fmt: skip
        assert any(words in line for line in reported), (words, reported)
    assert all(line.endswith(".") for line in reported)
    assert len(reported) == len(set(reported))
