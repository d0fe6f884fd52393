"""Throughput: loads by name, costs read from programs, and the page made from figures."""

import os
import time

import pytest

from trainyard.errors import UsageError
from trainyard_dev.bench import costs, loads, throughput
from trainyard_dev.bench.results import Result, Run

METRICS = """\
apiserver_request_total{code="201",component="apiserver",resource="pods",subresource="",verb="POST"} 20
apiserver_request_total{code="409",component="apiserver",resource="pods",subresource="",verb="POST"} 1
apiserver_request_total{code="201",component="apiserver",resource="pods",subresource="binding",verb="POST"} 20
apiserver_request_total{code="200",component="apiserver",resource="leases",subresource="",verb="PUT"} 7
apiserver_request_total{code="200",component="apiserver",resource="pods",subresource="",verb="LIST"} 9
"""


def result(case: str, column: str, seed: int = 1, **values: float) -> Result:
    run = Run("throughput", case, column, seed, {"period_ms": 1000})
    return Result(run, values, "d", {}, 1.0, run.command)


def test_a_load_is_what_its_name_says() -> None:
    assert loads.load("bulk-10x100@openb") == loads.Load("bulk", 10, 100, "openb")
    assert loads.load("vcjobs-2x3@10+backlog") == loads.Load("vcjobs", 2, 3, "10", backlog=True)


@pytest.mark.parametrize("case", ["gangs", "gangs-50x20", "teams-50x20@10", "gangs-50x20@some"])
def test_a_load_that_nobody_knows(case: str) -> None:
    with pytest.raises(UsageError, match="write KIND-JOBSxSIZE@NODES"):
        loads.load(case)


@pytest.mark.parametrize(
    ("case", "scheduler", "least"),
    [
        ("gangs-2x3@10", "volcano", [3, 3]),
        ("single-2x1@10", "volcano", [1, 1]),
        ("bulk-2x3@10", "volcano", [1, 1]),
        ("bare-2x3@10", "volcano", []),
        ("gangs-2x3@10", "kube", []),
        ("vcjobs-2x3@10", "raw", []),
    ],
)
def test_pod_groups_are_made_as_the_load_says(case: str, scheduler: str, least: list[int]) -> None:
    asked = loads.load(case)
    made = loads.made(asked, scheduler)
    assert [one["spec"]["minMember"] for one in made if one["kind"] == "PodGroup"] == least
    assert len(loads.names(made)) == asked.pods
    of = [one["metadata"]["annotations"].get("scheduling.k8s.io/group-name") for one in made if one["kind"] == "Pod"]
    assert set(of) == ({"j00000", "j00001"} if least else {None})


def test_volcano_jobs_are_whole_jobs() -> None:
    [job] = loads.made(loads.load("vcjobs-1x3@10"), "volcano")
    assert (job["kind"], job["spec"]["minAvailable"], job["spec"]["tasks"][0]["replicas"]) == ("Job", 3, 3)


def test_the_nodes_hold_all_pods() -> None:
    [node] = loads.nodes(loads.load("gangs-1x1@1"))
    assert node.cpu_milli / loads.POD_CPU == node.memory_mib / loads.POD_MEMORY == node.gpus == 16


def test_writes_are_counted_but_not_the_servers_own() -> None:
    assert costs.counted(METRICS) == {"pods": 21, "pods/binding": 20}
    assert costs.more({"pods": 20.0}, {"pods": 21.0, "events": 2.0, "nodes": 0.0}) == {"pods": 1.0, "events": 2.0}


def test_costs_of_this_process() -> None:
    assert 0 < costs.processor_s(os.getpid()) <= time.process_time() < costs.processor_s(os.getpid())
    assert costs.peak_mib(os.getpid()) > 5


def test_the_plan_is_short_unless_all_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput.configurations, "period_ms", lambda name: 1000)
    short, full = throughput.plan(False), throughput.plan(True)
    assert full[: len(short)] == short
    assert len({run.id for run in full}) == len(full)
    assert all(loads.load(run.case).pods <= 1000 for run in short)


def test_the_rate_is_held_against_binds_of_the_same_number_of_pods() -> None:
    found = throughput.figures(
        [
            result("gangs-2x5@10", "ours", pods_per_s=50, scheduler_ms=10, scheduler_mib=100),
            result("gangs-2x5@10", "raw", pods_per_s=200),
            result("single-10x1@10", "ours", pods_per_s=25),
            result("single-20x1@10", "ours", pods_per_s=25),
        ]
    )
    bounds = {one.id: one.bound for one in found}
    assert bounds["throughput.single-10x1@10.ours.pods_per_s"] == 200
    assert bounds["throughput.single-20x1@10.ours.pods_per_s"] is None
    assert bounds["throughput.gangs-2x5@10.ours.scheduler_mib"] == 1024
    text = throughput.section(found)
    assert "- `gangs-2x5@10`: Gangs: 2 × 5 pods, one PodGroup each; 10 nodes.\n" in text
    assert "| *limit* | 200 |" in text
