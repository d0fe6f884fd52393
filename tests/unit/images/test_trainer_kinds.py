"""JAX, PaddlePaddle and XGBoost: meaning of their operators' variables, and two processes that really train together.

Those two need the framework and are skipped without it; all else needs numpy alone.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

np = pytest.importorskip("numpy", reason="numpy is not installed, as the trainers need it")

from test_trainer_data import write_set  # noqa: E402

from mnist import perceptron, train_jax, train_paddle, train_xgboost  # noqa: E402
from mnist.errors import TrainError  # noqa: E402
from trainyard_dev.apiserver.processes import free_ports  # noqa: E402

ROOT = Path(__file__).parents[3]
NEW = ("jax", "paddle", "xgboost")
JAX = {"COORDINATOR_ADDRESS": "mnist-worker-0", "COORDINATOR_PORT": "6666", "NUM_PROCESSES": "2", "PROCESS_ID": "1"}
PADDLE = {
    "PADDLE_JOB_ID": "mnist",
    "PADDLE_MASTER": "mnist-worker-0:36543",
    "PADDLE_NNODES": "2",
    "PADDLE_TRAINER_ID": "1",
}
LAUNCHED = {"PADDLE_MASTER": "10.0.0.1:5", "PADDLE_NNODES": "2", "PADDLE_TRAINERS_NUM": "4", "PADDLE_TRAINER_ID": "3"}


def without(env: dict[str, str], *names: str, **others: str) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in names} | others


of_jax, of_paddle = train_jax.processes_of, train_paddle.trainers_of


@pytest.mark.parametrize(
    ("place_of", "env", "rank", "size", "host"),
    [
        (of_jax, {}, 0, 1, ""),
        (of_jax, JAX, 1, 2, "mnist-worker-0"),
        (of_jax, without(JAX, NUM_PROCESSES="1", PROCESS_ID="0"), 0, 1, ""),
        (of_paddle, {}, 0, 1, ""),
        (of_paddle, PADDLE, 1, 2, "mnist-worker-0"),
        (of_paddle, LAUNCHED, 3, 4, "10.0.0.1"),
        (of_paddle, {"PADDLE_NNODES": "1", "PADDLE_MASTER": "10.0.0.1:36543"}, 0, 1, ""),
    ],
)
def test_places_of_processes(
    place_of: Callable[..., Any], env: dict[str, str], rank: int, size: int, host: str
) -> None:
    place = place_of(env)
    assert (place.rank, place.size, place.host) == (rank, size, host)


@pytest.mark.parametrize(
    ("place_of", "env", "message"),
    [
        (of_jax, without(JAX, "PROCESS_ID"), "PROCESS_ID and NUM_PROCESSES must both be whole numbers"),
        (of_jax, without(JAX, PROCESS_ID="2"), "PROCESS_ID 2 is outside NUM_PROCESSES 2"),
        (of_jax, without(JAX, "COORDINATOR_ADDRESS"), "COORDINATOR_ADDRESS and COORDINATOR_PORT must be set"),
        (of_jax, without(JAX, "COORDINATOR_PORT"), "COORDINATOR_ADDRESS and COORDINATOR_PORT must be set"),
        (of_paddle, without(PADDLE, "PADDLE_TRAINER_ID"), r"PADDLE_TRAINER_ID is not set.*replica-index"),
        (of_paddle, without(PADDLE, PADDLE_TRAINER_ID="x"), "must both be whole numbers"),
        (of_paddle, without(PADDLE, PADDLE_TRAINER_ID="2"), "PADDLE_TRAINER_ID 2 is outside PADDLE_NNODES 2"),
        (of_paddle, without(LAUNCHED, PADDLE_TRAINER_ID="4"), "PADDLE_TRAINER_ID 4 is outside PADDLE_TRAINERS_NUM 4"),
        (of_paddle, without(PADDLE, "PADDLE_MASTER"), "PADDLE_MASTER must be host:port"),
        (of_paddle, without(PADDLE, PADDLE_MASTER=":36543"), "PADDLE_MASTER must be host:port"),
    ],
)
def test_an_environment_without_a_place_is_refused(
    place_of: Callable[..., Any], env: dict[str, str], message: str
) -> None:
    with pytest.raises(TrainError, match=message):
        place_of(env)


def test_paddle_is_told_what_the_operator_leaves_out() -> None:
    environment = train_paddle.trainers_of(PADDLE).environment()
    assert environment["PADDLE_TRAINERS_NUM"] == "2"
    assert environment["PADDLE_TRAINER_ID"] == "1"
    assert environment["PADDLE_CURRENT_ENDPOINT"] == f"{socket.gethostname()}:36543"


def test_boosting_has_a_chance_for_each_class() -> None:
    settings = train_xgboost.parameters(0.5, 1, "cpu")
    assert (settings["objective"], settings["num_class"], settings["eta"]) == ("multi:softprob", 10, 0.5)


def pins(image: str) -> dict[str, str]:
    """Package and version -> hash, as an image's requirements have them."""
    text = (ROOT / "images" / image / "requirements.txt").read_text()
    found = dict(re.findall(r"^(\S+==\S+) \\\n +--hash=sha256:([0-9a-f]{64})$", text, re.M))
    assert len(found) == len(re.findall("^[^# ]", text, re.M)), "each line is an exact pin with one hash"
    return found


