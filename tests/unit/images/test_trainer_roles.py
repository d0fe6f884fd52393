"""The report of a rank, and how each framework's environment becomes a role. Needs no torch, TensorFlow or MPI."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="numpy is not installed, as the trainers need it")

from mnist import options, train_mpi, train_tensorflow, train_torch
from mnist.errors import TrainError
from mnist.result import Result, device_nodes, visible_devices
from mnist.store import open_store

CLUSTER = {"chief": ["c:2222"], "ps": ["p:2222"], "worker": ["w0:2222", "w1:2222"]}


def tf_config(role: str, index: int, cluster: dict[str, list[str]] = CLUSTER) -> dict[str, str]:
    return {
        "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}, "environment": "cloud"})
    }


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, []),
        ("", []),
        ("void", []),
        ("none", []),
        ("GPU-a", ["GPU-a"]),
        ("GPU-a, GPU-b,", ["GPU-a", "GPU-b"]),
        ("all", ["all"]),
    ],
)
def test_visible_devices(value: str | None, found: list[str]) -> None:
    assert visible_devices({} if value is None else {"NVIDIA_VISIBLE_DEVICES": value}) == found


def test_device_nodes_are_gpus_only_in_numeric_order(tmp_path: Path) -> None:
    for name in ("nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm", "null", "nvidia0"):
        (tmp_path / name).touch()
    assert device_nodes(tmp_path) == [f"{tmp_path}/nvidia{n}" for n in (0, 2, 10)]
    assert device_nodes(tmp_path / "missing") == []


def test_results_are_named_by_role_and_carry_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "gpu-node-1")
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "GPU-a")
    place = open_store(str(tmp_path))
    result = Result("pytorch", "gloo", "worker", 2, 3, 4, "cpu", "s3://datasets/mnist", accuracy=0.91234567)
    result.write_rank(place)
    result.write_metrics(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.json", "rank-worker-2.json"]
    facts = json.loads((tmp_path / "rank-worker-2.json").read_text())
    assert facts["node"] == "gpu-node-1"
    assert facts["visible_devices"] == ["GPU-a"]
    assert facts["accuracy"] == 0.912346
    assert facts["seconds"] > 0
    assert {"framework", "backend", "world_size", "rank", "loss", "samples", "hostname", "data_uri", "schema"} <= set(
        facts
    )


@pytest.mark.parametrize(
    ("env", "role", "index"),
    [
        ({}, "master", 0),
        ({"RANK": "0", "WORLD_SIZE": "4", "MASTER_ADDR": "m", "MASTER_PORT": "1"}, "master", 0),
        ({"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "m", "MASTER_PORT": "1"}, "worker", 2),
        ({"RANK": "0", "WORLD_SIZE": "1"}, "master", 0),
    ],
)
def test_world_of(env: dict[str, str], role: str, index: int) -> None:
    world = train_torch.world_of(env)
    assert (world.role, world.index) == (role, index)


@pytest.mark.parametrize(
    "env",
    [
        {"WORLD_SIZE": "4"},
        {"WORLD_SIZE": "four", "RANK": "0"},
        {"WORLD_SIZE": "2", "RANK": "2"},
        {"WORLD_SIZE": "2", "RANK": "1"},
        {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "m"},
    ],
)
def test_world_of_refuses(env: dict[str, str]) -> None:
    with pytest.raises(TrainError):
        train_torch.world_of(env)


def test_tasks_are_ranked_chief_servers_workers() -> None:
    roles = [("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1)]
    tasks = [train_tensorflow.task_of(tf_config(role, index)) for role, index in roles]
    assert [task.rank for task in tasks] == [0, 1, 2, 3]
    assert {task.world for task in tasks} == {4}
    alone = train_tensorflow.task_of({})
    assert (alone.alone, alone.world, alone.rank) == (True, 1, 0)


def test_a_master_replica_is_the_chief() -> None:
    cluster = {"master": ["m:2222"], "ps": ["p:2222"], "worker": ["w:2222"]}
    task = train_tensorflow.task_of(tf_config("master", 0, cluster))
    assert (task.role, task.cluster["chief"]) == ("chief", ["m:2222"])


def test_without_a_chief_worker_0_coordinates_and_the_others_move_up() -> None:
    """As of a TFJob with 2 PS and 4 workers, whose end is that of worker 0."""
    cluster = {"ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1", "w2:1", "w3:1"]}
    roles = [("worker", 0), ("ps", 0), ("ps", 1), ("worker", 1), ("worker", 2), ("worker", 3)]
    tasks = [train_tensorflow.task_of(tf_config(role, index, cluster)) for role, index in roles]
    assert [(task.role, task.index) for task in tasks] == [
        ("chief", 0), ("ps", 0), ("ps", 1), ("worker", 0), ("worker", 1), ("worker", 2),
    ]  # fmt: skip
    assert [task.rank for task in tasks] == list(range(6))
    whole = {"chief": ["w0:1"], "ps": ["p0:1", "p1:1"], "worker": ["w1:1", "w2:1", "w3:1"]}
    assert all(task.cluster == whole for task in tasks)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"TF_CONFIG": "{"}, "not a cluster description"),
        ({"TF_CONFIG": "[]"}, "not a cluster description"),
        (tf_config("worker", 0, {"worker": ["w:1"], "ps": ["p:1"]}), "has no chief; .* a Chief or a second Worker"),
        (tf_config("worker", 0, {"worker": ["w:1", "w:2"]}), "has no ps"),
        (tf_config("worker", 2, {"worker": ["w:1", "w:2"], "ps": ["p:1"]}), "unknown task worker 1"),
        (tf_config("worker", 2), "unknown task worker 2"),
        (tf_config("evaluator", 0), "unknown task evaluator 0"),
    ],
)
def test_task_of_refuses(env: dict[str, str], message: str) -> None:
    with pytest.raises(TrainError, match=message):
        train_tensorflow.task_of(env)


def test_mpi_ranks_fail_without_horovod_and_never_take_another_back_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "horovod", None)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    said = r"horovod can't be imported here .* such as trainer-horovod, or say --backend mpi4py"
    with pytest.raises(TrainError, match=said):
        train_mpi.join_group("horovod")
    with pytest.raises(TrainError, match="mpi4py can't be imported here"):
        train_mpi.join_group("mpi4py")
    with pytest.raises(SystemExit):
        train_mpi.main(["--data", str(tmp_path), "--out", str(tmp_path), "--backend", "any"])
    assert "choose from" in capsys.readouterr().err


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_servers_end_after_the_chief_and_not_at_a_blink() -> None:
    clock = Clock()
    up = lambda _: 10 <= clock.now < 30 and not 20 <= clock.now < 22  # noqa: E731
    train_tensorflow.wait_for_end("c:2222", up, clock, clock.sleep)
    assert 30 < clock.now < 40


def test_servers_give_up_on_a_chief_that_never_comes() -> None:
    clock = Clock()
    with pytest.raises(TrainError, match="did not come up"):
        train_tensorflow.wait_for_end("c:2222", lambda _: False, clock, clock.sleep)
    assert clock.now == pytest.approx(train_tensorflow.CHIEF_PATIENCE_S, abs=5)


def test_accuracy_bar() -> None:
    options.check_accuracy(0.85, 0.85)
    with pytest.raises(TrainError, match=r"0\.8499 is below the bar of 0\.8500"):
        options.check_accuracy(0.8499, 0.85)


def test_a_known_error_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(_: object) -> None:
        raise TrainError("broken", where="s3://a", hint="fix it")

    assert options.run(fails, []) == 1
    assert capsys.readouterr().err == "error: s3://a: broken; fix it\n"
    assert options.run(lambda _: None, []) == 0


def test_bad_flags_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    flags = options.parser("x", lr=0.1, epochs=1)
    for bad in (["--epochs", "0"], ["--min-accuracy", "1.5"], ["--train-samples", "-3"]):
        with pytest.raises(SystemExit) as stopped:
            flags.parse_args(["--data", "a", "--out", "b", *bad])
        assert stopped.value.code == 2
    assert "above zero" in capsys.readouterr().err
