"""What the exporter may do is what it does; and what an object costs it."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

from exporter_objects import CONTRACT, GPU

from trainyard_agent.exporter import certificates, looking
from trainyard_dev.bench import exporter_cluster, exporter_load


def rules(kind: str) -> list[dict[str, Any]]:
    return next(one["rules"] for one in exporter_load.rights() if one["kind"] == kind)


def test_it_may_list_and_watch_exactly_what_it_reads() -> None:
    given = {
        (group, resource): sorted(rule["verbs"])
        for rule in rules("ClusterRole")
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched = {}
    for source in looking.sources(CONTRACT["nodePools"], (GPU,), exporter_load.kinds()):
        parts = source.path.strip("/").split("/")
        watched["" if parts[0] == "api" else parts[1], parts[-1]] = ["list", "watch"]
    assert given == watched | {("admissionregistration.k8s.io", kind): ["list"] for kind in certificates.KINDS}


def test_it_may_read_two_objects_by_their_names_and_no_secret() -> None:
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in rules("Role")] == [
        (["cronjobs"], ["trainyard-backup"], ["get"]),
        (["configmaps"], ["trainyard-keys"], ["get"]),
    ]


def test_a_pod_is_kept_in_two_kilobytes_whatever_it_holds() -> None:
    """Loosely: the bench measures the program."""
    source = next(
        one for one in looking.sources(CONTRACT["nodePools"], (GPU,), exporter_load.kinds()) if one.name == "pods"
    )
    teams = [f"team-{number}" for number in range(20)]

    def pods(begin: int) -> list[Any]:
        return [exporter_cluster._pod(number, teams, 500) for number in range(begin, begin + 500)]

    for one in pods(0):
        one["metadata"]["creationTimestamp"] = exporter_cluster.AT
        source.read(one)
    raw = pods(1000)
    gc.collect()
    tracemalloc.start()
    kept = []
    while raw:
        one = raw.pop()
        kept.append(source.read({**one, "metadata": {**one["metadata"], "creationTimestamp": exporter_cluster.AT}}))
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == 500
    assert size / len(kept) < 2048
