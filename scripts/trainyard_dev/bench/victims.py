"""Reclaim requests on a full cluster: the pods that a scheduler evicts for a queue below its share."""

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainyard_dev.bench import layouts, objects, tables
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import GPU, MERGE, PODS, Harness
from trainyard_dev.bench.layouts import FewestMoves, Layout
from trainyard_dev.bench.results import Figure, Metric, Run, headings
from trainyard_dev.bench.schedulers import Scheduler, scheduler
from trainyard_dev.bench.traces import Node, Pod

CPU_MILLI, MEMORY_MIB = 4000, 16 * 1024  # per GPU
UNSERVED = """
Claims of four pods of 4 GPUs are not served if every running pod has 8 GPUs: reclaiming evicts one pod for each pod of
the claim, although two would be enough, and the fourth would leave the queue below its own share. So all four wait, and
no pod is evicted.
"""
METRICS: dict[str, Metric] = {
    "served_percent": ("claims served, %", "% of the claims", 100.0),
    "evicted_pods": ("pods evicted", "pods", "least_pods"),
    "evicted_jobs": ("jobs hit", "jobs", "least_jobs"),
    "lost_gpu_hours": ("GPU·h lost", "GPU·h", "least_gpu_hours"),
    "evicted_in_vain": ("pods evicted in vain", "pods", 0.0),
}
PASSES = 20  # a scheduler that still evicts then loops
SHARE, COLUMN = "claims+share", "ours-reclaim"


def plan(seeds: Iterable[int], count: int) -> list[Run]:
    """The runs: `count` clusters for each seed, the same for every configuration."""
    return [Run("fairness", f"{SHARE}@{count}", COLUMN, seed, {"clusters": count}) for seed in seeds]


def measure(run: Run, column: Configuration, harness: Harness) -> dict[str, float]:
    """Measures all reclaim requests of one run, one after the other.

    Values are sums over them: pods and jobs evicted, GPU·hours that these had worked (a job that loses a pod has to
    start again), the minimum of each, requests that were met, and pods evicted for those
    that were not.
    """
    rng = random.Random(f"claims/{run.seed}")
    done: list[tuple[FewestMoves, FewestMoves, bool]] = []
    circles = 0
    for _ in range(run.settings["clusters"]):
        layout = layouts.layout(rng)
        _fill(harness, column, layout)
        with scheduler(harness, column) as running:
            gone, served, ended = _request(harness, running, column, layout)
        done.append((layouts.cost(layout, gone), layouts.least(layout), served))
        circles += not ended
        harness.clear()
    return {
        "claims": float(len(done)),
        "served_percent": 100 * sum(served for *_, served in done) / len(done),
        "evicted_pods": float(sum(cost.pods for cost, *_ in done)),
        "evicted_jobs": float(sum(cost.jobs for cost, *_ in done)),
        "lost_gpu_hours": sum(cost.gpu_hours for cost, *_ in done),
        "least_pods": float(sum(least.pods for _, least, _ in done)),
        "least_jobs": float(sum(least.jobs for _, least, _ in done)),
        "least_gpu_hours": sum(least.gpu_hours for _, least, _ in done),
        "evicted_in_vain": float(sum(cost.pods for cost, _, served in done if not served)),
        "circles": float(circles),
    }


def _fill(harness: Harness, column: Configuration, layout: Layout) -> None:
    """Adds nodes, queues, and jobs that have run for long; their names and creation show their age."""
    cpu, memory = CPU_MILLI * layouts.NODE_GPUS, MEMORY_MIB * layouts.NODE_GPUS
    harness.add_nodes(
        [Node(_node(n), cpu * 2, memory * 2, layouts.NODE_GPUS) for n in range(layout.nodes)], effect=column.taint
    )
    harness.add_queue("default")
    for queue, part in (("others", 1), ("claimant", 3)):
        gpus = layout.nodes * layouts.NODE_GPUS * part // 4
        room = {GPU: str(gpus), "cpu": f"{CPU_MILLI * gpus}m", "memory": f"{MEMORY_MIB * gpus}Mi"}
        harness.add_queue(queue, deserved=room)
    for job in layout.jobs:
        made: list[dict[str, Any]] = [objects.pod_group(job.name, len(job.places), queue="others")]
        for index, place in enumerate(job.places):
            pod = _pod(f"{job.name}-{index}", job.each, column, job.name)
            pod["spec"]["nodeName"] = _node(place)
            made.append(pod)
        harness.create(made, in_order=True)
    names = [f"{job.name}-{index}" for job in layout.jobs for index in range(len(job.places))]
    harness.sees(names)
    now = datetime.now(UTC)
    for job in layout.jobs:
        since = (now - timedelta(hours=job.hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for index in range(len(job.places)):
            status = {"status": {"phase": "Running", "startTime": since}}
            harness.server.call("PATCH", f"{PODS}/{job.name}-{index}/status", status, content=MERGE)


def _request(
    harness: Harness, running: Scheduler, column: Configuration, layout: Layout
) -> tuple[list[str], bool, bool]:
    """Submits the request and deletes evicted pods at once.

    Returns their names, whether its job runs, and whether evictions ceased.
    """
    made = [objects.pod_group("claim", layout.pods, queue="claimant")]
    names = [f"claim-{index}" for index in range(layout.pods)]
    with running.process.paused():
        harness.create(made + [_pod(name, layout.each, column, "claim") for name in names], in_order=True)
        harness.sees(names)
    gone: list[str] = []
    for _ in range(PASSES):
        running.settle(harness)
        leaving = [name for name, pod in list(harness.pods.items()) if pod.leaving]
        if not leaving:
            break
        gone += leaving
        harness.delete(leaving)
        harness.sees(leaving, gone=True)
    served = all((pod := harness.pods.get(name)) is not None and bool(pod.node) for name in names)
    return [name for name in gone if name not in names], served, not leaving


def _pod(name: str, gpus: int, column: Configuration, group: str) -> dict[str, Any]:
    asked = Pod(name, CPU_MILLI * gpus, MEMORY_MIB * gpus, gpus)
    return objects.pod(asked, column.scheduler, group=group, labels={"job": group})


def _node(index: int) -> str:
    return f"n{index:03d}"


def section(figures: Sequence[Figure]) -> str:
    """Renders this bench's part of the page."""
    if not figures:
        return ""
    text = """**Victims.** Four nodes of 8 GPUs are full of jobs (gangs of 1 to 4 pods, placed at random, running up to
a day) when a job of 4 to 16 GPUs claims room that others must leave. In `claims+share`, the claiming queue is below its
share and the other one above. A job that loses a pod has to start again, so it loses all its GPU·hours. The limits are
the fewest pods, the fewest jobs and the fewest GPU·hours, each found by trying every choice. A seed has ten clusters;
figures are sums over these clusters, averaged over the seeds.

"""
    parts = [f"### {case}\n\n{tables.by_column(figures, case, headings(METRICS))}" for case in tables.cases(figures)]
    served = [one.value for one in figures if one.metric == "served_percent" and one.case.startswith(SHARE)]
    return text + "\n".join(parts) + (UNSERVED if served and min(served) < 100 else "")
