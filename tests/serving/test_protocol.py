"""Answers of a real server to the Open Inference Protocol and to plain requests are those of the bare library."""

import json
import struct
from typing import Any

import numpy as np
import pytest
from asking import HEADER, ask, series, tensor

from trainyard_dev.serving.process import Server

MODEL = "/v2/models/digits"


def test_a_models_metadata_are_its_cards(shared: dict[str, Server]) -> None:
    said = ask(shared["sklearn"], "GET", MODEL)
    assert said.status == 200
    assert said.json == {
        "name": "digits",
        "versions": ["1"],
        "platform": "sklearn",
        "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 64]}],
        "outputs": [
            {"name": "label", "datatype": "INT64", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP32", "shape": [-1, 10]},
        ],
    }
    assert ask(shared["sklearn"], "GET", f"{MODEL}/versions/1").json == said.json


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", f"{MODEL}/ready", f"{MODEL}/versions/1/ready"])
def test_a_warm_server_says_that_it_is_ready(shared: dict[str, Server], path: str) -> None:
    said = ask(shared["onnx"], "GET", path)
    assert said.status == 200
    assert said.json["live" if path.endswith("live") else "ready"] is True


@pytest.mark.parametrize("path", [f"{MODEL}/infer", f"{MODEL}/versions/1/infer"])
def test_onnx_answers_as_the_library(shared: dict[str, Server], expected: dict[str, Any], path: str) -> None:
    said = ask(shared["onnx"], "POST", path, {"id": "7", "inputs": [tensor(expected["images"])]})
    assert said.status == 200, said.body
    (output,) = said.json["outputs"]
    assert {key: said.json[key] for key in ("id", "model_name", "model_version")} == {
        "id": "7",
        "model_name": "digits",
        "model_version": "1",
    }
    assert (output["name"], output["datatype"], output["shape"]) == ("logits", "FP32", [20, 10])
    found = np.array(output["data"]).reshape(20, 10)
    np.testing.assert_allclose(found, expected["logits"], rtol=1e-4, atol=1e-4)
    assert (found.argmax(1) == expected["wanted"]).mean() > 0.8


def test_scikit_learn_answers_as_the_library(shared: dict[str, Server], expected: dict[str, Any]) -> None:
    said = ask(shared["sklearn"], "POST", f"{MODEL}/infer", {"inputs": [tensor(expected["images"])]})
    label, probabilities = said.json["outputs"]
    assert label["data"] == expected["label"]
    np.testing.assert_allclose(np.array(probabilities["data"]).reshape(20, 10), expected["probabilities"], rtol=1e-4)


def test_nested_data_and_chosen_outputs(shared: dict[str, Server], expected: dict[str, Any]) -> None:
    one = tensor(expected["images"]) | {"data": expected["images"]}
    asked = {"inputs": [one], "outputs": [{"name": "label"}]}
    said = ask(shared["sklearn"], "POST", f"{MODEL}/infer", asked)
    assert [output["name"] for output in said.json["outputs"]] == ["label"]
    assert said.json["outputs"][0]["data"] == expected["label"]


def test_binary_tensors_in_and_out(shared: dict[str, Server], expected: dict[str, Any]) -> None:
    images = np.array(expected["images"], "<f4")
    one = {"name": "image", "datatype": "FP32", "shape": [20, 64], "parameters": {"binary_data_size": images.nbytes}}
    asked = {"inputs": [one], "parameters": {"binary_data_output": True}}

    head = json.dumps(asked).encode()
    said = ask(shared["onnx"], "POST", f"{MODEL}/infer", head + images.tobytes(), **{HEADER: str(len(head))})
    assert said.status == 200, said.body
    length = int(said.headers[HEADER.lower()])
    (output,) = json.loads(said.body[:length])["outputs"]
    assert output["parameters"] == {"binary_data_size": 20 * 10 * 4}
    found = np.array(struct.unpack("<200f", said.body[length:])).reshape(20, 10)
    np.testing.assert_allclose(found, expected["logits"], rtol=1e-4, atol=1e-4)


def test_plain_requests(shared: dict[str, Server], expected: dict[str, Any]) -> None:
    said = ask(shared["onnx"], "POST", "/predict", {"instances": expected["images"]})
    assert said.status == 200, said.body
    assert said.headers["x-model-version"] == "1"
    np.testing.assert_allclose(said.json["predictions"], expected["logits"], rtol=1e-4, atol=1e-4)
    said = ask(shared["sklearn"], "POST", "/predict", {"instances": [{"image": one} for one in expected["images"]]})
    assert [one["label"] for one in said.json["predictions"]] == expected["label"]
    assert len(said.json["predictions"][0]["probabilities"]) == 10


def test_more_rows_than_a_batch_are_computed_in_parts(shared: dict[str, Server], expected: dict[str, Any]) -> None:
    rows = expected["images"] * 4  # 80, and a batch has 32
    said = ask(shared["onnx"], "POST", "/predict", {"instances": rows})
    np.testing.assert_allclose(said.json["predictions"], expected["logits"] * 4, rtol=1e-4, atol=1e-4)


GOOD = {"name": "image", "datatype": "FP32", "shape": [1, 64], "data": [0.0] * 64}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "body: invalid JSON"),
        ([], "body: not a JSON object"),
        ({}, "inputs: missing or not a list. send a list of {name, datatype, shape, data}"),
        ({"inputs": [1]}, "inputs: missing or not a list"),
        ({"inputs": []}, "inputs: lack image. send every input of the model"),
        ({"inputs": [GOOD | {"name": "x"}]}, "inputs[0].name: got 'x'. send each of image once"),
        ({"inputs": [GOOD, GOOD]}, "inputs[1].name: got 'image'. send each of image once"),
        ({"inputs": [GOOD | {"datatype": "FP64"}]}, "inputs[0].datatype: got 'FP64'. image is FP32"),
        ({"inputs": [GOOD | {"shape": [64]}]}, "inputs[0].shape: got [64]. image is [-1, 64], -1 for any length"),
        ({"inputs": [GOOD | {"shape": [0, 64]}]}, "inputs[0].shape: got [0, 64]"),
        ({"inputs": [GOOD | {"shape": [-1, 64]}]}, "inputs[0].shape: got [-1, 64]"),
        ({"inputs": [GOOD | {"shape": [10**18, 64]}]}, "inputs[0].data: has 64 values"),
        ({"inputs": [GOOD | {"data": [0.0] * 63}]}, "inputs[0].data: has 63 values in shape [63]"),
        ({"inputs": [GOOD | {"data": ["a"] * 64}]}, "inputs[0].data: contains strings. image is FP32"),
        ({"inputs": [GOOD | {"data": [None] * 64}]}, "inputs[0].data: contains mixed values"),
        ({"inputs": [GOOD | {"data": [True] * 64}]}, "inputs[0].data: contains booleans"),
        ({"inputs": [GOOD | {"data": [1e39] * 64}]}, "inputs[0].data: contains numbers too large for FP32"),
        ({"inputs": [GOOD | {"data": [[0.0] * 63, [0.0]]}]}, "inputs[0].data: is not a tensor"),
        ({"inputs": [GOOD | {"data": 1}]}, "inputs[0].data: got 1. send a list of FP32"),
        ({"inputs": [GOOD | {"parameters": 1}]}, "inputs[0].parameters: got 1. send an object"),
        ({"inputs": [GOOD | {"parameters": {"binary_data_size": 9}}]}, "binary_data_size: got 9. 0 bytes follow"),
        ({"inputs": [GOOD], "outputs": [{"name": "x"}]}, "outputs[0].name: got 'x'. use logits"),
        ({"inputs": [GOOD], "id": 7}, "id: got 7. send a string"),
    ],
)
def test_a_request_that_is_not_the_models_is_refused(shared: dict[str, Server], body: Any, words: str) -> None:
    said = ask(shared["onnx"], "POST", f"{MODEL}/infer", body)
    assert said.status == 400, said.body
    assert words in said.json["error"]
    assert {"what", "where", "hint"} < set(said.json)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"rows": []}, "instances: missing or empty. send a list with a row for each prediction"),
        ({"instances": []}, "instances: missing or empty"),
        ({"instances": [[0.0] * 63]}, "instances: invalid shape [1, 63]. a row of image is [64]"),
        ({"instances": [[0.0] * 64, [0.0]]}, "instances: is not a tensor"),
        (
            {"instances": [{"x": [0.0] * 64}]},
            "instances[0]: does not match the model's inputs. send an object with image",
        ),
        ({"instances": [{"image": [0.0] * 64}, 1]}, "instances[1]: does not match the model's inputs"),
    ],
)
def test_a_plain_request_that_is_not_the_models_is_refused(shared: dict[str, Server], body: Any, words: str) -> None:
    said = ask(shared["onnx"], "POST", "/predict", body)
    assert said.status == 400, said.body
    assert words in said.json["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", "/v2/models/other/infer", 404, "no model other. this server serves digits"),
        ("POST", f"{MODEL}/versions/2/infer", 404, "no version 2 of digits. this server serves 1"),
        ("GET", f"{MODEL}/versions/2/ready", 404, "no version 2 of digits"),
        ("GET", f"{MODEL}/infer", 405, "method GET not allowed"),
        ("GET", "/metrics", 404, "not found. use /v2/models/NAME/infer or /predict, both by POST"),
        ("POST", "/v2/repository/models/digits/unload", 404, "not found"),
    ],
)
def test_what_is_not_here(shared: dict[str, Server], method: str, path: str, status: int, words: str) -> None:
    said = ask(shared["onnx"], method, path, {"inputs": [GOOD]} if method == "POST" else None)
    assert (said.status, words in said.json["error"]) == (status, True), said.body


