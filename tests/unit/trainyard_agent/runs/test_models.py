"""Copying a model into its pod: whole, the requested one, and verified by its digest."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from model_server import contract as server
from trainyard_agent.__main__ import main
from trainyard_agent.runs import models
from trainyard_agent.say import PlatformError

SECRET = hashlib.sha256(b"key").hexdigest()


def laid(folder: Path, **more: Any) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pt").write_bytes(b"weights")
    digest = models.digest_of(folder / "model.pt")
    card = {"name": "digits", "version": "v1", "file": "model.pt", "digest": digest, **more}
    (folder / "model.json").write_text(json.dumps(card))
    return card


def test_digests_are_counted_as_the_server_counts_them(tmp_path: Path) -> None:
    for name, content in (("saved/b/two", b"2"), ("saved/a", b"1"), ("saved/b.c", b"3")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    for path in (tmp_path / "saved", tmp_path / "saved/a"):
        assert models.digest_of(path) == server.digest_of(path)


def test_a_version_comes_whole_and_again_after_a_restart(tmp_path: Path) -> None:
    card, into = laid(tmp_path / "claim"), tmp_path / "model"
    into.mkdir()
    (into / "of-an-earlier-start").write_text("x")
    for _ in range(2):
        assert main(["model", f"--from={tmp_path / 'claim'}", f"--into={into}", "--name=digits", "--version=v1",
                     f"--digest={card['digest']}"]) == 0  # fmt: skip
    assert (into / "model.pt").read_bytes() == b"weights" and not (into / ".part").exists()


@pytest.mark.parametrize(
    ("more", "name", "digest", "says"),
    [
        ({}, "other", "", "is name digits, not other: correct which model is served"),
        ({"version": "v2"}, "digits", "", "is version v2, not v1"),
        ({"digest": f"sha256:{'0' * 64}"}, "digits", "", "and its model.json says sha256:0000"),
        ({}, "digits", f"sha256:{'1' * 64}", "and its server says sha256:1111"),
        ({"file": "../secret"}, "digits", "", "has no file ../secret, which its model.json names"),
        ({"file": "gone.pt"}, "digits", "", "has no file gone.pt"),
        ({"files": {"beside.txt": {"sha256": "2" * 64}}}, "digits", "", "beside.txt of "),
        ({"files": {"../secret": {"sha256": SECRET}}}, "digits", "", "is not the file that its model.json names"),
    ],
)
def test_another_model_does_not_come_at_all(
    tmp_path: Path, more: dict[str, Any], name: str, digest: str, says: str
) -> None:
    laid(tmp_path / "claim", **more)
    (tmp_path / "secret").write_text("key")
    with pytest.raises(PlatformError) as caught:
        models.bring(str(tmp_path / "claim"), tmp_path / "model", name, "v1", digest)
    assert says in str(caught.value)
    assert os.listdir(tmp_path / "model") == []


def test_what_leads_out_of_a_claims_folder_stays_there(tmp_path: Path) -> None:
    laid(tmp_path / "claim")
    (tmp_path / "secret").write_text("key")
    (tmp_path / "claim" / "link").symlink_to(tmp_path / "secret")
    models.bring(str(tmp_path / "claim"), tmp_path / "model", "digits", "v1")
    assert sorted(os.listdir(tmp_path / "model")) == ["model.json", "model.pt"]


@pytest.mark.parametrize(
    ("text", "says"), [(None, "has no model.json"), ("{", "is not a JSON object"), ("[]", "is not a JSON object")]
)
def test_a_place_without_a_card_is_said(tmp_path: Path, text: str | None, says: str) -> None:
    (tmp_path / "claim").mkdir()
    if text is not None:
        (tmp_path / "claim" / "model.json").write_text(text)
    with pytest.raises(PlatformError, match=says):
        models.bring(str(tmp_path / "claim"), tmp_path / "model", "digits", "v1")
    with pytest.raises(PlatformError, match="no folder"):
        models.bring(str(tmp_path / "none"), tmp_path / "model", "digits", "v1")
