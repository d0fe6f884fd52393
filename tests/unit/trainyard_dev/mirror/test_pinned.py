"""Values that name our own images by digest: those in the registry, in a form that the chart accepts."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.chart.schema import source
from trainyard_dev.mirror import cli, pinned
from trainyard_dev.versions import load

PREFIX = "registry.example.org:5000/mirror"
DIGEST = f"sha256:{'a' * 64}"


def under(name: str) -> str:
    return f"{PREFIX}/{load().image(name).partition('/')[2]}"


def test_our_own_images_are_named_by_digest_and_no_others() -> None:
    text = pinned.text(
        {under("platform"): DIGEST, under("trainer-torch"): DIGEST, under("vc-scheduler"): DIGEST}, PREFIX
    )
    assert yaml.safe_load(text) == {"global": {"imageRegistry": PREFIX, "contract": {"images": {
        "platform": f"trainyard/platform@{DIGEST}", "trainerTorch": f"trainyard/trainer-torch@{DIGEST}"}}}}  # fmt: skip


def test_the_chart_takes_such_a_name() -> None:
    schema = source()
    images = schema["properties"]["global"]["properties"]["contract"]["properties"]["images"]["properties"]
    written = yaml.safe_load(pinned.text({under("platform"): DIGEST}, PREFIX))
    assert re.search(images["platform"]["pattern"], written["global"]["contract"]["images"]["platform"])


def test_nothing_of_ours_is_an_error() -> None:
    with pytest.raises(TrainyardError, match="none of our images was pushed"):
        pinned.text({under("vc-scheduler"): DIGEST}, PREFIX)
    with pytest.raises(
        TrainyardError, match=r"returned no digest for registry\.example\.org:5000/mirror/trainyard/platform"
    ):
        pinned.text({under("platform"): ""}, PREFIX)


def test_a_mirror_writes_the_file_it_is_asked_for(
    trainyard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cli.crane, "load", lambda *_, **__: {under("platform"): DIGEST})
    (tmp_path / "saved.tar").touch()
    ended = trainyard(
        "images", "load", str(tmp_path / "saved.tar"), f"{PREFIX}/", "--pins", str(tmp_path / "pins.yaml")
    )
    assert ended.code == 0
    assert f"{under('platform')}@{DIGEST}" in ended.out
    assert f"trainyard/platform@{DIGEST}" in (tmp_path / "pins.yaml").read_text()