def test_requests_and_batches_are_counted(shared: dict[str, Server], expected: dict[str, Any]) -> None:
    of = 'model="digits",version="1"'
    names = [
        f'trainyard_model_requests_total{{code="200",{of},way="predict"}}',
        f'trainyard_model_requests_total{{code="400",{of},way="predict"}}',
        f'trainyard_model_request_seconds_count{{{of},way="predict"}}',
        f"trainyard_model_batch_rows_sum{{{of}}}",
    ]
    before = series(shared["onnx"])
    assert ask(shared["onnx"], "POST", "/predict", {"instances": expected["images"]}).status == 200
    assert ask(shared["onnx"], "POST", "/predict", {"instances": 1}).status == 400
    after = series(shared["onnx"])
    assert [after[name] - before.get(name, 0) for name in names] == [1, 1, 2, 20]
    assert after[f"trainyard_model_ready{{{of}}}"] == 1
    assert after[f"trainyard_model_requests_in_flight{{{of}}}"] == 0


def test_the_page_is_open_and_locked_down(shared: dict[str, Server]) -> None:
    for path, words in (("/", b"Draw a digit"), ("/page.js", b"recognise"), ("/page.css", b"canvas")):
        said = ask(shared["onnx"], "GET", path)
        assert (said.status, words in said.body) == (200, True)
        assert "script-src 'self'" in said.headers["content-security-policy"]
        assert "default-src 'none'" in said.headers["content-security-policy"]
    assert ask(shared["onnx"], "GET", "/card").json["digest"].startswith("sha256:")
