"""The throughput bench on a small scale: every way to make pods comes to an end, and costs are counted."""

import pytest

from trainyard_dev.bench import throughput
from trainyard_dev.bench.harness import Harness
from trainyard_dev.bench.results import Run

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


@pytest.mark.parametrize(
    ("case", "column", "writes"),
    [
        ("gangs-2x5@10+backlog", "raw", 2.0),  # each pod and its binding
        ("gangs-2x5@10", "kube-default", 3.0),  # and an event
        ("gangs-2x5@10", "ours", 3.0),  # and PodGroups
        ("vcjobs-2x5@10", "ours", 3.0),
    ],
)
def test_all_pods_are_bound_and_counted(harness: Harness, case: str, column: str, writes: float) -> None:
    harness.clear()
    try:
        values = throughput.measure(Run("throughput", case, column, 1, {"period_ms": 50}), harness)
    finally:
        harness.server.call("DELETE", JOBS)
        harness.clear()
    assert values["pods_per_s"] > 0
    assert 0 <= values["wait_p50"] <= values["wait_p99"]
    assert values["writes_pods/binding"] == 1
    assert values["writes"] == writes if column == "raw" else values["writes"] >= writes
    assert values["scheduler_ms"] > 0
