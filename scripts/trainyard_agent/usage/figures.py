"""Containers' usage of their requests: queries to Prometheus, and the results by role and container.

CPU is in cores, memory in bytes, shares are from 0 to 1. A figure is that of the pod with the highest usage: a role's
pods have one template, which has to fit that pod. OOM kills are counted over all pods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from string import Template
from typing import Any

from trainyard_agent.usage.prometheus import Prometheus

Object = dict[str, Any]
Key = tuple[str, str]  # pod, container
RATES = 4  # scrapes over which a CPU rate is computed
POINTS = 400  # of a percentile, at most
MIB = float(1 << 20)
RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"  # characters with which Kubernetes and `trainyard train` end names

BY = "by (pod, container)"
CPU = "rate(container_cpu_usage_seconds_total{$sel}[${rate}s])[${late}s:${step}s]"
MEMORY = "container_memory_working_set_bytes{$sel}[${window}s]"
PERIODS = f"sum {BY} (increase(container_cpu_cfs_periods_total{{$sel}}[${{window}}s]))"
THROTTLED = f"sum {BY} (increase(container_cpu_cfs_throttled_periods_total{{$sel}}[${{window}}s]))"
KILLED = '{$sel,reason="OOMKilled"}[${window}s]'
QUERIES = {
    "cpu.p50": f"max {BY} (quantile_over_time(0.5, {CPU}))",
    "cpu.p95": f"max {BY} (quantile_over_time(0.95, {CPU}))",
    "cpu.p99": f"max {BY} (quantile_over_time(0.99, {CPU}))",
    "cpu.max": f"max {BY} (max_over_time({CPU}))",
    "memory.p95": f"max {BY} (quantile_over_time(0.95, {MEMORY}))",
    "memory.max": f"max {BY} (max_over_time({MEMORY}))",
    "samples": f"max {BY} (count_over_time({MEMORY}))",
    "throttled": f"{THROTTLED} / ({PERIODS} > 0)",
}
# The kernel's count, and kube-state-metrics' reason of a container's end: either may miss one.
KILLS = (
    f"sum {BY} (increase(container_oom_events_total{{$sel}}[${{window}}s]))",
    f"max {BY} (max_over_time(kube_pod_container_status_last_terminated_reason{KILLED}))",
    f"max {BY} (max_over_time(kube_pod_container_status_terminated_reason{KILLED}))",
)
EACH = "max by (pod, container, resource)"
AMOUNTS = {
    "asked": f"{EACH} (max_over_time(kube_pod_container_resource_requests{{$sel}}[${{window}}s]))",
    "limits": f"{EACH} (max_over_time(kube_pod_container_resource_limits{{$sel}}[${{window}}s]))",
}
GPU = {
    "gpu.util": (f"avg {BY} (avg_over_time(DCGM_FI_DEV_GPU_UTIL{{$sel}}[${{window}}s]))", 0.01),
    "gpu.memory": (f"max {BY} (max_over_time(DCGM_FI_DEV_FB_USED{{$sel}}[${{window}}s]))", MIB),
    "gpu.free": (f"min {BY} (min_over_time(DCGM_FI_DEV_FB_FREE{{$sel}}[${{window}}s]))", MIB),
    "gpu.idle": (f"count {BY} (max_over_time(DCGM_FI_DEV_GPU_UTIL{{$sel}}[${{window}}s]) < 1)", 1.0),
}
LAST = "max(max_over_time(timestamp(container_memory_working_set_bytes{$sel})[${window}s:${step}s]))"


class Figures:
    """Figures that one Prometheus has of pods; `scrape` is the seconds between two samples."""

    def __init__(self, prometheus: Prometheus, scrape: float = 15.0) -> None:
        self.prometheus, self.scrape = prometheus, scrape

    def parts(
        self, namespace: str, pods: Sequence[str] | None, begin: float, at: float, role: Callable[[str], str]
    ) -> list[Object]:
        """Figures of each role's containers from `begin` to `at`, which are Unix times; `pods` None means all.

        Raises:
            PrometheusError: Prometheus can't be queried.
        """
        words = self._words(namespace, pods, begin, at)
        found: dict[Key, Object] = {}
        for name, query in QUERIES.items():
            for labels, value in self._ask(query, words, at):
                _put(found.setdefault(_key(labels), {}), name, value)
        for query in KILLS:
            for labels, value in self._ask(query, words, at):
                if value >= 0.5:  # a container that was killed at once may have no other figures
                    killed = found.setdefault(_key(labels), {})
                    killed["oom"] = max(killed.get("oom", 0), round(value))
        gpus = False
        for name, query in AMOUNTS.items():
            for labels, value in self._ask(query, words, at):
                resource, key = _resource(labels.get("resource", "")), _key(labels)
                if resource and key in found:
                    _put(found[key], f"{name}.{resource}", value)
                    gpus = gpus or resource == "gpus"
        for name, (query, unit) in GPU.items() if gpus else ():
            for labels, value in self._ask(query, words, at):
                if _key(labels) in found:
                    _put(found[_key(labels)], name, value * unit)
        return _by_role(found, role)

    def last(self, namespace: str, pods: Sequence[str], begin: float, at: float) -> float | None:
        """When the last sample of these pods' containers was taken; None if there is none."""
        answer = self._ask(LAST, self._words(namespace, pods, begin, at), at)
        return answer[0][1] if answer else None

    def _words(self, namespace: str, pods: Sequence[str] | None, begin: float, at: float) -> dict[str, str]:
        window, rate = max(at - begin, self.scrape), RATES * self.scrape
        # Without this limit, a pod's first rate would include an earlier pod of the same name.
        late = window - rate if window > 2 * rate else window
        # In a pod's name, only the dot has a meaning inside a quoted expression.
        chosen = "" if pods is None else f',pod=~"{"|".join(pods)}"'.replace(".", r"\\.")
        return {
            "sel": f'namespace="{namespace}"{chosen},container!="",container!="POD"',
            "window": f"{window:.0f}",
            "late": f"{late:.0f}",
            "rate": f"{rate:.0f}",
            "step": f"{max(self.scrape, window / POINTS):.0f}",
        }

    def _ask(self, query: str, words: dict[str, str], at: float) -> list[tuple[dict[str, str], float]]:
        return self.prometheus.vector(Template(query).substitute(words), at)


