"""What the agent asks of Prometheus about usage, answered by Prometheus itself out of series as kubelets give them."""

import time
from functools import partial

import pytest
from scraped import CORES, GIB, LONG_S, SCRAPE_S, Kubelet

from trainyard_agent.usage.figures import Figures, role_of
from trainyard_agent.usage.jobs import BEGUN, GOING, PODS
from trainyard_agent.usage.prometheus import Prometheus, PrometheusError


def test_every_figure_is_what_the_series_say(prometheus: Prometheus) -> None:
    at = time.time()
    figures = Figures(prometheus, SCRAPE_S)
    master, worker = figures.parts("vision", list(CORES), Kubelet.begun, at, partial(role_of, "ddp"))
    assert (master["role"], master["pods"], worker["role"], worker["pods"]) == ("master", 1, "worker", 2)
    for part, cores in ((master, 0.5), (worker, 3.0)):
        for name in ("p50", "p95"):
            assert part["cpu"][name] == pytest.approx(cores, rel=0.1)
        assert part["memory"] == {"p95": cores * GIB, "max": cores * GIB}
        assert part["samples"] >= LONG_S - 1
        assert part["asked"] == {"cpu": 4, "gpus": 2}
        assert part["limits"] == {"memory": 8 * GIB}
        assert part["gpu"] == {"util": 0.4, "memory": 2 * GIB, "of": 4 * GIB, "idle": 1}
    assert (master["oom"], worker["oom"]) == (0, 1)
    assert master["throttled"] == 0
    assert worker["throttled"] == pytest.approx(0.4, abs=0.05)
    last = figures.last("vision", list(CORES), Kubelet.begun, at)
    assert last and at - last < 10


def test_all_of_a_namespace(prometheus: Prometheus) -> None:
    found = Figures(prometheus, SCRAPE_S).parts("speech", None, Kubelet.begun, time.time(), partial(role_of, "ddp"))
    assert [(part["role"], part["container"]) for part in found] == [("worker", "x")]


def test_what_runs_and_since_when(prometheus: Prometheus) -> None:
    at = time.time()
    pods = prometheus.vector(PODS.format(window=240.0), at)
    assert sorted((one["pod"], one["job"], one["kind"]) for one, _ in pods) == [
        (pod, "ddp", "PyTorchJob") for pod in sorted(CORES)]  # fmt: skip
    assert {value for _, value in prometheus.vector(BEGUN.format(window=240.0), at)} == {Kubelet.begun}
    assert {one["pod"] for one, _ in prometheus.vector(GOING, at)} == set(CORES)


def test_a_query_that_it_does_not_take_is_named(prometheus: Prometheus) -> None:
    with pytest.raises(PrometheusError, match=r"refused a query: .*parse error"):
        prometheus.vector("sum(", time.time())
