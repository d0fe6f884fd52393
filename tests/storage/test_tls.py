"""A real MinIO that speaks TLS: platform and trainers check its certificate, and refuse another authority's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mnist import store as trainer
from mnist.errors import TrainError
from trainyard_agent import buckets, store
from trainyard_agent.say import PlatformError


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
        store.client(access, patient=False).list_buckets()
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        store.admin(access).user_list()


def test_platform_says_when_the_authority_is_no_certificate(server: Any) -> None:
    with pytest.raises(PlatformError, match=r"ca.crt of the object store at https://.* is not a certificate"):
        store.client(replace(server.root, ca="nonsense"))


def trainers_env(server: Any, ca: str) -> dict[str, str]:
    root = server.root
    return {"S3_ENDPOINT": root.endpoint, "S3_ACCESS_KEY": root.user, "S3_SECRET_KEY": root.password, "S3_CA": ca}


def test_trainers_write_and_read_over_tls(
    server: Any, contract: dict[str, Any], clock: Any, environment: dict[str, str]
) -> None:
    buckets.ensure(contract, clock)
    place = trainer.open_store("s3://runs/vision/job", trainers_env(server, server.root.ca))
    assert trainer.put_checked(place, "metrics.json", b"{}")["bytes"] == 2


def test_trainers_refuse_another_authority_at_once(server: Any, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = trainer.open_store("s3://runs/vision/job", trainers_env(server, wrong))
    monkeypatch.setattr(place, "sleep", lambda seconds: pytest.fail("it tried again"))
    with pytest.raises(TrainError, match=r"certificate is not trusted.*S3_CA"):
        place.get("metrics.json")


def test_trainers_say_when_the_authority_is_no_certificate(server: Any) -> None:
    with pytest.raises(TrainError, match="S3_CA is not a certificate"):
        trainer.open_store("s3://runs/vision/job", trainers_env(server, "nonsense"))
