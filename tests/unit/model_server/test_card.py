"""A model's card: required fields, and that its files are those it names."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from model_server import contract
from model_server.errors import CardError

BLOB = b"weights"
DIGEST = f"sha256:{hashlib.sha256(BLOB).hexdigest()}"


def document(**other: Any) -> dict[str, Any]:
    said = {
        "name": "mnist",
        "version": "0123456789abcdef",
        "framework": "onnx",
        "file": "model.onnx",
        "digest": DIGEST,
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 784]}],
        "outputs": [{"name": "logits", "datatype": "FP32", "shape": [-1, 10]}],
    }
    return {key: value for key, value in (said | other).items() if value is not None}


def test_a_card_reads_back_as_it_was_written(tmp_path: Path) -> None:
    more = {"data": {"bucket": "datasets"}, "code": "3f2a", "run": "mnist-1", "metrics": {"accuracy": 0.97}}
    (tmp_path / contract.CARD).write_text(json.dumps(document(**more)))
    card = contract.read(tmp_path)
    assert card.document() == document(**more)
    assert contract.parse(card.document()) == card
    assert card.batches and card.inputs[0].shape == (-1, 784)


def test_what_a_registry_notes_beside_is_let_alone() -> None:
    files = {"model.onnx": {"sha256": DIGEST.removeprefix("sha256:"), "bytes": 7}}
    card = contract.parse(document(digest=None, uri="s3://runs/blue/models/mnist/0", files=files, accuracy=0.9))
    assert card.digest == DIGEST
    assert not card.files


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"name": "Mnist"}, "model.json: name: is 'Mnist'. Write lower-case letters"),
        ({"version": None}, "model.json: version: is missing. Write letters"),
        ({"framework": "caffe"}, "write one of pytorch, tensorflow, sklearn, onnx"),
        ({"file": "../model.onnx"}, "model.json: file: is '../model.onnx'"),
        ({"file": "/etc/passwd"}, "model.json: file: is '/etc/passwd'"),
        ({"digest": "md5:1"}, "model.json: digest: is 'md5:1'"),
        ({"digest": None}, "model.json: digest: is missing"),
        ({"inputs": []}, "model.json: inputs: missing or not a list. Write a list"),
        ({"inputs": [{"name": "a", "datatype": "FLOAT", "shape": [1]}]}, "inputs[0].datatype: is 'FLOAT'"),
        ({"inputs": [{"name": "a", "datatype": "FP32", "shape": [0]}]}, "inputs[0].shape: is [0]"),
        ({"inputs": [{"name": "a", "datatype": "FP32", "shape": [True]}]}, "inputs[0].shape: is [True]"),
        ({"outputs": [{"name": "a", "datatype": "FP32", "shape": [1]}] * 2}, "outputs: has a duplicate name"),
        ({"builder": "net.py:build"}, "builder: applies to pytorch only, but framework is onnx"),
        ({"framework": "pytorch", "builder": "net.py:build"}, "files: lacks net.py, the builder's file"),
        ({"framework": "pytorch", "builder": "os:system"}, "builder: is 'os:system'"),
        ({"files": {"model.onnx": {"sha256": "0" * 64}}}, "digest: differs from that of model.onnx in files"),
        ({"files": {"../net.py": {"sha256": "0" * 64}}}, "files.../net.py: is"),
    ],
)
def test_a_wrong_card_is_refused_by_field(other: dict[str, Any], words: str) -> None:
    with pytest.raises(CardError) as caught:
        contract.parse(document(**other))
    assert words.lower() in str(caught.value).lower()


def test_scikit_learn_takes_one_input() -> None:
    two = [{"name": name, "datatype": "FP64", "shape": [-1]} for name in "ab"]
    with pytest.raises(CardError, match=r"inputs: scikit-learn supports only one\. combine all features"):
        contract.parse(document(framework="sklearn", inputs=two))


def test_files_are_what_the_card_says(tmp_path: Path) -> None:
    card = contract.parse(document())
    with pytest.raises(CardError, match="not found, although the card names it"):
        contract.check(tmp_path, card)
    (tmp_path / "model.onnx").write_bytes(BLOB)
    contract.check(tmp_path, card)
    (tmp_path / "model.onnx").write_bytes(b"other")
    with pytest.raises(CardError, match=f"changed after registration: digest sha256:.*, the card has {DIGEST}"):
        contract.check(tmp_path, card)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(BLOB)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.onnx").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CardError, match="points outside the model's folder"):
        contract.check(folder, contract.parse(document()))


def test_a_folders_digest_is_of_names_and_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        (folder / "variables").mkdir(parents=True)
        (folder / "saved_model.pb").write_bytes(BLOB)
        (folder / "variables" / "index").write_bytes(b"0")
    assert contract.digest_of(first) == contract.digest_of(second)
    (second / "variables" / "index").rename(second / "index")
    assert contract.digest_of(first) != contract.digest_of(second)


def test_a_folder_without_a_card_says_so(tmp_path: Path) -> None:
    with pytest.raises(CardError, match=r"no model\.json\. register the model"):
        contract.read(tmp_path)
    (tmp_path / contract.CARD).write_text("{")
    with pytest.raises(CardError, match="can't be read: "):
        contract.read(tmp_path)
