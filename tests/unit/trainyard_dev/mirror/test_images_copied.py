"""Images copied to a site's registry by the command line."""

from contextlib import nullcontext
from typing import Any

import pytest

from trainyard_dev.versions import load


@pytest.fixture
def refs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The images that a command wants to copy: reading them would build them."""
    found: list[str] = []
    readable = lambda _, wanted, how: nullcontext(found.extend(wanted) or [])  # noqa: E731
    monkeypatch.setattr("trainyard_dev.mirror.sources.readable", readable)
    return found


def test_a_mirror_that_is_a_url_is_refused_before_anything_is_built(
    trainyard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainyard_dev.mirror.cli._readable", lambda *_: pytest.fail("images were built"))
    ended = trainyard("images", "mirror", "https://registry.example.org")
    assert (ended.code, "write it without a scheme" in ended.err) == (2, True)


def test_an_image_that_is_not_known_is_refused_with_those_that_are(trainyard: Any) -> None:
    ended = trainyard("images", "build", "absent")
    assert ended.code == 2 and "unknown image: absent" in ended.error()
    assert "trainer-torch-cuda" in ended.error()


@pytest.mark.parametrize("cuda", [False, True])
def test_a_copy_has_images_with_cuda_only_where_they_are_requested(trainyard: Any, refs: list[str], cuda: bool) -> None:
    """On-prem, whose GPUs compute."""
    ended = trainyard("images", "mirror", "registry.example.org", "--profile", "on-prem", *(["--cuda"] if cuda else []))
    large = {image.name: image for image in load().images.values() if image.large}
    line = "".join(f", {name} ({large[name].large} GB)" for name in sorted(large))[2:]
    assert ended.code == 0 and (f"Omitted: {line}. To include them, add --cuda.\n" in ended.out) is not cuda
    assert {image.ref for image in large.values()} & set(refs) == ({i.ref for i in large.values()} if cuda else set())
    assert load().image("trainer-torch") in refs


def test_our_own_images_alone(trainyard: Any, refs: list[str]) -> None:
    assert trainyard("images", "mirror", "registry.example.org/gpu", "--own").code == 0
    own = {image.ref for image in load().images.values() if image.own and not image.large and not image.local}
    assert set(refs) == own - {load().image("kind-agent")}, "the test cluster's network is no site's"
