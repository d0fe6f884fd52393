"""Teams' keys: pods that still use an old one, when it ends, and the error for unreadable notes."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from trainyard_agent.api import ApiError
from trainyard_agent.say import PlatformError
from trainyard_agent.store import key_ages, s3_keys
from trainyard_agent.store.accounts_keys import Key, fresh

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
KEEP = timedelta(days=7)
OWNER = "trainyard-team-vision"
OLD = Key(OWNER, "s" * 40)


class FakeStore:
    """A store that remembers keys and what was asked."""

    def __init__(self, *keys: str) -> None:
        self.keys, self.asked = set(keys), list[str]()

    def held(self) -> Mapping[str, frozenset[str]]:
        return {OWNER: frozenset(self.keys)}

    def give(self, owner: str, key: Key, policy: dict[str, Any]) -> None:
        self.keys.add(key.access)
        self.asked.append(f"give {key.access}")

    def take(self, owner: str, access: str) -> None:
        self.keys.discard(access)
        self.asked.append(f"take {access}")

    def drop(self, owner: str) -> None:
        raise AssertionError


class FakeApi:
    """One team's Secret, its pods, and the store's ConfigMap."""

    namespace = "trainyard-system"

    def __init__(self, key: Key | None = None, former: str = "") -> None:
        self.data: dict[str, str] = {}
        if key:
            self.data = {"access-key": _encoded(key.access), "secret-key": _encoded(key.secret)}
        self.notes = {s3_keys.FORMER: former} if former else {}
        self.pods: list[dict[str, Any]] = []
        self.transition = {"since": "0", "until": "0"}
        self.conflict = False

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        if path.endswith("/pods"):
            return {"items": self.pods if "/vision/" in path else []}
        if "/configmaps/" in path:
            return {"data": self.transition}
        return {"metadata": {"annotations": self.notes, "resourceVersion": "7"}, "data": self.data}

    def merge(self, path: str, patch: dict[str, Any], *, manager: str) -> dict[str, Any]:
        if self.conflict:
            raise ApiError(409, "the object has been modified")
        if "/configmaps/" in path:
            self.transition |= patch["data"]
            return {}
        assert patch["metadata"]["resourceVersion"] == "7"
        changed = self.notes | patch["metadata"].get("annotations", {})
        self.notes = {name: value for name, value in changed.items() if value is not None}
        self.data |= patch.get("data", {})
        return self.get(path)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def pod(name: str, made: datetime, spec: dict[str, Any] | None = None, phase: str = "Running") -> dict[str, Any]:
    env = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "trainyard-s3", "key": "access-key"}}}]
    return {
        "metadata": {"name": name, "creationTimestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "spec": spec or {"containers": [{"env": env}]},
        "status": {"phase": phase},
    }


def ensure(api: FakeApi, store: FakeStore, now: datetime = NOW, ca: str = "") -> str:
    s3_keys.ensure(api, store, "vision", {}, store.held(), keep=KEEP, ca=ca, now=lambda: now)  # type: ignore[arg-type]
    return base64.b64decode(api.data["access-key"]).decode()


def sweep(api: FakeApi, store: FakeStore, now: datetime) -> int:
    return s3_keys.sweep(api, lambda: store, ["vision"], now)  # type: ignore[arg-type]


EARLY, LATE = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
BY_VOLUME = {"volumes": [{"secret": {"secretName": "trainyard-s3"}}]}
BY_INIT = {"containers": [{}], "initContainers": [{"envFrom": [{"secretRef": {"name": "trainyard-s3"}}]}]}


@pytest.mark.parametrize(
    ("one", "holds"),
    [
        (pod("a", EARLY), True),
        (pod("a", EARLY, phase="Pending"), True),
        (pod("a", EARLY, phase="Unknown"), True),
        (pod("a", NOW + timedelta(seconds=90)), True),  # kubelet may have had the former Secret still
        (pod("a", EARLY, BY_VOLUME), True),
        (pod("a", EARLY, BY_INIT), True),
        (pod("a", EARLY, phase="Succeeded"), False),
        (pod("a", EARLY, phase="Failed"), False),
        (pod("a", EARLY, {"containers": [{"env": [{"name": "A", "value": "b"}]}]}), False),
        (pod("a", NOW + timedelta(seconds=150)), False),
    ],
)
def test_who_holds_a_former_key(one: dict[str, Any], holds: bool) -> None:
    assert s3_keys.holders([one], NOW) == (["a"] if holds else [])


def test_key_is_random_and_long() -> None:
    made = {fresh().access for _ in range(50)}
    assert len(made) == 50 and all(len(key) == 20 and key.isalnum() and key.isupper() for key in made)
    assert "secret" not in repr(Key("A", "secret"))


def test_new_key_opens_the_store_before_the_secret_names_it() -> None:
    api, store = FakeApi(OLD), FakeStore(OLD.access)
    api.conflict = True
    with pytest.raises(PlatformError, match="Secret trainyard-s3 of team vision can't be written: the object has been"):
        ensure(api, store)
    [half] = store.keys - {OLD.access}
    api.conflict = False
    key = ensure(api, store)
    assert store.keys == {key, OLD.access} and key != half, "the key of the failed attempt has ended"


def test_nothing_is_asked_of_the_store_while_no_key_is_former() -> None:
    api = FakeApi(Key("A" * 20, "s" * 40))
    assert s3_keys.sweep(api, lambda: pytest.fail("asked"), ["vision"], NOW) == 0  # type: ignore[arg-type]


def test_key_ends_when_its_last_pod_has_ended() -> None:
    api, store = FakeApi(OLD), FakeStore(OLD.access)
    ensure(api, store)
    api.pods = [pod("a", EARLY)]
    assert sweep(api, store, LATE) == 0 and OLD.access in store.keys
    api.pods = [pod("a", EARLY, phase="Succeeded"), pod("b", LATE)]
    assert sweep(api, store, LATE) == 1 and OLD.access not in store.keys
    assert api.notes == {key_ages.SINCE: NOW.isoformat()}


def test_key_stays_for_pods_that_are_just_starting() -> None:
    api, store = FakeApi(OLD), FakeStore(OLD.access)
    ensure(api, store)
    assert sweep(api, store, NOW + timedelta(seconds=60)) == 0 and OLD.access in store.keys
    assert sweep(api, store, NOW + timedelta(seconds=121)) == 1


def test_two_replaced_keys_end_each_in_its_time() -> None:
    api, store = FakeApi(OLD), FakeStore(OLD.access)
    first = ensure(api, store)
    api.notes[s3_keys.ROTATE] = "true"
    ensure(api, store, NOW + timedelta(days=2))
    api.pods = [pod("a", NOW + timedelta(days=1))]
    assert {one["key"] for one in json.loads(api.notes[s3_keys.FORMER])} == {OLD.access, first}
    assert sweep(api, store, NOW + timedelta(days=3)) == 1 and OLD.access not in store.keys and first in store.keys
    assert sweep(api, store, NOW + timedelta(days=9, hours=1)) == 1 and first not in store.keys


@pytest.mark.parametrize(
    "note", ["{", "[1]", '[{"key": "x"}]', '[{"key": "x", "since": "?", "until": "?"}]', '{"a": 1}']
)
def test_note_that_cannot_be_read_keeps_no_key_alive(note: str, capsys: pytest.CaptureFixture[str]) -> None:
    api, store = FakeApi(Key("A" * 20, "s" * 40), note), FakeStore("A" * 20, "x")
    ensure(api, store)
    assert store.keys == {"A" * 20}
    assert "its note trainyard.io/former-keys can't be read" in capsys.readouterr().out


def test_secret_gets_the_authority_of_the_store() -> None:
    api, store = FakeApi(Key("A" * 20, "s" * 40)), FakeStore("A" * 20)
    ensure(api, store, ca="PEM")
    assert api.data["ca.crt"] == _encoded("PEM")


def close(api: FakeApi, now: datetime) -> bool:
    return s3_keys.close_transition(api, "trainyard-minio-transition", ["vision"], now)  # type: ignore[arg-type]


def test_plain_connections_end_with_the_last_pod_that_needs_them(capsys: pytest.CaptureFixture[str]) -> None:
    api = FakeApi()
    api.transition = {"since": str(int(NOW.timestamp())), "until": str(int((NOW + KEEP).timestamp()))}
    api.pods = [pod("train-0", EARLY)]
    assert not close(api, LATE) and api.transition["until"] != "0"
    assert "also answers without TLS, because of vision/train-0" in capsys.readouterr().out
    api.pods = [pod("train-1", NOW + timedelta(minutes=30))]
    assert not close(api, NOW + timedelta(minutes=59))
    assert close(api, LATE) and api.transition["until"] == "0"


def test_plain_connections_need_nothing_where_there_are_none() -> None:
    assert close(FakeApi(), NOW)


def test_plain_connections_that_cannot_be_judged_are_reported() -> None:
    api = FakeApi()
    api.transition = {"since": "yesterday", "until": "later"}
    with pytest.raises(PlatformError, match="ConfigMap trainyard-minio-transition can't be used"):
        close(api, NOW)


def test_team_that_cannot_be_looked_at_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api, store = FakeApi(OLD), FakeStore(OLD.access)
    ensure(api, store, datetime.now(UTC) - timedelta(days=8))

    def get(path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        if "/gone/" in path:
            raise ApiError(404, 'namespaces "gone" not found')
        return FakeApi.get(api, path, query)

    monkeypatch.setattr(api, "get", get)
    monkeypatch.setattr(s3_keys, "Api", lambda: api)
    monkeypatch.setattr(s3_keys, "open_store", lambda contract: store)
    contract = tmp_path / "contract.json"
    contract.write_text(json.dumps({"teams": [{"name": "gone"}, {"name": "vision"}]}))
    with pytest.raises(PlatformError, match='team gone can\'t be read: namespaces "gone" not found'):
        s3_keys.run(str(contract), "")
    assert OLD.access not in store.keys
    assert "its time is up" in capsys.readouterr().out
    assert api.transition["vision"] == api.notes[key_ages.SINCE]  # published all the same


class KeyTimes:
    """The ConfigMap with the times of keys."""

    namespace = "trainyard-system"

    def __init__(self, **held: str) -> None:
        self.held, self.written = held, list[dict[str, str | None]]()

    def get(self, path: str) -> dict[str, Any]:
        assert path.endswith("/trainyard-system/configmaps/trainyard-keys")
        return {"data": self.held}

    def merge(self, path: str, patch: dict[str, Any], *, manager: str) -> None:
        self.written.append(patch["data"])


def test_times_of_keys_are_written_when_they_change_and_go_with_their_team() -> None:
    made = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
    assert key_ages.since(made) == "2026-01-01T00:00:00Z"
    made["metadata"]["annotations"] = {key_ages.SINCE: "2026-02-01T00:00:00Z"}  # type: ignore[assignment]
    assert key_ages.since(made) == "2026-02-01T00:00:00Z"
    api = KeyTimes(vision="2026-01-01T00:00:00Z", gone="2025-01-01T00:00:00Z", unread="2025-02-01T00:00:00Z")
    teams = ["vision", "unread"]
    key_ages.publish(api, {"vision": "2026-02-01T00:00:00Z"}, teams)  # type: ignore[arg-type]
    assert api.written == [{"vision": "2026-02-01T00:00:00Z", "gone": None}]
    api.held = {"vision": "2026-02-01T00:00:00Z"}
    key_ages.publish(api, {"vision": "2026-02-01T00:00:00Z"}, teams)  # type: ignore[arg-type]
    assert len(api.written) == 1
