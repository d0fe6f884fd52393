"""The exporter's memory per object."""

import copy
import gc
import tracemalloc
from typing import Any

from exporter_objects import CONTRACT, GPU, pod

from trainyard_agent.exporter import looking


def test_a_pod_is_kept_in_two_kilobytes_whatever_it_holds() -> None:
    [source] = [one for one in looking.sources(CONTRACT["nodePools"], (GPU,), ()) if one.name == "pods"]

    def pods(begin: int) -> list[Any]:
        found = [
            pod(f"train-{at}", f"train-{at // 8}", on=f"node-{at}", gang="train") for at in range(begin, begin + 500)
        ]
        for one in found:
            variables = [{"name": f"SETTING_{at}", "value": f"value-of-setting-{at}"} for at in range(25)]
            one["spec"]["containers"] += [{"name": f"side-{at}", "env": copy.deepcopy(variables)} for at in range(3)]
        return found

    for one in pods(0):
        source.read(one)
    raw = pods(1000)
    gc.collect()
    tracemalloc.start()
    kept = []
    while raw:
        kept.append(source.read(copy.deepcopy(raw.pop())))
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == 500
    assert size / len(kept) < 2048
