"""A real MinIO that speaks TLS: platform and trainers check its certificate, and refuse another authority's."""

import http.client
import io
import secrets
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
import wire

from mnist import store as trainer
from mnist.errors import TrainError
from servers import env_of
from trainyard_agent.say import PlatformError
from trainyard_agent.store import buckets, connect
from trainyard_agent.store.connect import Access


@dataclass
class Authority:
    """A certificate authority and the folder with a server's certificate of it."""

    ca: str
    certs: Path


def authority(folder: Path) -> Authority:
    """As the chart makes it: a CA that signs one certificate for 127.0.0.1."""
    folder.mkdir()

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=test-ca")
    openssl("req", *key, "-keyout", "private.key", "-out", "csr", "-subj", "/CN=minio")
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1")
    openssl("x509", "-req", "-in", "csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-set_serial", "1", "-days", "2",
            "-out", "public.crt", "-extfile", "ext")  # fmt: skip
    (folder / "certs").mkdir()
    for name in ("public.crt", "private.key"):
        (folder / name).rename(folder / "certs" / name)
    return Authority((folder / "ca.crt").read_text(), folder / "certs")


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("right") / "ca")


@pytest.fixture(scope="module")
def server(right: Authority, launch: Callable[..., Any]) -> Any:
    """Takes the place of the shared server: everything of this module goes over TLS."""
    return launch(right.certs, right.ca)


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> str:
    return authority(tmp_path_factory.mktemp("wrong") / "ca").ca


def test_setup_job_works_over_tls(contract: dict[str, Any], clock: Any, environment: dict[str, str]) -> None:
    assert environment["S3_ENDPOINT"].startswith("https://")
    buckets.ensure(contract, clock)


@pytest.mark.parametrize("given", ["wrong", ""])
def test_platform_refuses_another_authority(server: Any, wrong: str, given: str) -> None:
    access = replace(server.root, ca=wrong if given else "")
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        connect.client(access, patient=False).list_buckets()
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        connect.admin(access).user_list()


def test_platform_says_when_the_authority_is_no_certificate(server: Any) -> None:
    with pytest.raises(PlatformError, match=r"ca.crt of the object store at https://.* is not a certificate"):
        connect.client(replace(server.root, ca="nonsense"))


def test_trainers_write_and_read_over_tls(
    server: Any, contract: dict[str, Any], clock: Any, environment: dict[str, str]
) -> None:
    buckets.ensure(contract, clock)
    place = trainer.open_store("s3://runs/vision/job", env_of(server.root))
    assert trainer.put_checked(place, "metrics.json", b"{}")["bytes"] == 2


def test_trainers_refuse_another_authority_at_once(server: Any, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = trainer.open_store("s3://runs/vision/job", env_of(replace(server.root, ca=wrong)))
    monkeypatch.setattr(place, "sleep", lambda seconds: pytest.fail("it tried again"))
    with pytest.raises(TrainError, match=r"certificate is not trusted.*S3_CA"):
        place.get("metrics.json")


def test_trainers_say_when_the_authority_is_no_certificate(server: Any) -> None:
    with pytest.raises(TrainError, match="S3_CA is not a certificate"):
        trainer.open_store("s3://runs/vision/job", env_of(replace(server.root, ca="nonsense")))


@pytest.fixture
def until(tmp_path: Path) -> Path:
    """The file that says how long the server of `going_over` also answers without TLS: an hour."""
    file = tmp_path / "until"
    file.write_text(str(int(time.time()) + 3600))
    return file


@pytest.fixture
def going_over(right: Authority, launch: Callable[..., Any], until: Path) -> Any:
    """A server that came to speak TLS while clients without it are at work."""
    return launch(right.certs, right.ca, TRAINYARD_PLAIN_UNTIL_FILE=str(until))


def without_tls(server: Any) -> Access:
    return replace(server.root, endpoint=server.root.endpoint.replace("https://", "http://"), ca="")


def test_both_kinds_of_clients_go_on_while_a_server_comes_to_speak_tls(going_over: Any) -> None:
    content = secrets.token_bytes(6 << 20)
    going_over.admin.make_bucket("runs")
    going_over.admin.put_object("runs", "over-tls", io.BytesIO(content), len(content))
    former = connect.client(without_tls(going_over), patient=False)
    former.put_object("runs", "without", io.BytesIO(content), len(content), part_size=5 << 20)
    assert former.get_object("runs", "over-tls").read() == content
    assert going_over.admin.get_object("runs", "without").read() == content
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        connect.client(replace(going_over.root, ca="")).list_buckets()


def test_clients_without_tls_are_shut_out_when_their_time_is_over(going_over: Any, until: Path) -> None:
    url = urlparse(without_tls(going_over).endpoint)
    kept = http.client.HTTPConnection(url.netloc, timeout=20)
    kept.request("GET", "/minio/health/live")
    assert kept.getresponse().read() == b""
    until.write_text("0")
    answer = wire.send(without_tls(going_over), "GET", "/minio/health/live")
    assert answer.status == 400 and "HTTP request to an HTTPS server" in answer.body
    time.sleep(5.5)  # the server looks every five seconds whether a connection may go on
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        for _ in range(2):
            kept.request("GET", "/minio/health/live")
            kept.getresponse().read()
    assert going_over.admin.list_buckets() == []


@pytest.mark.parametrize("text", ["", "0", "soon", "-1", "99999999999999999999"])
def test_without_a_right_time_there_are_no_clients_without_tls(going_over: Any, until: Path, text: str) -> None:
    until.write_text(text)
    assert wire.send(without_tls(going_over), "GET", "/minio/health/live").status == 400


def test_tls_alone_where_nobody_speaks_of_a_time(server: Any) -> None:
    assert wire.send(without_tls(server), "GET", "/minio/health/live").status == 400
