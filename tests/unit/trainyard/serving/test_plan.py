"""From a request to the chart's values: the contract's images and nodes; earlier settings stay."""

import hashlib
from typing import Any

import pytest
from sites import of_values

from trainyard.contract import Contract
from trainyard.errors import TrainyardError, UsageError
from trainyard.serving import cards, plan, settings
from trainyard.serving.plan import ServeRequest

SERVING = {
    "bucket": "runs",
    "gpus": True,
    "images": {"pytorch": "trainyard/server-torch:0.4.0", "onnx": "trainyard/server-sklearn:0.4.0"},
    "priorityClass": {"name": "trainyard-serving", "value": 20000},
    "prometheus": "http://prometheus:9090",
}


@pytest.fixture
def known() -> Contract:
    found = of_values({"teams": [{"name": "vision", "gid": 20001}]}, imageRegistry="mirror.example:5000")
    found.raw["serving"] = SERVING
    return found


def card(version: str = "v1", framework: str = "pytorch", **more: Any) -> cards.Card:
    said = {"name": "digits", "version": version, "framework": framework, "digest": f"sha256:{version}"}
    made = {**said, "file": "model.pt", "inputs": [1], "outputs": [1], **more}
    return cards.read(made, f"runs/vision/models/digits/{version}")


def test_a_first_service_has_the_platforms_image_class_and_nodes(known: Contract) -> None:
    made = plan.values(known, "vision", card(), ServeRequest(), {})
    assert made["image"]["reference"] == "mirror.example:5000/trainyard/server-torch:0.4.0"
    assert made["fetch"]["image"].endswith("/platform:0.4.0") and made["storeSecret"] == "trainyard-s3"
    assert made["priorityClassName"] == "trainyard-serving" and made["nodeSelector"] == {"trainyard.io/pool": "cpu"}
    assert made["model"] == {"name": "digits", "version": "v1", "digest": "sha256:v1",
                             "source": {"bucket": "runs/vision/models/digits/v1"}}  # fmt: skip


def test_what_was_said_before_stays_and_a_canary_ends_with_the_next_version(known: Contract) -> None:
    first = plan.values(known, "vision", card(), ServeRequest(replicas=4, cpu="500m", access="namespaces"), {})
    canary = plan.values(known, "vision", card("v2"), ServeRequest(canary=25), first)
    assert canary["model"]["version"] == "v1" and canary["canary"]["version"] == "v2"
    assert canary["replicas"] == 4 and canary["canary"]["share"] == 25
    after = plan.values(known, "vision", card("v2"), ServeRequest(), canary)
    assert after["model"]["version"] == "v2" and "canary" not in after
    assert after["resources"]["requests"]["cpu"] == "500m" and after["access"] == {"from": "namespaces"}


def test_a_canary_needs_something_beside_it(known: Contract) -> None:
    with pytest.raises(UsageError, match="digits is not in service, so a canary has nothing to run beside"):
        plan.values(known, "vision", card(), ServeRequest(canary=25), {})


def test_gpus_go_through_the_teams_queue_and_back(known: Contract) -> None:
    made = plan.values(known, "vision", card(), ServeRequest(gpus=2), {})
    assert made["resources"]["limits"]["nvidia.com/gpu"] == 2 and made["queue"] == "vision"
    assert (
        made["schedulerName"] == "volcano" and made["tolerations"] and made["priorityClassName"] != "trainyard-serving"
    )
    kept = plan.values(known, "vision", card("v2"), ServeRequest(), made)
    assert kept["resources"]["limits"]["nvidia.com/gpu"] == 2
    back = plan.values(known, "vision", card("v3"), ServeRequest(gpus=0), kept)
    assert back["priorityClassName"] == "trainyard-serving"
    assert "nvidia.com/gpu" not in back["resources"]["limits"] and back["schedulerName"] == "" == back["queue"]


def test_another_server_keeps_its_image_as_long_as_it_is_that_server(known: Contract) -> None:
    first = plan.values(known, "vision", card(), ServeRequest(runtime="triton", image="triton:1", gpus=1), {})
    second = plan.values(known, "vision", card("v2"), ServeRequest(), first)
    assert (second["runtime"], second["image"]["reference"]) == ("triton", "triton:1")
    with pytest.raises(UsageError, match="the platform has no image for vllm"):
        plan.values(known, "vision", card("v2"), ServeRequest(runtime="vllm"), first)
    own = plan.values(known, "vision", card("v2"), ServeRequest(runtime="model-server", gpus=0), first)
    assert own["image"]["reference"].endswith("/server-torch:0.4.0")


def test_keys_are_added_and_revoked_by_their_digest(known: Contract) -> None:
    text, digest = plan.new_key()
    assert hashlib.sha256(text.encode()).hexdigest() == digest and text.startswith("ty-") and len(text) > 40
    first = plan.values(known, "vision", card(), ServeRequest(access="outside", keys=("a" * 64,)), {})
    second = plan.values(known, "vision", card(), ServeRequest(keys=(digest,)), first)
    assert second["access"]["keys"] == sorted(["a" * 64, digest]) and second["access"]["from"] == "outside"
    third = plan.values(known, "vision", card(), ServeRequest(keys=(digest,), only=True), second)
    assert third["access"]["keys"] == [digest]


def test_another_measure_forgets_the_target_of_before(known: Contract) -> None:
    first = plan.values(known, "vision", card(), ServeRequest(scale_by="cpu", target=80, maximum=6), {})
    assert first["autoscaling"] == {"by": "cpu", "max": 6, "target": 80}
    second = plan.values(known, "vision", card(), ServeRequest(scale_by="requests", source="keda"), first)
    assert second["autoscaling"]["target"] == 0 and second["autoscaling"]["max"] == 6
    assert second["autoscaling"]["prometheus"] == "http://prometheus:9090"


def test_what_can_not_be_served_is_said(known: Contract) -> None:
    with pytest.raises(UsageError, match=r"digits@v1 can't be served: its card lacks inputs, outputs"):
        plan.values(known, "vision", card(inputs=[], outputs=[]), ServeRequest(), {})
    with pytest.raises(UsageError, match=r"uses sklearn, for which the platform has no server. use one of onnx"):
        plan.values(known, "vision", card(framework="sklearn"), ServeRequest(), {})
    with pytest.raises(UsageError, match="the platform has no image for vllm"):
        plan.values(known, "vision", card(), ServeRequest(runtime="vllm", gpus=1), {})
    known.raw["serving"] = {**SERVING, "gpus": False}
    with pytest.raises(UsageError, match=r"gives no GPUs to servers, which would hold them as long as the model is in"):
        plan.values(known, "vision", card(), ServeRequest(gpus=1), {})
    del known.raw["serving"]
    with pytest.raises(
        TrainyardError, match=r"this platform serves no models. ask your platform engineer to set serving"
    ):
        plan.values(known, "vision", card(), ServeRequest(), {})


def test_values_of_a_file_go_before_all_else(known: Contract) -> None:
    more = {"access": {"ingress": {"className": "nginx"}}, "rollout": {"drainSeconds": 60}}
    made = plan.values(known, "vision", card(), ServeRequest(access="namespaces", values=more), {})
    assert made["access"] == {"from": "namespaces", "ingress": {"className": "nginx"}}
    assert made["rollout"] == {"drainSeconds": 60}


def test_settings_that_nobody_can_read_are_none() -> None:
    for text in ("", "{", "[]"):
        assert settings.read({"metadata": {"annotations": {settings.NOTE: text}}}) == {}
    assert settings.read(None) == {}
