"""Node pools that would not work are refused; the contract's settings for them reach every component."""

from __future__ import annotations

from typing import Any

import pytest

from rendering import Rendering
from trainyard.errors import TrainyardError

NVIDIA = "nvidia.com/gpu"
TAINT = {"key": NVIDIA, "value": "present", "effect": "NoSchedule"}
SOFT = TAINT | {"effect": "PreferNoSchedule"}
RESERVE = {"cpu": 12, "memory": "96Gi"}


def gpu(name: str = "gpu", **rest: Any) -> dict[str, Any]:
    """A pool; a key that is None is left out."""
    pool = {"name": name, "kind": "gpu", "labels": {"trainyard.io/pool": "gpu"}, "taint": TAINT}
    return {key: value for key, value in (pool | {"gpu": {"resource": NVIDIA}} | rest).items() if value is not None}


def cpu(name: str = "cpu", **rest: Any) -> dict[str, Any]:
    return {"name": name, "kind": "cpu", "labels": {"trainyard.io/pool": "cpu"}} | rest


def pools(*found: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"global": {"contract": {"nodePools": list(found)}}} | rest


@pytest.mark.parametrize(
    "values",
    [
        pools(gpu(), cpu()),
        pools(gpu()),
        pools(gpu(taint=SOFT, gpu={"resource": NVIDIA, "reserve": RESERVE}), cpu()),
        pools(gpu(taint=None, gpu={"resource": NVIDIA, "reserve": {"cpu": 0, "memory": 0}}), cpu()),
        pools(gpu("spot", spot=True, selector={"spot": "yes"}, taint=TAINT | {"key": "spot"}), gpu(), cpu()),
        pools(gpu(count=2, capacity={"cpu": 96, "memory": "768Gi"}, gpu={"resource": NVIDIA, "count": 8,
                                                                       "reserve": RESERVE}), cpu()),
        pools(gpu(), cpu("data", selector={"a": "b"}, taint=TAINT | {"key": "data"}), cpu()),
    ],
)  # fmt: skip
def test_pools_that_work_are_taken(values: dict[str, Any], render: Rendering) -> None:
    assert render.errors(values) == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (pools(gpu(gpu=None), cpu()), 'pool "gpu" is of kind gpu and needs a gpu block'),
        (pools(gpu(), cpu(gpu={"resource": NVIDIA})), 'pool "cpu" is of kind cpu and must not have a gpu block'),
        (pools(gpu(labels={"a": "b"}), cpu()), "the GPU pool gpu needs the label trainyard.io/pool: gpu"),
        (pools(gpu(), cpu(labels={"trainyard.io/pool": "gpu"})), "the CPU pool cpu must not have the label"),
        (pools(gpu(), gpu(selector={"a": "b"}), cpu()), "names the pool gpu twice; give each its own name."),
        (pools(gpu(), gpu("other"), cpu()), "the pools gpu and other are both of kind gpu without a selector"),
        (pools(gpu(), cpu(), cpu("more")), "the pools cpu and more are both of kind cpu without a selector"),
        (pools(gpu(taint=None), cpu()), "pool gpu admits pods without GPUs, which could use the CPUs that its GPUs"),
        (pools(gpu(taint=SOFT), cpu()), "pool gpu admits pods without GPUs"),
        (
            pools(gpu("spot", spot=True, selector={"a": "b"}), gpu(), cpu()),
            "the spot pool spot needs its own taint, but has that of pool gpu; jobs that can't be interrupted",
        ),
        (pools(gpu(), cpu("spot", spot=True, selector={"a": "b"}), cpu()), "the spot pool spot needs its own taint"),
        (
            pools(gpu(), gpu("amd", selector={"a": "b"}, gpu={"resource": "amd.com/gpu"}), cpu()),
            "the pools amd and gpu have the same labels but the resources amd.com/gpu and nvidia.com/gpu; give each",
        ),
        (
            pools(gpu(gpu={"resource": NVIDIA, "reserve": RESERVE}),
                  gpu("b", selector={"a": "b"}, gpu={"resource": NVIDIA, "reserve": RESERVE | {"cpu": 2}}), cpu()),
            "pool b has a different gpu.reserve than another pool with nvidia.com/gpu, but the scheduler supports one",
        ),
        (
            pools(gpu(capacity={"cpu": "95900m", "memory": "768Gi"},
                      gpu={"resource": NVIDIA, "count": 8, "reserve": RESERVE}), cpu()),
            "pool gpu keeps 12 cpu for each of its 8 GPUs (gpu.reserve), more than the 95900m of a node (capacity)",
        ),
        (
            pools(gpu(), cpu(taint=TAINT | {"key": "data"})),
            "every pool of kind cpu has a taint (cpu), so no pod of the platform could start; remove the taint "
            "from one.",
        ),
        (
            pools(gpu(taint=TAINT | {"effect": "NoExecute"}), cpu(),
                  **{"nvidia-device-plugin": {"tolerations": [TAINT | {"operator": "Equal"}]}}),
            "nvidia-device-plugin.tolerations must tolerate the taint nvidia.com/gpu=present:NoExecute of the GPU pool",
        ),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)  # fmt: skip
def test_pools_that_would_not_work_are_refused(values: dict[str, Any], sentence: str, render: Rendering) -> None:
    reported = render.errors(values)
    assert any(sentence in line for line in reported), reported


def test_tolerations_of_ones_own_may_say_more(render: Rendering) -> None:
    for toleration in ({"operator": "Exists"}, {"key": NVIDIA, "operator": "Exists"}, TAINT):
        assert render.errors({"nvidia-device-plugin": {"tolerations": [toleration]}}) == []


@pytest.mark.parametrize(
    ("key", "value"), [("cpu", "4 cores"), ("cpu", "-1"), ("cpu", -1), ("memory", "16GB"), ("memory", "lots")]
)
def test_an_amount_that_is_none_is_refused(key: str, value: Any, render: Rendering) -> None:
    pool = gpu(gpu={"resource": NVIDIA, "reserve": RESERVE | {key: value}})
    with pytest.raises(TrainyardError, match=f"reserve/{key}"):
        render.errors(pools(pool, cpu()))
