"""The claim for backups: made once, and left alone afterwards."""

from typing import Any

import pytest

from trainyard_agent.api import ApiError
from trainyard_agent.install import claim
from trainyard_agent.say import PlatformError


class FakeApi:
    """Takes one request; answers with `status` when that is an error."""

    namespace = "trainyard-system"

    def __init__(self, status: int) -> None:
        self.status, self.sent = status, list[Any]()

    def call(self, method: str, path: str, body: dict[str, Any]) -> None:
        self.sent.append((method, path, body))
        if self.status:
            raise ApiError(self.status, "the server's reason")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> FakeApi:
    made = FakeApi(getattr(request, "param", 0))
    monkeypatch.setattr(claim, "Api", lambda: made)
    return made


@pytest.mark.parametrize("storage_class", ["fast", ""])
def test_it_is_made(api: FakeApi, storage_class: str) -> None:
    assert claim.run("trainyard-backup", "5Gi", storage_class) == 0
    method, path, body = api.sent[0]
    assert (method, path) == ("POST", "/api/v1/namespaces/trainyard-system/persistentvolumeclaims")
    assert body["spec"]["resources"] == {"requests": {"storage": "5Gi"}}
    assert body["spec"].get("storageClassName", "") == storage_class


@pytest.mark.parametrize("api", [409], indirect=True)
def test_one_that_is_there_stays(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert claim.run("trainyard-backup", "5Gi", "") == 0
    assert "claim trainyard-backup exists" in capsys.readouterr().out


@pytest.mark.parametrize("api", [403], indirect=True)
def test_refusal_is_reported(api: FakeApi) -> None:
    with pytest.raises(PlatformError, match="claim trainyard-backup was not created: the server's reason"):
        claim.run("trainyard-backup", "5Gi", "")
