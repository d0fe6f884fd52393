"""The cost of each option on the run's cluster: cores, memory, seconds until ready, by pod, from the kubelet."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainyard.kinds.spec import amount_of
from trainyard_dev.e2e import options
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.recorder import patience, require

COSTS = "seeing.costs"
TITLE = "cost of monitoring and logs: cores over a minute, memory, seconds until every pod is ready"
MEAN_S = 60.0
NEXT_S = 40.0  # the kubelet measures every ten to twenty seconds
CORES, READY_S = 1.0, 180.0  # limits for each pod of an option: cores of its node, seconds until ready
MIB = 2**20


@dataclass(frozen=True)
class Used:
    """A pod's usage so far: seconds of CPU at a Unix time, and bytes of its working set."""

    at: float
    cpu_s: float
    memory: float


def look(context: Context, namespaces: Collection[str] = (SYSTEM,)) -> dict[str, Used]:
    """The usage so far of every pod in the release's namespace, or in others, from every kubelet's summary."""
    found = {}
    for node in context.nodes:
        told = json.loads(context.kubectl("get", "--raw", f"/api/v1/nodes/{node.name}/proxy/stats/summary").stdout)
        for pod in told["pods"]:
            if pod["podRef"]["namespace"] in namespaces and (used := summed(pod)):
                found[pod["podRef"]["name"]] = used
    return found


def used(before: Used, now: Used) -> str:
    """A pod's average usage between two readings, and its memory at the second."""
    cores = (now.cpu_s - before.cpu_s) / max(1.0, now.at - before.at)
    return f"{cores:.3f} cores, {now.memory / MIB:.0f} MiB"


def since(context: Context, began: Mapping[str, Used], figures: dict[str, Any]) -> None:
    """Fills the figure `costs` with an entry for each pod of each option, over the time since the first reading.

    Raises:
        CheckError: a pod has no figure, or exceeds its limit.
    """
    brought = options.objects(context)
    found = {option: options.pods(context, brought[option]) for option in options.ALL}
    names = [pod["metadata"]["name"] for listed in found.values() for pod in listed]
    wait, now = patience(NEXT_S, 5), look(context)
    while stale := [name for name in names if name not in now or (name in began and now[name].at <= began[name].at)]:
        wait(f"kubelet has no new metrics of {', '.join(stale)}")
        now = look(context)
    rows = [
        row(option, pod, began.get(pod["metadata"]["name"]), now[pod["metadata"]["name"]])
        for option in options.ALL
        for pod in found[option]
    ]
    figures["costs"] = rows
    for option in options.ALL:
        mine = [one for one in rows if one["option"] == option]
        if option in options.STILL:
            require(not mine, f"{option} should run no pods, but has {mine}")
            figures[option] = f"{len(brought[option])} objects, no pod"
            continue
        require(mine, f"{option} has no pod")
        # For a single pod, 0 is valid: one that works every two minutes may have been asleep.
        require(any(one["cores"] > 0 for one in mine), f"kubelet reports no CPU usage for the pods of {option}")
        figures[option] = (
            f"{sum(one['cores'] for one in mine):.3f} cores, {sum(one['memory_mib'] for one in mine):.0f} MiB, "
            f"{len(mine)} pods ready after {max(one['ready_s'] for one in mine):.0f} s"
        )
    wrong = [sentence for one in rows if (sentence := beyond(one))]
    require(not wrong, "; ".join(wrong))


def row(option: str, pod: Mapping[str, Any], began: Used | None, now: Used) -> dict[str, Any]:
    """One pod's figures; without an earlier reading, the mean since its start."""
    meta, containers = pod["metadata"], pod["spec"]["containers"]
    labels = meta.get("labels") or {}
    since = began or Used(_moment(pod["status"]["startTime"]), 0.0, 0.0)
    limits = [one.get("resources", {}).get("limits", {}).get("memory", "0") for one in containers]
    ready = [one for one in pod["status"].get("conditions") or [] if one["type"] == "Ready" and one["status"] == "True"]
    return {
        "option": option,
        "part": labels.get("app.kubernetes.io/name", meta["name"]),
        "pod": meta["name"],
        "cores": round((now.cpu_s - since.cpu_s) / max(1.0, now.at - since.at), 4),
        "memory_mib": round(now.memory / MIB, 1),
        "limit_mib": round(sum(amount_of(text) for text in limits) / MIB, 1),
        "ready_s": _moment(ready[0]["lastTransitionTime"]) - _moment(meta["creationTimestamp"]) if ready else -1.0,
    }


def beyond(one: Mapping[str, Any]) -> str:
    """A pod's exceeded limit, in a sentence; "" if there is none."""
    name = one["pod"]
    if one["cores"] < 0 or one["memory_mib"] <= 0:
        return f"kubelet reports that {name} uses {one['cores']} cores and {one['memory_mib']} MiB"
    if one["cores"] > CORES:
        return f"{name} uses {one['cores']} cores, {CORES:g} are allowed"
    if not one["limit_mib"] or one["memory_mib"] >= one["limit_mib"]:
        return f"{name} has {one['memory_mib']} MiB, its limit is {one['limit_mib'] or 'not set'}"
    if not 0 <= one["ready_s"] <= READY_S:
        return f"{name} is not ready within {READY_S:g} s"
    return ""


def summed(pod: Mapping[str, Any]) -> Used | None:
    """The sum over all containers of a pod in the kubelet's summary; None before all have been measured."""
    told = [(one.get("cpu") or {}, one.get("memory") or {}) for one in pod.get("containers") or []]
    if not told or not all("usageCoreNanoSeconds" in cpu and "workingSetBytes" in memory for cpu, memory in told):
        return None
    return Used(
        max(_moment(cpu["time"]) for cpu, _ in told),
        sum(cpu["usageCoreNanoSeconds"] for cpu, _ in told) / 1e9,
        float(sum(memory["workingSetBytes"] for _, memory in told)),
    )


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
