"""The team's registered models: required fields of a card, versions made from content, a shelf in a folder, tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from model_shelf import FolderStore

from model_server import contract as server
from trainyard.errors import TrainyardError, UsageError
from trainyard.serving import cards, comparison, shelf
from trainyard_agent.runs import models as agent

IMAGE = {"name": "image", "datatype": "FP32", "shape": [-1, 784]}
LOGITS = {"name": "logits", "datatype": "FP32", "shape": [-1, 10]}
GIVEN: dict[str, Any] = {"name": "digits", "framework": "pytorch", "inputs": [IMAGE], "outputs": [LOGITS]}


def trained(folder: Path, content: bytes = b"weights", **metrics: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pt").write_bytes(content)
    if metrics:
        (folder / "metrics.json").write_text(json.dumps({**metrics, "note": "no number"}))
    return folder


def test_a_folder_becomes_a_card_that_the_server_takes(tmp_path: Path) -> None:
    folder = trained(tmp_path / "out", accuracy=0.97)
    card = shelf.complete(folder, {**GIVEN, "run": "mnist-1", "metrics": {"loss": 0.1}})
    assert card["metrics"] == {"accuracy": 0.97, "loss": 0.1} and card["file"] == "model.pt"
    (folder / "model.json").write_text(json.dumps(card))
    read = server.read(folder)
    server.check(folder, read)
    assert (read.name, read.version, read.framework) == ("digits", card["version"], "pytorch")


def test_a_version_is_made_of_the_content(tmp_path: Path) -> None:
    first = shelf.complete(trained(tmp_path / "a"), GIVEN)
    again = shelf.complete(trained(tmp_path / "b"), {**GIVEN, "run": "another"})
    other = shelf.complete(trained(tmp_path / "c", b"other"), GIVEN)
    assert first["version"] == again["version"] != other["version"] and len(first["version"]) == 16


def test_what_the_folder_says_itself_counts_and_options_go_before(tmp_path: Path) -> None:
    folder = trained(tmp_path / "out")
    said = {**GIVEN, "name": "other", "data": {"uri": "s3://datasets/x"}, "metrics": {"accuracy": 0.5}}
    (folder / "model.json").write_text(json.dumps(said))
    card = shelf.complete(folder, {"name": "digits", "framework": "", "metrics": {"accuracy": 0.6}})
    assert (card["name"], card["framework"], card["data"]) == ("digits", "pytorch", {"uri": "s3://datasets/x"})
    assert card["metrics"] == {"accuracy": 0.6}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"name": "Digits"}, "invalid model name: 'Digits'"),
        ({"framework": "caffe"}, r"framework: is 'caffe'. write one of pytorch, tensorflow, sklearn, onnx"),
        ({"inputs": [{"name": "image", "datatype": "FLOAT", "shape": [1]}]}, "inputs.0..datatype: is 'FLOAT'"),
        ({"inputs": []}, "inputs: missing or not a list"),
        ({"file": "other.pt"}, "no other.pt in it"),
        ({"file": "../secret"}, "no ../secret in it"),
        ({"file": "."}, "the model can't be the folder itself"),
        ({"version": "a b"}, "version: is 'a b'"),
    ],
)
def test_a_card_that_no_server_takes_is_refused(tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        shelf.complete(trained(tmp_path / "out"), GIVEN | given)


def test_metrics_that_are_none_are_refused(tmp_path: Path) -> None:
    folder = trained(tmp_path / "out")
    (folder / "model.json").write_text('{"metrics": [0.9]}')
    with pytest.raises(UsageError, match=r'model.json: metrics is not an object. write {"accuracy": 0.97}'):
        shelf.complete(folder, GIVEN)


def test_several_files_need_a_name_and_links_stay_inside(tmp_path: Path) -> None:
    folder = trained(tmp_path / "out")
    (folder / "second.pt").write_bytes(b"x")
    with pytest.raises(UsageError, match=r"no single model file: found model.pt, second.pt"):
        shelf.complete(folder, GIVEN)
    (tmp_path / "secret").write_text("key")
    (folder / "second.pt").unlink()
    (folder / "second.pt").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match="links outside its folder"):
        shelf.complete(folder, {**GIVEN, "file": "model.pt"})
    with pytest.raises(UsageError, match="no such folder"):
        shelf.complete(tmp_path / "none", GIVEN)


def test_registering_sends_the_card_last_and_the_same_content_once(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    found = shelf.ModelRegistry(store, "vision")
    folder = trained(tmp_path / "out", accuracy=0.9)
    made = found.register(folder, shelf.complete(folder, GIVEN))
    place = f"runs/vision/models/digits/{made.version}"
    assert made.place == place and store.sent[-2:] == [f"{place}/model.json", "runs/vision/models/digits/newest.json"]
    sent = len(store.sent)
    found.register(folder, shelf.complete(folder, GIVEN))
    assert store.sent[sent:] == ["runs/vision/models/digits/newest.json"]
    # What lies there is what a pod brings and a server takes.
    agent.bring(str(tmp_path / "store" / place), tmp_path / "pod", "digits", made.version, made.digest)
    server.check(tmp_path / "pod", server.read(tmp_path / "pod"))


def test_what_a_version_that_is_there_does_not_note_is_told(tmp_path: Path) -> None:
    found = shelf.ModelRegistry(FolderStore(tmp_path / "store"), "vision")
    folder = trained(tmp_path / "out", accuracy=0.9)
    said: list[str] = []
    made = found.register(folder, shelf.complete(folder, GIVEN), said.append)
    again = found.register(folder, shelf.complete(folder, GIVEN), said.append)
    assert said == ["sent metrics.json", "sent model.pt"] and again.metrics == {"accuracy": 0.9}
    given = {**GIVEN, "metrics": {"accuracy": 0.8}, "run": "second"}
    assert found.register(folder, shelf.complete(folder, given), said.append).metrics == {"accuracy": 0.9}
    assert said[2:] == [f"{made.title} is already registered and keeps its card: the new metrics, run are ignored"]


def test_a_version_never_changes(tmp_path: Path) -> None:
    found = shelf.ModelRegistry(FolderStore(tmp_path / "store"), "vision")
    for content, refused in ((b"one", False), (b"two", True)):
        folder = trained(tmp_path / content.decode(), content)
        card = shelf.complete(folder, {**GIVEN, "version": "v1"})
        if not refused:
            found.register(folder, card)
            continue
        with pytest.raises(TrainyardError, match="digits v1 is already registered with different content"):
            found.register(folder, card)


def test_versions_are_found_by_name_and_beginning(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    found = shelf.ModelRegistry(store, "vision")
    for number, version in enumerate(("abc1", "abd2", "xyz3")):
        folder = trained(tmp_path / version, version.encode(), accuracy=0.9 + number / 100)
        found.register(folder, shelf.complete(folder, {**GIVEN, "version": version}))
    assert [card.version for card in found.listed()] == ["xyz3", "abd2", "abc1"]
    assert found.find("digits").version == "xyz3" and found.find("digits@abc").version == "abc1"
    with pytest.raises(TrainyardError, match=r"several versions of digits begin with ab. use one of abd2, abc1"):
        found.find("digits@ab")
    with pytest.raises(TrainyardError, match=r"digits has no version q. use one of xyz3, abd2, abc1"):
        found.find("digits@q")
    with pytest.raises(TrainyardError, match=r"s3://runs/vision/models: no model other is registered"):
        found.find("other")
    with pytest.raises(UsageError, match="invalid model name: 'Digits'"):
        found.find("Digits")


def test_cards_of_old_are_listed_and_lack_what_a_server_needs() -> None:
    old = {
        "name": "mnist",
        "version": "aa",
        "uri": "s3://x",
        "accuracy": 0.8,
        "files": {"model.npz": {"sha256": "0" * 64}},
    }
    card = cards.read(old, "runs/vision/models/mnist/aa", 5)
    assert card.metrics == {"accuracy": 0.8} and card.lacks == ("framework", "file", "inputs", "outputs")
    assert card.document()["servable"] is False and card.document()["uri"] == "s3://runs/vision/models/mnist/aa"
    assert cards.read({}, "runs/vision/models/mnist/bb").title == "mnist@bb"


def test_two_versions_are_compared_by_what_they_are_and_how_good() -> None:
    first = cards.read(
        {"version": "1", "digest": "sha256:a", "run": "r1", "metrics": {"accuracy": 0.9}}, "b/models/d/1"
    )
    second = cards.read(
        {"version": "2", "digest": "sha256:b", "run": "r1", "metrics": {"accuracy": 0.95}}, "b/models/d/2"
    )
    rows = {row["key"]: row["same"] for row in comparison.compared(first, second)}
    assert rows == {"digest": False, "run": True, "metrics.accuracy": False}
    lines = comparison.table(first, second).splitlines()
    assert "d@1" in lines[0] and any(line.startswith("*  metrics.accuracy") and "(+0.05)" in line for line in lines)
    listing = comparison.listing([first, second], {"d": "2"}).splitlines()
    assert listing[0].split()[:2] == ["MODEL", "VERSION"] and listing[2].endswith("yes") and "yes" not in listing[1]


HOSTILE = {
    "name": "digits\x1b]0;x\x07",
    "version": "1\r2",
    "framework": "onnx\x1b[2J",
    "run": "a\nb\u202e",
    "metrics": {"m\x1b": 1},
}


def test_a_card_moves_no_cursor() -> None:
    card = cards.read(HOSTILE, "runs/vision/models/digits/1")
    for text in (comparison.listing([card], {}), comparison.table(card, card), card.title):
        assert all(one.isprintable() or one == "\n" for one in text)
    assert len(comparison.listing([card], {}).splitlines()) == 2
