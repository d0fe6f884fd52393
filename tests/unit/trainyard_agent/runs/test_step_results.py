"""Results of steps that the janitor removes from Argo's caches."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from trainyard_agent.api import ApiError
from trainyard_agent.runs import janitor, step_results
from trainyard_agent.say import PlatformError

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
SINCE = NOW - timedelta(hours=720)


def entry(hours: int) -> str:
    """A result that was last asked for so many hours ago, as Argo keeps it."""
    hit = (NOW - timedelta(hours=hours)).isoformat().replace("+00:00", "Z")
    return json.dumps({"nodeID": "line-1", "outputs": {}, "creationTimestamp": hit, "lastHitTimestamp": hit})


class Cluster:
    """An API with a few ConfigMaps that are caches; `fails[name]` is the status with which a change ends."""

    def __init__(self, **caches: dict[str, str]) -> None:
        self.caches = {
            name: {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "7"}, "data": data}
            for name, data in caches.items()
        }
        self.fails: dict[str, int] = {}
        self.namespace = "trainyard-system"

    def get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        assert path == "/api/v1/namespaces/trainyard-system/configmaps"
        assert query["labelSelector"] == "workflows.argoproj.io/configmap-type=Cache"
        begin, names = query.get("continue", ""), sorted(self.caches)
        page = [name for name in names if name >= begin][: int(query["limit"])]
        rest = [name for name in names if page and name > page[-1]]
        items = [json.loads(json.dumps(self.caches[name])) for name in page]
        return {"metadata": {"continue": rest[0] if rest else ""}, "items": items}

    def call(self, method: str, path: str, body: dict[str, Any]) -> None:
        name = path.rpartition("/")[2]
        if name in self.fails:
            raise ApiError(self.fails[name], "it may not")
        if method == "DELETE":
            assert body["preconditions"] == {"uid": f"u-{name}", "resourceVersion": "7"}
            del self.caches[name]
        else:
            assert (method, body["metadata"]["resourceVersion"]) == ("PUT", "7")
            self.caches[name] = body

    def clean(self) -> dict[str, list[str]]:
        step_results.clean(self, "trainyard-system", SINCE)  # type: ignore[arg-type]
        return {name: sorted(one["data"]) for name, one in self.caches.items()}


def test_what_nothing_asked_for_goes_and_an_empty_cache_with_it() -> None:
    cluster = Cluster(both={"old": entry(721), "new": entry(719)}, old={"k": entry(10_000)}, new={"k": entry(0)})
    assert cluster.clean() == {"both": ["new"], "new": ["k"]}


def test_all_caches_of_many_are_looked_at() -> None:
    cluster = Cluster(**{f"c{number:02}": {"old": entry(721), "new": entry(1)} for number in range(35)})
    assert cluster.clean() == {f"c{number:02}": ["new"] for number in range(35)}


def test_a_cache_that_is_just_being_made_stays() -> None:
    assert Cluster(made={}).clean() == {"made": []}


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"lastHitTimestamp": null}', '{"lastHitTimestamp": "soon"}'])
def test_what_argo_itself_cant_read_goes(text: str) -> None:
    assert Cluster(odd={"odd": text, "new": entry(1)}).clean() == {"odd": ["new"]}


def test_a_cache_that_changes_meanwhile_is_left_and_others_are_cleaned() -> None:
    cluster = Cluster(busy={"k": entry(721)}, gone={"k": entry(721)}, old={"k": entry(721)})
    cluster.fails = {"busy": 409, "gone": 404}
    assert cluster.clean() == {"busy": ["k"], "gone": ["k"]}


def test_a_refusal_is_said_with_its_cache_and_others_are_cleaned() -> None:
    cluster = Cluster(a={"k": entry(721)}, b={"k": entry(721)})
    cluster.fails = {"a": 403}
    with pytest.raises(PlatformError, match=r"caches were not cleaned: a \(it may not\)"):
        cluster.clean()
    assert list(cluster.caches) == ["a"]


@pytest.mark.parametrize(("text", "hours"), [("720h", 720), ("1h30m", 1.5), ("90m", 1.5), ("3600s", 1)])
def test_durations_are_read_as_go_writes_them(text: str, hours: float) -> None:
    assert step_results.duration(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "720", "3 days", "h", "1h30"])
def test_what_is_no_duration_is_said(text: str) -> None:
    with pytest.raises(PlatformError, match=r"invalid duration .*: write hours, minutes and seconds"):
        step_results.duration(text)


def test_the_janitor_cleans_caches_where_a_team_could_not_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(old={"k": entry(721)})
    contract = tmp_path / "contract.json"
    contract.write_text(json.dumps({"teams": [{"name": "vision"}]}))

    def look(self: janitor.Janitor, namespace: str) -> None:
        raise ApiError(403, "no list")

    monkeypatch.setattr(janitor, "Api", lambda: cluster)
    monkeypatch.setattr(janitor.Janitor, "look", look)
    with pytest.raises(PlatformError, match=r"claims were not looked at in vision \(no list\)"):
        janitor.run(str(contract), "batch/v1/jobs", timedelta(hours=720))
    assert cluster.caches == {}