@pytest.mark.parametrize("kind", NEW)
def test_the_store_client_is_that_of_the_other_trainers(kind: str) -> None:
    names = yaml.safe_load((ROOT / "images" / "requirements.yaml").read_text())["sets"]["store-client"]
    client = {pin: digest for pin, digest in pins("trainer-torch").items() if pin.partition("==")[0] in names}
    assert len(client) == len(names)
    assert client.items() <= pins(f"trainer-{kind}").items()
    assert not [pin for pin in pins(f"trainer-{kind}") if pin.startswith("nvidia")]


@pytest.mark.parametrize(
    ("kind", "field", "replicas"),
    [
        ("JAXJob", "jaxReplicaSpecs", {"Worker": 2}),
        ("PaddleJob", "paddleReplicaSpecs", {"Worker": 2}),
        ("XGBoostJob", "xgbReplicaSpecs", {"Master": 1, "Worker": 1}),
    ],
)
def test_the_example_is_a_whole_gang_that_the_operator_can_read(
    kind: str, field: str, replicas: dict[str, int]
) -> None:
    name = kind.removesuffix("Job").lower()
    job = yaml.safe_load((ROOT / f"manifests/jobs/{name}job.yaml").read_text())
    assert (job["kind"], job["metadata"]["name"]) == (kind, f"mnist-{name}")
    specs = job["spec"][field]
    assert {role: spec["replicas"] for role, spec in specs.items()} == replicas
    assert job["spec"]["runPolicy"]["schedulingPolicy"]["minAvailable"] == sum(replicas.values())
    for spec in specs.values():
        (container,) = spec["template"]["spec"]["containers"]
        assert container["name"] == name, "the operator sets variables' ports by this name"
        assert container["command"] == ["python3", "-m", f"mnist.train_{name}"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
        ranked = [entry for entry in container["env"] if entry["name"] == "PADDLE_TRAINER_ID"]
        assert len(ranked) == (name == "paddle"), "PaddleJob's operator alone tells no rank"


def environment(kind: str, rank: int, port: int) -> dict[str, str]:
    """The variables that the operator would set, for two processes on this machine."""
    if kind == "jax":
        return {
            "COORDINATOR_ADDRESS": "127.0.0.1",
            "COORDINATOR_PORT": f"{port}",
            "NUM_PROCESSES": "2",
            "PROCESS_ID": f"{rank}",
        }
    if kind == "paddle":
        return {"PADDLE_MASTER": f"127.0.0.1:{port}", "PADDLE_NNODES": "2", "PADDLE_TRAINER_ID": f"{rank}"}
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}", "WORLD_SIZE": "2", "RANK": f"{rank}"}


@pytest.mark.parametrize("kind", NEW)
def test_two_processes_train_one_model(kind: str, tmp_path: Path) -> None:
    if find_spec(kind) is None:
        pytest.skip(f"{kind} is not installed")
    (tmp_path / "data").mkdir()
    write_set(tmp_path / "data", train=64, test=10)
    out, [port] = tmp_path / "out", free_ports(1)
    words = [sys.executable, "-m", f"mnist.train_{kind}", f"--data={tmp_path / 'data'}", f"--out={out}"]
    words += ["--train-samples=64", "--batch-size=16", "--min-accuracy=1"]  # which these few samples can't reach
    paths = os.pathsep.join([str(ROOT / "images/trainer"), *filter(None, [os.environ.get("PYTHONPATH")])])
    ranks = [
        subprocess.Popen(
            words,
            env=os.environ | {"PYTHONPATH": paths} | environment(kind, rank, port),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        logs = [rank.communicate(timeout=180)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, log in zip(ranks, logs, strict=True):
        assert rank.returncode == 1, log
        assert "is below the bar of 1.0000" in log
    metrics = json.loads((out / "metrics.json").read_text())
    assert (metrics["framework"], metrics["world_size"], metrics["samples"]) == (kind, 2, 32)
    assert (out / Path(metrics["checkpoint"]["uri"]).name).stat().st_size == metrics["checkpoint"]["bytes"]
    reports = sorted(path.name for path in out.glob("rank-*.json"))
    chief = "rank-master-0.json" if kind == "xgboost" else "rank-worker-0.json"
    second = "rank-worker-0.json" if kind == "xgboost" else "rank-worker-1.json"
    assert reports == [chief, second]
    accuracies = {json.loads((out / name).read_text())["accuracy"] for name in reports}
    assert accuracies == {metrics["accuracy"]}, "all ranks tell the accuracy of all test images"
    if kind != "xgboost":
        model = perceptron.from_bytes((out / perceptron.FILE).read_bytes())
        x = (np.arange(10)[:, None] / np.full((1, 784), 255)).astype(np.float32)
        assert model.accuracy(x, np.arange(10)) == pytest.approx(metrics["accuracy"])
