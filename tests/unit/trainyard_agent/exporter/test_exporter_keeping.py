"""How the exporter keeps up with the API server: pages, changes, and what goes wrong on the way."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from exporter_objects import pod

from trainyard_agent.api import ApiError
from trainyard_agent.exporter import keeping
from trainyard_agent.exporter.keeping import Informer, Source

PODS = "/api/v1/pods"


class Api:
    """An API server with pods, which returns them page by page and then the given events."""

    def __init__(self, pods: list[Any], largest: int = 10_000) -> None:
        self.pods, self.largest = pods, largest
        self.asked: list[dict[str, str]] = []
        self.fails: list[ApiError] = []
        self.streams: list[list[Any]] = []

    def call(self, method: str, path: str, *, query: dict[str, str], most: int) -> dict[str, Any]:
        self.asked.append(dict(query))
        if self.fails:
            raise self.fails.pop(0)
        limit, begin = int(query["limit"]), int(query.get("continue") or 0)
        if limit > self.largest:
            raise ApiError(413, "too large")
        more = str(begin + limit) if begin + limit < len(self.pods) else ""
        return {"kind": "PodList", "apiVersion": "v1", "items": self.pods[begin : begin + limit],
                "metadata": {"continue": more, "resourceVersion": "7"}}  # fmt: skip

    def lines(self, path: str, query: dict[str, str], *, timeout: float) -> Iterator[str]:
        self.asked.append(dict(query))
        for event in self.streams.pop(0) if self.streams else []:
            if isinstance(event, ApiError):
                raise event
            yield json.dumps(event)


def kept_of(api: Api) -> Informer:
    def read(obj: Any) -> str:
        return str(obj["metadata"]["name"])

    return Informer(api, Source("pods", PODS, read), wall=lambda: 1000.0)  # type: ignore[arg-type]


def event(kind: str, obj: Any, version: str = "8") -> dict[str, Any]:
    return {"type": kind, "object": {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}}


def test_a_list_comes_in_pages_of_500() -> None:
    api = Api([pod(f"p{number}") for number in range(1100)])
    kept = kept_of(api)
    kept.list()
    assert len(kept.objects()) == 1100
    assert [(one["limit"], one.get("continue", "")) for one in api.asked] == [
        ("500", ""),
        ("500", "500"),
        ("500", "1000"),
    ]
    assert (kept.present, kept.seen, kept.settled.is_set()) == (True, 1000.0, True)


def test_pages_that_are_too_large_become_smaller() -> None:
    api = Api([pod(f"p{number}") for number in range(130)], largest=100)
    kept = kept_of(api)
    kept.list()
    assert len(kept.objects()) == 130
    assert [one["limit"] for one in api.asked] == ["500", "125", "31", "31", "31", "31", "31"]


def test_changes_are_taken_over_and_a_watch_goes_on_where_it_was() -> None:
    first, second = pod("first"), pod("second")
    api = Api([first])
    kept = kept_of(api)
    kept.list()
    bookmark = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "12"}}}
    api.streams = [[event("ADDED", second), event("DELETED", first, "9"), bookmark], []]
    kept.watch(threading.Event())
    assert kept.objects() == ["second"]
    kept.watch(threading.Event())
    assert [one["resourceVersion"] for one in api.asked[1:]] == ["7", "12"]
    assert all(one["allowWatchBookmarks"] == "true" for one in api.asked[1:])


class Stop(threading.Event):
    """Set after so many waits, which take no time."""

    def __init__(self, waits: int) -> None:
        super().__init__()
        self.left, self.waited = waits, list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout or 0.0)
        self.left -= 1
        if self.left <= 0:
            self.set()
        return self.is_set()


def test_a_version_that_is_gone_has_all_listed_anew() -> None:
    api = Api([pod("old")])
    kept = kept_of(api)
    gone = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version", "metadata": {}}}
    api.streams = [[gone]]
    kept.run(Stop(1))
    api.pods = [pod("new")]
    kept.run(Stop(1))
    assert kept.objects() == ["new"]


@pytest.mark.parametrize(("status", "says"), [(404, "the cluster has no such kind"), (403, "may not")])
def test_a_kind_that_is_absent_is_said_once_and_looked_for_each_minute(
    status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Api([pod("p")])
    api.fails = [ApiError(status, "may not"), ApiError(status, "may not")]
    kept, stop = kept_of(api), Stop(2)
    kept.run(stop)
    assert capsys.readouterr().out.count(f"pods: not counted: {says}") == 1
    assert kept.settled.is_set() and not kept.present and kept.objects() == []
    assert all(40 < pause < 80 for pause in stop.waited)
    kept.run(Stop(1))
    assert kept.present and kept.objects() == ["p"]


def test_a_server_that_does_not_answer_is_asked_less_and_less_and_what_was_known_stays() -> None:
    api = Api([pod("p")])
    kept = kept_of(api)
    kept.list()
    api.streams = [[ApiError(0, "refused")] for _ in range(4)]
    stop = Stop(4)
    kept.run(stop)
    assert kept.objects() == ["p"]
    assert [round(pause / (2**number)) for number, pause in enumerate(stop.waited)] == [1, 1, 1, 1]


def test_an_object_that_cannot_be_read_any_more_is_not_kept_as_it_was() -> None:
    kept = Informer(Api([]), Source("pods", PODS, lambda obj: 1 / obj["n"]), lambda: 0.0)  # type: ignore[arg-type]
    kept.source.read({"n": 1})
    broken = {"n": "x", "metadata": {"uid": "u", "resourceVersion": "2"}}
    kept._objects["u"] = 1.0
    kept.take({"type": "MODIFIED", "object": broken})
    assert kept.objects() == []


def test_pages_have_a_bound_in_bytes() -> None:
    assert keeping.LARGEST == 8 * 2**20
