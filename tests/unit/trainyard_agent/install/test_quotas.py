"""Quotas of kinds from CRDs: made again until Kubernetes counts them, and never left where it does not."""

from typing import Any

import pytest

from trainyard_agent.api import Api, ApiError
from trainyard_agent.clock import Clock
from trainyard_agent.install import quotas
from trainyard_agent.say import PlatformError

QUOTA: dict[str, Any] = {
    "metadata": {"name": "team-kinds", "namespace": "vision"},
    "spec": {"hard": {"count/jobs.batch.volcano.sh": "100", "count/workflows.argoproj.io": "100"}},
}


class Cluster(Api):
    """Quotas in memory; their controller knows Volcano's kind, and Argo's from the `learns`th quota on."""

    def __init__(self, learns: int) -> None:
        self.made, self.learns = 0, learns
        self.quota: dict[str, Any] | None = None

    def apply(self, path: str, obj: dict[str, Any], *, manager: str, dry_run: bool = False) -> dict[str, Any]:
        if self.quota is None:
            self.made += 1
        known = {name: "0" for name in obj["spec"]["hard"] if "volcano" in name or self.made >= self.learns}
        self.quota = {**obj, "status": {"hard": obj["spec"]["hard"], "used": known}}
        return self.quota

    def call(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        assert (method, path) == ("DELETE", "/api/v1/namespaces/vision/resourcequotas/team-kinds")
        self.quota = None
        return {}

    def get(self, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
        if path.endswith("/team-counts"):
            return {"metadata": {"uid": "u-1"}}
        if self.quota is None:
            raise ApiError(404, "not found")
        return self.quota


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "FIGURES_S", 0.0)


def test_a_quota_that_is_counted_stays() -> None:
    cluster = Cluster(learns=1)
    quotas.apply_all(cluster, [QUOTA], Clock(5))
    assert cluster.made == 1 and cluster.quota is not None
    [owner] = cluster.quota["metadata"]["ownerReferences"]  # an uninstallation takes the one, Kubernetes the other
    assert (owner["name"], owner["uid"]) == ("team-counts", "u-1")


def test_a_quota_of_a_kind_that_is_not_known_yet_is_made_anew(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(learns=3)
    quotas.apply_all(cluster, [QUOTA], Clock(30))
    assert cluster.made == 3 and cluster.quota is not None
    assert "workflows.argoproj.io are not counted yet" in capsys.readouterr().out


def test_a_quota_that_is_never_counted_does_not_stay_and_is_told() -> None:
    cluster = Cluster(learns=1000)
    with pytest.raises(PlatformError, match=r"quota of vision: workflows\.argoproj\.io are not counted yet"):
        quotas.apply_all(cluster, [QUOTA], Clock(1))
    assert cluster.quota is None
