"""Throughput: loads by name, costs read from programs, and the page made from figures."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trainyard.errors import UsageError
from trainyard_dev.bench import ablations, costs, loads, profiles, throughput
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.results import Result, Run

TOP = """\
Showing nodes accounting for 12.30s, 100% of 12.30s total
      flat  flat%   sum%        cum   cum%
         0     0%     0%      2.59s 21.06%  runtime.gcBgMarkWorker
     0.12s  0.98% 46.75%      2.26s 18.37%  runtime.mallocgc
     0.10s  0.81% 54.9%  2.48s 20.16%  volcano.sh/volcano/pkg/scheduler/util.(*predicateHelper).PredicateNodes.func1
"""
METRICS = """\
apiserver_request_total{code="201",component="apiserver",resource="pods",subresource="",verb="POST"} 20
apiserver_request_total{code="409",component="apiserver",resource="pods",subresource="",verb="POST"} 1
apiserver_request_total{code="201",component="apiserver",resource="pods",subresource="binding",verb="POST"} 20
apiserver_request_total{code="200",component="apiserver",resource="leases",subresource="",verb="PUT"} 7
apiserver_request_total{code="200",component="apiserver",resource="pods",subresource="",verb="LIST"} 9
"""


def result(case: str, column: str, seed: int = 1, **values: float) -> Result:
    run = Run("throughput", case, column, seed, {"period_ms": 1000})
    return Result(run, values, {"bound": [[1.0, 10.0], [2.0, 20.0]]}, "d", {}, 1.0, run.command)


@pytest.mark.parametrize("case", ["gangs-50x20@1000", "bulk-10x100@openb", "vcjobs-2x3@10+backlog"])
def test_a_load_has_the_name_that_it_is_made_from(case: str) -> None:
    assert loads.load(case).case == case


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


def test_shares_of_a_profile() -> None:
    shares = profiles.shares(TOP)
    assert (shares["collect"], shares["allocate"], shares["filter"], shares["bind"]) == (21.06, 18.37, 20.16, 0)


def test_each_knob_changes_what_it_says_and_nothing_is_lost() -> None:
    config = "configurations: [{name: allocate}]\ntiers:\n- plugins: [{name: predicates}, {name: nodeorder}]\n"
    baseline = Configuration("ours", "ours", "volcano", config, (ablations.ALL_NODES, "--x"), env=(("GOGC", "300"),))
    changed = {name: ablations.column(name, baseline) for name in ablations.NAMES}
    assert "nodeaffinity.weight: 0" in changed["ours-affinity0"].config
    assert "predicate.VolumeZoneEnable: false" in changed["ours-volumes0"].config
    assert "configurations" not in changed["ours-errorcache"].config
    assert changed["ours-some-nodes"].flags == ("--x",)
    assert changed["ours-go-default"].env == ()
    same = [name for name, one in changed.items() if one.digest == baseline.digest]
    assert same == list(ablations.PERIODS_MS)


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
    assert "### `gangs-2x5@10`\n\nGangs: 2 × 5 pods, one PodGroup each; 10 nodes.\n" in text
    assert "`ours` reaches 25 % of the rate of `raw`: as many pods on the same nodes." in text
    assert "benchmarks/throughput-gangs-2x5-10.svg" in text
    assert "One change" not in text


def test_ablations_and_profile_have_tables_of_their_own(tmp_path: Path) -> None:
    case = "gangs-2x5@10+backlog"
    results = [
        result(case, "ours", scheduler_ms=10, profile_filter=40, profile_collect=5),
        result(case, "ours-affinity0", scheduler_ms=8),
    ]
    text = throughput.section(throughput.figures(results))
    assert "| filtering nodes | 40 |" in text
    assert "| `ours-affinity0`: preferred node affinity not scored | 8 | -20 % |" in text
    assert text.count("`ours-affinity0`") == 1
    throughput.draw([], results, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["throughput-gangs-2x5-10-backlog.svg"]
