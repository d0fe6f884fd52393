"""The store's series: given to the token of the one user who may have them, and to no other."""

import json
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from minio.error import MinioAdminException, S3Error

from trainyard_agent.store import connect, store_metrics
from trainyard_agent.store.connect import Access

KEYS = {"METRICS_ACCESS_KEY": "METRICS0ABCDEFGHIJK", "METRICS_SECRET_KEY": "a-secret-for-series-only"}


def asked(to: Access, path: str, token: str) -> tuple[int, str]:
    """Status and text of an answer."""
    request = urllib.request.Request(
        f"{to.endpoint}{path}", headers={"Authorization": f"Bearer {token}"} if token else {}
    )
    context = ssl.create_default_context(cadata=to.ca) if to.ca else None
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def key(server: Any, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Access:
    """The user of series, as the setup job makes it."""
    for name, value in {**KEYS, "METRICS_ENDPOINT": server.root.endpoint, "METRICS_CA": server.root.ca}.items():
        monkeypatch.setenv(name, value)
    store_metrics.ensure()
    store_metrics.ensure()  # as the next upgrade does
    return connect.access(store_metrics.PREFIX)


def test_its_token_gets_the_series_and_its_key_nothing(key: Access) -> None:
    answers = {path: asked(key, path, store_metrics.token(key, time.time())) for path in store_metrics.PATHS.values()}
    assert {code for code, _ in answers.values()} == {200}
    assert "minio_cluster_" in answers[store_metrics.PATHS["minio"]][1]
    with pytest.raises(S3Error) as refused:
        list(connect.client(key).list_objects("runs"))
    assert refused.value.code == "AccessDenied"
    with pytest.raises(MinioAdminException):
        connect.admin(key).user_list()


def test_nobody_else_gets_them(key: Access, environment: dict[str, str]) -> None:
    platform = Access(key.endpoint, environment["S3_ACCESS_KEY"], environment["S3_SECRET_KEY"], ca=key.ca)
    forged = Access(key.endpoint, key.user, "not-its-secret", ca=key.ca)
    late = store_metrics.token(key, time.time() - 2 * store_metrics.LASTS_S)
    tokens = ["", store_metrics.token(platform, time.time()), store_metrics.token(forged, time.time()), late]
    assert [asked(key, store_metrics.PATHS["minio"], token)[0] for token in tokens] == [403] * 4


def test_a_former_key_ends(key: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICS_ACCESS_KEY", "METRICS1ABCDEFGHIJK")
    store_metrics.ensure()
    assert asked(key, store_metrics.PATHS["minio"], store_metrics.token(key, time.time()))[0] == 403


def test_prometheus_is_told_whom_to_ask(key: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_metrics.write(tmp_path)
    jobs = json.loads((tmp_path / "minio.yaml").read_text())["scrape_configs"]
    assert {job["static_configs"][0]["targets"][0] for job in jobs} == {key.host}
    assert {job["authorization"]["credentials_file"] for job in jobs} == {str(tmp_path / "token")}
    monkeypatch.delenv("METRICS_ACCESS_KEY")
    (tmp_path / "none").mkdir()
    store_metrics.write(tmp_path / "none")
    assert list((tmp_path / "none").iterdir()) == []