def job_of(name: str) -> str:
    """The name that all runs of one job share: without the suffix that each run gets."""
    for end in (rf"-{RANDOM}{{5}}", r"-\d{8,10}"):  # generateName and `trainyard train`; CronJob
        name = re.sub(rf"(?<=.){end}$", "", name)
    return name


def role_of(job: str, pod: str) -> str:
    """A pod's role in its job: `worker` of `mnist-worker-0`, `launcher` of `mnist-launcher`; "" for a plain Job."""
    rest = pod.removeprefix(job).removeprefix("-")
    rest = re.sub(rf"(^|-){RANDOM}{{5}}$", "", rest)
    return re.sub(r"(^|-)\d+$", "", rest)


def workload_of(pod: str) -> str:
    """The Deployment, DaemonSet, StatefulSet or Job of a pod, by the pod's name."""
    short = re.sub(rf"-{RANDOM}{{5}}$", "", pod)
    if short == pod:
        return re.sub(r"-\d+$", "", pod)
    return re.sub(rf"-(?:{RANDOM}{{6,10}}|\d{{8,10}})$", "", short)


def _by_role(found: dict[Key, Object], role: Callable[[str], str]) -> list[Object]:
    parts: dict[Key, Object] = {}
    for (pod, container), one in sorted(found.items()):
        if not one.keys() & {"cpu", "memory", "oom"}:
            continue
        if gpu := one.get("gpu"):
            gpu["of"] = gpu.pop("free", 0.0) + gpu.get("memory", 0.0)
        key = (role(pod), container)
        part = parts.setdefault(key, {"role": key[0], "container": container, "pods": 0, "oom": 0})
        part["pods"] += 1
        part["oom"] += one.pop("oom", 0)
        _merge(part, one)
    return [_rounded(part) for part in parts.values()]


def _merge(part: Object, one: Object) -> None:
    for name, value in one.items():
        if isinstance(value, dict):
            _merge(part.setdefault(name, {}), value)
        else:
            part[name] = max(part.get(name, value), value)


def _rounded(part: Object) -> Object:
    """The figures with cores and shares rounded to a thousandth, bytes and counts to whole numbers."""
    made: Object = {}
    for name, value in part.items():
        made[name] = (
            _rounded(value) if isinstance(value, dict) else _short(value) if isinstance(value, float) else value
        )
    return made


def _short(value: float) -> float:
    return round(value) if value >= 1000 or value == int(value) else round(value, 3)


def _put(one: Object, name: str, value: float) -> None:
    *way, last = name.split(".")
    for word in way:
        one = one.setdefault(word, {})
    one[last] = value


def _key(labels: dict[str, str]) -> Key:
    return labels.get("pod", ""), labels.get("container", "")


def _resource(name: str) -> str:
    """`cpu`, `memory` or `gpus` from kube-state-metrics' name of a resource; "" for any other."""
    return "gpus" if name.endswith("_gpu") else name if name in ("cpu", "memory") else ""
