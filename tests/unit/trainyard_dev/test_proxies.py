"""HTTP proxies: nodes bypass them for the cluster's registry, builds use them, and own addresses never do."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from images_demo import DEMO, FakeEngine
from pretended_machine import UP, Call, Machine

from trainyard_dev import proxies
from trainyard_dev.images import base, registry
from trainyard_dev.images import build as images

PASSWORD = "pssst"
PROXY = f"http://me:{PASSWORD}@proxy.example:3128"


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's own proxies are not looked at."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_nodes_ask_the_registry_of_their_cluster_around_the_proxy(
    machine: Machine, trainyard: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", "10.0.0.0/8, .corp.example")
    monkeypatch.delenv("no_proxy", raising=False)
    assert trainyard(*UP, "--name", "lab").code == 0
    told = "10.0.0.0/8,.corp.example,trainyard-registry"
    assert (machine.fake / "proxies").read_text() == f"{PROXY}|{told}|{told}\n"


def test_without_a_proxy_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "a")
    assert proxies.around(["b"]) == {}
    monkeypatch.setenv("http_proxy", PROXY)
    assert proxies.around(["b", "a"]) == {"NO_PROXY": "a,b", "no_proxy": "a,b"}


def test_builds_get_proxies_by_name(image_tree: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    monkeypatch.setenv("no_proxy", "10.0.0.0/8")
    engine = FakeEngine("docker")
    images.build(engine, DEMO, "base:1")
    base.update_base(engine)
    for call in engine.calls:
        given = [call[at + 1] for at, word in enumerate(call) if word == "--build-arg" and "=" not in call[at + 1]]
        assert given == ["HTTP_PROXY", "no_proxy"], call
        assert PASSWORD not in " ".join(call)
    assert [call[0] for call in engine.calls] == ["build", "build"]


def test_the_key_of_an_image_does_not_know_the_proxy(image_tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = images.content_key(DEMO, "b")
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    assert images.content_key(DEMO, "b") == before


def test_what_runs_here_is_asked_directly(site: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python uses a proxy for 127.0.0.1, too; the proxy that is set here would refuse the connection."""
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    address = site.url.split("/")[2]
    registry._wait(address, seconds=2)
