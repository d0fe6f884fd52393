"""URIs, retries and both kinds of store of the trainers."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mnist import store
from mnist.errors import TrainError
from trainyard.paths import ROOT

S3_ENV = {"S3_ENDPOINT": "http://minio:9000", "S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "b"}


class FakeError(Exception):
    """An error with a code, like the S3 client's."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class FakeAnswer:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def read(self) -> bytes:
        return self.body

    def close(self) -> None: ...

    def release_conn(self) -> None: ...


class FakeClient:
    """An S3 client over a dict that first raises the given errors, one a call."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.objects: dict[tuple[str, str], bytes] = {}
        self.calls = 0

    def _maybe_fail(self) -> None:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)

    def get_object(self, bucket: str, key: str) -> FakeAnswer:
        self._maybe_fail()
        if (bucket, key) not in self.objects:
            raise FakeError("NoSuchKey")
        return FakeAnswer(self.objects[bucket, key])

    def put_object(self, bucket: str, key: str, stream: Any, length: int) -> None:
        self._maybe_fail()
        self.objects[bucket, key] = stream.read(length)


def s3(client: FakeClient) -> store.S3Store:
    return store.S3Store("s3://runs/a", store.Location("runs", "a"), client, sleep=lambda _: None)


@pytest.mark.parametrize(
    ("uri", "bucket", "path"),
    [
        ("s3://datasets/mnist", "datasets", "mnist"),
        ("s3://datasets/a/b/", "datasets", "a/b"),
        ("s3://datasets", "datasets", ""),
        ("/data/mnist/", "", "/data/mnist"),
        ("file:///data", "", "/data"),
        ("data", "", "data"),
        ("/", "", "/"),
    ],
)
def test_parse_uri(uri: str, bucket: str, path: str) -> None:
    assert store.parse_uri(uri) == store.Location(bucket, path)


@pytest.mark.parametrize("uri", ["", " ", "s3://", "s3:///key", "gs://bucket/x", "https://host/x"])
def test_parse_uri_refuses(uri: str) -> None:
    with pytest.raises(TrainError):
        store.parse_uri(uri)


@pytest.mark.parametrize(
    ("endpoint", "host", "secure"),
    [
        ("http://minio:9000", "minio:9000", False),
        ("https://s3.example/", "s3.example", True),
        ("s3:443", "s3:443", True),
    ],
)
def test_parse_endpoint(endpoint: str, host: str, secure: bool) -> None:
    assert store.parse_endpoint(endpoint) == (host, secure)


@pytest.mark.parametrize("endpoint", ["", "ftp://x", "http://minio:9000/path", "http://"])
def test_parse_endpoint_refuses(endpoint: str) -> None:
    with pytest.raises(TrainError, match="S3_ENDPOINT"):
        store.parse_endpoint(endpoint)


def test_missing_keys_are_named() -> None:
    with pytest.raises(TrainError, match="S3_ACCESS_KEY and S3_SECRET_KEY not set"):
        store.open_store("s3://runs/a", {"S3_ENDPOINT": "http://minio:9000"})


def test_directory_store_replaces_whole_files(tmp_path: Path) -> None:
    place = store.open_store(f"file://{tmp_path}/runs")
    assert place.put("x/metrics.json", b"one") == f"{tmp_path}/runs/x/metrics.json"
    place.put("x/metrics.json", b"two")
    assert place.get("x/metrics.json") == b"two"
    assert [entry.name for entry in (tmp_path / "runs/x").iterdir()] == ["metrics.json"], "no part file is left"


def test_directory_store_says_what_it_can_not_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainError, match="can't be written"):
        store.open_store(str(tmp_path / "file")).put("x", b"")


def test_s3_retries_what_may_pass() -> None:
    client = FakeClient(ConnectionError("reset"), FakeError("SlowDown"), FakeError("InternalError"))
    assert s3(client).put("m.json", b"body") == "s3://runs/a/m.json"
    assert client.objects == {("runs", "a/m.json"): b"body"}, "the body is whole although the first tries read it"
    assert client.calls == 4


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchBucket", "SignatureDoesNotMatch"])
def test_s3_gives_up_at_once_when_it_is_refused(code: str) -> None:
    client = FakeClient(FakeError(code))
    with pytest.raises(TrainError, match=code):
        s3(client).get("x")
    assert client.calls == 1


def test_s3_waits_as_long_as_argo_does_then_gives_up() -> None:
    client, slept = FakeClient(*[ConnectionError("refused")] * 200), []
    place = store.S3Store("s3://runs/a", store.Location("runs", "a"), client, sleep=slept.append)
    with pytest.raises(TrainError, match=r"s3://runs/a/x: can't be read \(ConnectionError\)"):
        place.get("x")
    argo = yaml.safe_load((ROOT / "charts/argo/values.yaml").read_text())
    assert argo["executor"]["storeOutageSeconds"] <= sum(slept) < 620


def test_s3_outlasts_two_minutes_without_the_store() -> None:
    client, slept = FakeClient(*[ConnectionError("refused")] * 18), []
    client.objects["runs", "a/x"] = b"body"
    place = store.S3Store("s3://runs/a", store.Location("runs", "a"), client, sleep=slept.append)
    assert place.get("x") == b"body"
    assert sum(slept) > 115


def test_s3_does_not_repeat_a_mistake_of_the_program() -> None:
    client = FakeClient(TypeError("wrong"))
    with pytest.raises(TrainError, match="TypeError"):
        s3(client).get("x")
    assert client.calls == 1


def test_put_checked_reports_size_and_digest() -> None:
    facts = store.put_checked(s3(FakeClient()), "checkpoint.pt", b"abc")
    assert facts["bytes"] == 3
    assert str(facts["sha256"]).startswith("ba7816bf")


def test_put_checked_refuses_a_changed_copy() -> None:
    class Lossy(FakeClient):
        def put_object(self, bucket: str, key: str, stream: Any, length: int) -> None:
            self.objects[bucket, key] = b""

    with pytest.raises(TrainError, match="differs"):
        store.put_checked(s3(Lossy()), "checkpoint.pt", b"abc")


def test_s3_client_speaks_plain_http_only_when_told() -> None:
    pytest.importorskip("minio")
    assert store.s3_client(S3_ENV)._base_url.is_https is False
    assert store.s3_client({**S3_ENV, "S3_ENDPOINT": "minio:9000"})._base_url.is_https is True
