"""The check of Prometheus' targets: missing ones are named, and expected ones follow components' entries."""

from trainyard import components
from trainyard_dev.e2e.checks import monitoring


def target(job: str, health: str = "up", error: str = "") -> dict[str, object]:
    return {"labels": {"job": job}, "health": health, "scrapeUrl": f"http://{job}", "lastError": error}


def test_every_endpoint_is_due_once_it_is_on_and_those_of_gpus_where_they_are_mock() -> None:
    named = {str(one["name"]) for one in components.endpoints()}
    on = monitoring.MORE
    assert monitoring.due("mock", *on) == named | {"apiserver", "cadvisor", "kubelet", "minio"}
    more = {str(one["name"]) for one in components.endpoints() if one["component"] in on}
    assert monitoring.due("mock", *on) - monitoring.due("mock") == more >= {"metrics-server", "login"}
    assert monitoring.due("mock") - monitoring.due("real") == {"dcgm"}
    assert set(monitoring.SERIES) <= monitoring.due("mock", *on)


def test_what_is_missing_is_said_with_its_reason() -> None:
    active = [target("a"), target("b", "down", "connection refused"), target("b"), target("c", "unknown")]
    assert monitoring.missing(active, {"a", "b", "c", "d"}) == [
        "d has no target",
        "b at http://b: connection refused",
        "c at http://c: not scraped yet",
    ]
    assert monitoring.missing(active[:1], {"a"}) == []
