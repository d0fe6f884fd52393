"""Setup's work on queues and teams, with a fake API server that refuses requests as Volcano and Kubernetes do."""

import itertools
from typing import Any

import pytest

from trainyard_agent.api import Api, ApiError
from trainyard_agent.clock import Clock
from trainyard_agent.install import queues, teams
from trainyard_agent.say import PlatformError

LABEL = "trainyard.io/applied-by=trainyard"
DENIED = 'admission webhook "validatequeue.volcano.sh" denied the request: '


def queue(name: str, parent: str = "root", **spec: Any) -> dict[str, Any]:
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent, **spec}}


class Cluster(Api):
    """Queues, PodGroups, namespaces, accounts and volumes in memory."""

    def __init__(self) -> None:
        self.queues: dict[str, dict[str, Any]] = {}
        self.podgroups: list[dict[str, Any]] = []
        self.namespaces: dict[str, dict[str, Any]] = {}
        self.accounts: dict[str, bool | None] = {}
        self.volumes: list[dict[str, Any]] = []
        self.trouble: list[ApiError] = []  # answers of the next applications, before the real ones
        self.lingers = 0  # looks for which a deleted namespace is still there

    def apply(self, path: str, obj: dict[str, Any], *, manager: str, dry_run: bool = False) -> dict[str, Any]:
        if self.trouble:
            raise self.trouble.pop(0)
        parent, name = obj["spec"]["parent"], obj["metadata"]["name"]
        if parent != "root" and parent not in self.queues:
            raise ApiError(400, f'{DENIED}failed to get parent queue of queue {name}: queue "{parent}" not found')
        siblings = [q for q in self.queues.values() if q["spec"]["parent"] == parent and q["metadata"]["name"] != name]
        limit = self.queues.get(parent, {}).get("spec", {}).get("deserved", 10**9)
        if sum(q["spec"].get("deserved", 0) for q in [*siblings, obj]) > limit:
            raise ApiError(400, f"{DENIED}parent queue {parent} validation failed: sum of children's deserved exceeds")
        self.queues[name] = obj
        return obj

    def call(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        name = path.rsplit("/", 1)[1]
        assert method == "DELETE"
        if "/queues/" in path:
            if any(q["spec"]["parent"] == name for q in self.queues.values()):
                raise ApiError(400, f"{DENIED}queue {name} can not be deleted because it has 1 child queues")
            del self.queues[name]
        else:
            self.namespaces[name]["metadata"]["deletionTimestamp"] = "now"
        return {}

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        if path == queues.QUEUES:
            return {"items": list(self.queues.values())}
        if path == queues.PODGROUPS:
            return {"items": self.podgroups}
        if path == teams.NAMESPACES:
            return {"items": list(self.namespaces.values())}
        if path == "/api/v1/persistentvolumes":
            return {"items": self.volumes}
        if path.endswith("/serviceaccounts/default"):
            team = path.split("/")[4]
            if team not in self.accounts:
                raise ApiError(404, 'serviceaccounts "default" not found')
            held = self.accounts[team]
            return {} if held is None else {"automountServiceAccountToken": held}
        name = path.rsplit("/", 1)[1]
        self.lingers -= 1
        if self.lingers < 0:
            raise ApiError(404, f'namespaces "{name}" not found')
        condition = {"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources remain: pods."}
        return {"status": {"conditions": [condition]}}

    def merge(self, path: str, patch: dict[str, Any], *, manager: str) -> dict[str, Any]:
        self.accounts[path.split("/")[4]] = patch["automountServiceAccountToken"]
        return {}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading of the clock is a second later, and nothing sleeps."""
    clock = itertools.count(0.0, 1.0)
    for module in ("install.queues", "install.teams", "clock"):
        monkeypatch.setattr(f"trainyard_agent.{module}.time.monotonic", lambda: next(clock))
        monkeypatch.setattr(f"trainyard_agent.{module}.time.sleep", lambda _: None)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_children_wait_for_their_parents(cluster: Cluster) -> None:
    wanted = [queue("vision", "research"), queue("research", "science"), queue("science")]
    assert queues.apply_all(cluster, wanted, Clock(60)) == []
    assert list(cluster.queues) == ["science", "research", "vision"]


def test_absent_admission_is_waited_for(cluster: Cluster) -> None:
    cluster.trouble = [ApiError(500, "failed calling webhook: connection refused"), ApiError(0, "did not answer")]
    assert queues.apply_all(cluster, [queue("vision")], Clock(60)) == []
    assert "vision" in cluster.queues


def test_admission_that_never_answers_is_named(cluster: Cluster) -> None:
    cluster.trouble = [ApiError(500, "failed calling webhook: connection refused")] * 100
    with pytest.raises(PlatformError, match=r"gave up.*queue vision waits: failed calling webhook"):
        queues.apply_all(cluster, [queue("vision")], Clock(20))


def test_queue_that_the_api_server_refuses_ends_at_once(cluster: Cluster) -> None:
    cluster.trouble = [ApiError(422, "spec.weight: Invalid value")]
    with pytest.raises(PlatformError, match=r"queue vision is refused: spec\.weight"):
        queues.apply_all(cluster, [queue("vision")], Clock(60))


def test_share_of_a_removed_team_is_free_for_the_next_one(cluster: Cluster) -> None:
    cluster.queues = {"science": queue("science", deserved=8), "old": queue("old", "science", deserved=8)}
    wanted = [queue("science", deserved=8), queue("new", "science", deserved=8)]
    refused = queues.apply_all(cluster, wanted, Clock(60))
    assert [obj["metadata"]["name"] for obj in refused] == ["new"]
    queues.prune(cluster, LABEL, {"science", "new"}, Clock(60))
    queues.must_apply(cluster, refused, Clock(60))
    assert set(cluster.queues) == {"science", "new"}


def test_share_that_never_fits_is_reported_in_volcanos_words(cluster: Cluster) -> None:
    cluster.queues = {"science": queue("science", deserved=4)}
    with pytest.raises(PlatformError, match="Volcano refuses queue new: parent queue science validation failed"):
        queues.must_apply(cluster, [queue("new", "science", deserved=8)], Clock(60))


def test_children_are_pruned_before_their_parents(cluster: Cluster) -> None:
    cluster.queues = {"science": queue("science"), "old": queue("old", "science"), "kept": queue("kept")}
    queues.prune(cluster, LABEL, {"kept"}, Clock(60))
    assert set(cluster.queues) == {"kept"}


def test_queue_in_use_stays_and_is_named(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.queues = {"old": queue("old"), "done": queue("done")}
    meta = {"namespace": "speech", "name": "job-1"}
    cluster.podgroups = [
        {"metadata": meta, "spec": {"queue": "old"}, "status": {"phase": "Running"}},
        {"metadata": meta, "spec": {"queue": "done"}, "status": {"phase": "Completed"}},
    ]
    queues.prune(cluster, LABEL, set(), Clock(600))
    assert set(cluster.queues) == {"old"}
    assert "queue old stays until the next upgrade: 1 jobs are in it, speech/job-1" in capsys.readouterr().out


def test_accounts_are_closed_once(cluster: Cluster) -> None:
    cluster.accounts = {"vision": None, "speech": False}
    teams.close_accounts(cluster, ["vision", "speech"], Clock(60))
    assert cluster.accounts == {"vision": False, "speech": False}


def test_account_that_never_comes_is_named() -> None:
    with pytest.raises(PlatformError, match=r'service account of team vision.*"default" not found'):
        teams.close_accounts(Cluster(), ["vision"], Clock(20))


def volume(claim: str, policy: str, **spec: Any) -> dict[str, Any]:
    ref = {"namespace": "old", "name": claim}
    spec |= {"claimRef": ref, "persistentVolumeReclaimPolicy": policy}
    return {"metadata": {"name": f"pv-{claim}"}, "spec": spec}


def test_removed_team_loses_its_namespace_and_keeps_its_data(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.namespaces = {name: {"metadata": {"name": name}} for name in ("old", "vision")}
    nfs = {"server": "10.96.0.49", "path": "/shared/old/workspace"}
    cluster.volumes = [
        volume("workspace", "Retain", nfs=nfs),
        volume("runs", "Delete", storageClassName="trainyard-shared"),
        volume("scratch", "Delete", storageClassName="local"),
        volume("shared", "Retain", nfs={"server": "x", "path": "/shared/common", "readOnly": True}),
        volume("other", "Retain") | {"spec": {"claimRef": {"namespace": "vision", "name": "workspace"}}},
    ]
    plan = {"label": LABEL, "teams": ["vision"], "archive": "trainyard-shared"}
    buckets = [{"name": "raw-data", "teams": "read"}, {"name": "runs", "teams": "own"}]
    assert teams.remove(cluster, plan, buckets) == ["old"]
    assert "deletionTimestamp" in cluster.namespaces["old"]["metadata"]
    assert "deletionTimestamp" not in cluster.namespaces["vision"]["metadata"]
    said = [line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert said == [
        "team old was removed from the values: stopping its jobs and deleting its namespace",
        "kept: files of claim old/workspace at /shared/old/workspace on 10.96.0.49, volume pv-workspace",
        "kept: files of claim old/runs, archived beside their place",
        "lost: files of claim old/scratch, whose class local keeps nothing",
        "kept: s3://runs/old/",
    ]


def test_end_of_a_namespace_is_awaited(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.lingers = 3
    teams.await_removed(cluster, ["old"], Clock(60))
    assert "namespace and jobs are gone" in capsys.readouterr().out


def test_namespace_that_does_not_end_is_named_with_its_reason(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.lingers = 1000
    teams.await_removed(cluster, ["old"], Clock(20))
    assert "namespace old is still ending" in (said := capsys.readouterr().out)
    assert "Some resources remain: pods." in said
