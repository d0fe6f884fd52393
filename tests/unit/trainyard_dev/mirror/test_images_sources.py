"""Sources of images: unpublished ones from our own registry, the rest from where they are published."""

import subprocess
from typing import Any, cast

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.engine import Engine
from trainyard_dev.images import registry, source
from trainyard_dev.images.source import Source
from trainyard_dev.mirror import sources
from trainyard_dev.versions import load

OURS, UPSTREAM = load().image("platform"), load().image("device-plugin")


class FakeEngine:
    """Says whether the registry runs."""

    def __init__(self, *running: str) -> None:
        self.running, self.calls = list(running), []

    def __call__(self, *argv: str, **_: object) -> subprocess.CompletedProcess[str]:
        self.calls.append(argv)
        return subprocess.CompletedProcess(argv, 0, "", "")

    def containers(self, _: str) -> list[str]:
        return self.running


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Images that were built and pushed; the registry needs all of them."""
    made: list[str] = []
    monkeypatch.setattr(Source, "base", lambda *_: "base:1")
    monkeypatch.setattr(registry, "start", lambda *_: "127.0.0.1:4321")
    monkeypatch.setattr(registry, "is_pushed", lambda *_: False)
    monkeypatch.setattr(registry, "push", lambda engine, image, *_: made.append(image.ref))
    return made


def items(monkeypatch: pytest.MonkeyPatch, kind: str, *refs: str) -> dict[str, str]:
    monkeypatch.setattr(source, "choose", lambda wanted: Source(kind, "asked for"))
    return {one.ref: one.at for one in sources.items(cast(Engine, FakeEngine()), refs, kind)}


def test_published_images_are_read_where_they_are(pushed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = items(monkeypatch, "pull", OURS, UPSTREAM)
    assert found == {OURS: f"127.0.0.1:4321/{OURS.partition('/')[2]}", UPSTREAM: UPSTREAM}
    assert pushed == [OURS]


def test_where_no_registry_answers_all_are_built(pushed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = items(monkeypatch, "build", OURS, UPSTREAM)
    assert all(place.startswith("127.0.0.1:4321/") for place in found.values())
    assert pushed == [OURS, UPSTREAM]


def test_an_image_that_nobody_can_make(pushed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainyardError, match=r"quay\.io/me/nfs:1 cannot be built here"):
        items(monkeypatch, "build", "quay.io/me/nfs:1")


@pytest.mark.parametrize(("running", "stopped"), [((registry.NAME,), False), ((), True)])
def test_a_registry_that_was_not_there_before_goes_again(
    running: tuple[str, ...], stopped: bool, pushed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "choose", lambda wanted: Source("build", "asked for"))
    engine: Any = FakeEngine(*running)
    with sources.readable(engine, [OURS], "build") as found:
        assert len(found) == 1
    assert any(call[0] == "rm" for call in engine.calls) is stopped
