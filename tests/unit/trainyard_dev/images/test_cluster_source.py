"""Where a cluster's images come from: pulled or built, as requested or as the network allows."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest
from images_demo import DEMO, FakeEngine

from trainyard.errors import UsageError
from trainyard_dev.images import registry, source
from trainyard_dev.images.supply import Supply
from trainyard_dev.versions import Versions, load

REGISTRY = {"Docker-Distribution-Api-Version": "registry/2.0"}


@pytest.mark.parametrize(
    ("wanted", "kind", "reason"),
    [
        ("pull", "pull", "asked for"),
        ("build", "build", "asked for"),
        ("auto", "build", "pulling was not tried; set `pull` to pull"),
    ],
)
def test_the_source_asks_no_network(wanted: str, kind: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "registry_answers", lambda: pytest.fail("the network was asked"))
    assert source.choose(wanted) == source.Source(kind, reason)


def test_an_unknown_source() -> None:
    with pytest.raises(UsageError, match=r"unknown image source `push`\. use auto, pull or build"):
        source.choose("push")


def test_what_the_own_registry_serves() -> None:
    upstream = dataclasses.replace(DEMO, name="up", own=False)
    local = dataclasses.replace(DEMO, name="local", local=True)
    listed = [DEMO, upstream, local]
    assert [i.name for i in source.Source("pull", "").served(listed)] == ["demo"]
    assert [i.name for i in source.Source("build", "").served(listed)] == ["demo", "up"]


def test_a_pulled_base_is_taken_by_its_digest_and_brought_up_to_date_once() -> None:
    pulled, engine, told = source.Source("pull", ""), FakeEngine(), []
    file = lambda words: Path(words[words.index("-f") + 1]).read_text()  # noqa: E731
    engine.on_build = lambda context: told.append(file(engine.calls[-1]))
    assert pulled.base(engine) == pulled.base(engine) == pulled.base_ref
    assert len(told) == 2, "the older suite's and its own, each once"
    for text, name in zip(told, ("older-base-image", "base-image"), strict=True):
        digest = load().raw["published"][name]["digest"].partition("@")[2]
        assert text.startswith(f"FROM docker.io/library/debian@{digest}\n")
        assert "apt-get upgrade" in text


def test_the_day_of_the_packages_is_in_the_name_of_either_base() -> None:
    day = load().raw["debian"]["packages"]
    assert all(source.Source(kind, "").base_ref.endswith(f":{day}") for kind in ("pull", "build"))
    assert source.Source("pull", "").base_ref != source.Source("build", "").base_ref


def test_an_unproved_node_image_is_pulled_by_its_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = {"pull": {"node-image": "host/node:v1"}, "published": {"node-image": {"digest": "unproved"}}}
    monkeypatch.setattr(source, "load", lambda: Versions(raw, {}, {}))
    pulled = source.Source("pull", "")
    assert pulled.node_image(FakeEngine(), "b") == "host/node:v1"
    raw["published"]["node-image"]["digest"] = "v1@sha256:00"
    assert pulled.node_image(FakeEngine(), "b") == "host/node@sha256:00"


def test_a_pulled_registry_is_not_compiled(image_tree: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tool set needs a newer Go than any distribution has, and its storage is read by the pinned program."""
    pulled, engine = source.Source("pull", ""), FakeEngine()
    monkeypatch.setattr(registry, "_wait", lambda address: None)
    registry.start(engine, "kind", lambda: pulled.registry_image(engine, "b"))
    (started,) = [call for call in engine.calls if call[0] == "run"]
    digest = load().raw["published"]["registry-image"]["digest"].partition("@")[2]
    assert started[-1] == f"docker.io/library/registry@{digest}"
    assert f"{registry.CONFIG}:/etc/distribution/config.yml:ro" in started
    assert registry.CONFIG.is_file()
    assert not [call for call in engine.calls if call[0] == "build"]
    assert "registry" not in {image.name for image in Supply(engine, pulled).images}


@pytest.mark.parametrize(
    ("code", "headers", "answers"),
    [
        (200, REGISTRY, True),
        (401, REGISTRY, True),  # it wants a login for /v2/ and serves public images all the same
        (401, {}, False),  # a proxy that wants a login
        (200, {}, False),  # a log-in page of a hotel
        (403, {}, False),
        (403, REGISTRY, False),
        (407, {}, False),
        (503, REGISTRY, False),
    ],
)
def test_which_answer_counts_as_a_registry(site: SimpleNamespace, code: int, headers: dict[str, str], answers: bool,
                                           monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site.code, site.headers = code, headers
    assert source.registry_answers(site.url) is answers


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v2/", "http://no-such-host.invalid/v2/", "nonsense"])
def test_no_registry_there(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1,.invalid")
    assert source.registry_answers(url, seconds=0.5) is False
