"""`trainyard train` with a fake cluster: settings, what is sent, and how the command ends."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from error_lines import sentence
from train_cluster import Cluster, Object, group, pod, state

from trainyard.errors import UsageError
from trainyard.kinds import check
from trainyard.kube import Access
from trainyard.training import follow, launch, settings, starter

PYTHON = ("--", "python", "train.py")


@pytest.fixture
def train(run: Any, folder: Path, platform: Path) -> Callable[..., tuple[int, str, str]]:
    """`train("--detach")` runs `trainyard train` of the folder, on the platform."""

    def call(*words: str, command: tuple[str, ...] = PYTHON) -> tuple[int, str, str]:
        made: tuple[int, str, str] = run("train", "--dir", folder, "--contract", platform, *words, *command)
        return made

    return call


@pytest.fixture
def dry(train: Any) -> Callable[..., tuple[int, str, str]]:
    """The same, which only prints."""
    return lambda *words, **more: train("-n", "speech", "--dry-run", *words, **more)


def test_flags_go_over_the_file_and_env_is_joined(folder: Path) -> None:
    (folder / "trainyard.yaml").write_text("name: a\nnodes: 2\nenv: {A: '1', B: '2'}\ncommand: [python, train.py]\n")
    found = settings.merged(folder, None, {"nodes": 4, "env": {"B": "3"}}, ["sh", "run.sh"])
    assert found == {"name": "a", "nodes": 4, "env": {"A": "1", "B": "3"}, "command": ["sh", "run.sh"]}
    with pytest.raises(UsageError, match=r"flags: nodes is 0\. use at least 1"):
        settings.merged(folder, None, {"nodes": 0}, [])


def test_a_dry_run_needs_no_cluster_and_prints_the_job(dry: Any) -> None:
    words = ["--gpus", "2", "--nodes", "2"]
    code, out, err = dry(*words, command=(*PYTHON, "--lr", "0.1"))
    made = yaml.safe_load(out)
    assert (code, err, made["kind"]) == (0, "", "PyTorchJob")
    master = made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    assert master["command"][3:5] == ["torch", "python"]  # after the line that says on which device
    assert master["command"][7:] == ["2", "train.py", "--lr", "0.1"]
    code, out, _ = dry(*words, "-o", "json", command=("--", "true"))
    assert json.loads(out)["metadata"]["namespace"] == "speech"


def test_horovodrun_is_an_mpijob_and_an_elastic_job_without_snapshots_is_warned_of(dry: Any) -> None:
    ranks = ("--", "horovodrun", "-np", "4", "-H", "server1:2,server2:2", "python", "train.py")
    code, out, err = dry("--gpus", "2", command=ranks)
    spec = yaml.safe_load(out)["spec"]
    assert (code, spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]) == (0, 2, 2)
    said = "horovodrun is run as an MPIJob: 2 nodes with 2 ranks each, which the queue chooses in place of "
    assert err == f"{said}server1, server2\n"
    code, out, err = dry("--gpus", "2", "--nodes", "2", "--min-nodes", "1")
    assert (code, yaml.safe_load(out)["spec"]["elasticPolicy"]["minReplicas"]) == (0, 1)
    assert "set the folder of checkpoints with --checkpoints" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpus", "3", "--nodes", "2"], "requests 6 GPUs over all nodes, but team speech may use 4"),
        (["--build"], "can't build an image in a team's namespace"),
        (["--mount", "a"], "--mount: expected CLAIM:PATH or CLAIM:PATH:ro, got 'a'"),
        (["--env", "X"], "--env: expected NAME=VALUE, got 'X'"),
        (["--deadline", "soon"], 'flags: invalid deadline: "soon". use a duration such as 90m, 12h or 2d'),
        (["--image", "!"], 'flags: invalid image: "!"'),
        (["--resume", "a"], "no folder of checkpoints is set"),
        (["--framework", "job", "--nodes", "2"], "a plain Job is one pod"),
        (["-n", "none"], "has no team none; its teams: speech"),
        (["--file", "none.yaml"], "the settings can't be read"),
        (["--dir", "none"], "no such folder"),
    ],
)
def test_wrong_usage_is_one_sentence(dry: Any, words: list[str], says: str) -> None:
    code, out, err = dry(*words)
    assert (code, out) == (2, "") and says in sentence(err)


def test_what_no_image_has_is_refused_before_anything_is_sent(dry: Any, folder: Path) -> None:
    (folder / "train.py").write_text("import torch\nimport sklearn.svm\n")
    code, out, err = dry()
    assert (code, out) == (2, "")
    assert "train.py:2: imports sklearn, which the image trainer-torch lacks" in err
    assert "write scikit-learn into requirements.txt" in err


def test_a_dry_run_says_what_is_in_doubt_and_what_is_installed(dry: Any, folder: Path) -> None:
    (folder / "train.py").write_text("import torch\nimport cv2\nimport joblib\n")
    (folder / "requirements.txt").write_text("opencv-python\n")
    code, out, err = dry()
    said, doubt = err.splitlines()
    assert (code, yaml.safe_load(out)["kind"]) == (0, "PyTorchJob")
    assert said.startswith("requirements.txt: 1 requirement")
    assert doubt.startswith("warning: train.py:3 imports joblib, which the image trainer-torch lacks")


def test_what_the_cluster_would_refuse_is_said_before_anything_is_sent(train: Any, played: Any) -> None:
    snapshot = played({"job": state()})
    code, _, err = train("--image", "ghcr.io/someone/else:1")
    assert code == 2 and "ghcr.io/someone/else:1" in err and "(p17, " in err
    assert snapshot.cluster.created == [] and snapshot.sent == []


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SimpleNamespace]:
    """A cluster and a store behind the command; the job ends as the snapshots say."""

    def play(*polls: Object, present: bool = False, **more: Any) -> SimpleNamespace:
        cluster, sent = Cluster(*polls, **more), []

        @contextmanager
        def open_store(*_: object) -> Iterator[SimpleNamespace]:
            def put(path: Path, place: str, **_: Any) -> bool:
                sent.append(place)
                return not present

            yield SimpleNamespace(put=put, stat=lambda place: None)

        monkeypatch.setattr(Access, "connect", lambda self: cluster)
        monkeypatch.setattr(launch, "open_store", open_store)
        monkeypatch.setenv("TERM", "dumb")
        return SimpleNamespace(cluster=cluster, sent=sent)

    return play


def test_the_command_sends_creates_follows_and_ends_with_the_job_s_code(
    train: Any, played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "LETTERS", "z")
    failed = {"job": state(Failed="no"), "pods": [pod("x-worker-0", "Failed", 3, job="x-zzzzz")]}
    snapshot = played(failed, logs={"x-worker-0": ["RuntimeError: no data"]})
    code, _, err = train("--name", "x")
    assert code == 3 and "RuntimeError: no data" in err and "code sent; created x-" in err
    assert snapshot.cluster.created == [("PyTorchJob", True), ("PyTorchJob", False)]
    assert snapshot.sent[0].startswith("runs/speech/code/")
    played({"job": state(Succeeded="")}, present=True)
    code, _, err = train("--name", "x")
    assert code == 0 and "code unchanged, not sent" in err and "succeeded" in err


def test_detached_it_prints_the_run_alone(train: Any, played: Any) -> None:
    snapshot = played({"job": state()})
    code, out, err = train("--detach")
    assert code == 0 and out.startswith("digits-") and f"--attach {out.strip()}" in err
    assert snapshot.cluster.at == -1


def test_it_can_wait_for_what_the_team_has_in_the_queue(
    train: Any, played: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    snapshot = played({"podgroups": [group("earlier", "Inqueue", "1")]}, {"podgroups": []})
    code, _, err = train("--after-started", "--detach")
    assert code == 0 and "waiting until PodGroup earlier has started in queue speech" in err
    assert [dry for _, dry in snapshot.cluster.created] == [True, False]


def test_ctrl_c_leaves_the_job_and_says_how_to_go_on(train: Any, played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    snapshot = played({"job": state()})
    monkeypatch.setattr(follow, "follow", interrupted)
    code, _, err = train()
    assert code == 130 and "continues. Follow it:  trainyard train -n speech --attach digits-" in err
    assert "trainyard runs stop -n speech digits-" in err
    assert snapshot.cluster.deleted == []


def test_a_run_that_is_there_can_be_attached_to(train: Any, played: Any) -> None:
    played({"job": state(Succeeded="")})
    assert train("--attach", "digits-abc", command=())[0] == 0
    played({"job": None})
    code, _, err = train("--attach", "digits-abc", command=())
    assert code == 2 and "no job digits-abc in speech" in err


def test_init_writes_settings_that_are_well_formed_and_asks_nothing(run: Any, folder: Path) -> None:
    code, out, _ = run("init", "--dir", folder)
    assert code == 0 and "framework pytorch (train.py imports torch)" in out
    found = check.settings((folder / "trainyard.yaml").read_text(), "trainyard.yaml")
    kind = {"name": "digits", "framework": "pytorch", "command": ["python3", "train.py"]}
    assert found == {**kind, "nodes": 1, "gpus": 0}
    assert (folder / ".trainyardignore").is_file()
    code, _, err = run("init", "--dir", folder)
    assert code == 2 and "already exists" in err
    assert run("init", "--dir", folder, "--force")[0] == 0


def test_every_remark_of_the_first_settings_is_a_setting_that_may_be_taken_in(folder: Path) -> None:
    starter.write(folder)
    text = (folder / "trainyard.yaml").read_text()
    keys = [
        line[2:]
        for line in text.splitlines()
        if line.startswith("# ") and line[2:].partition(":")[0] in check.schema()["properties"]
    ]
    assert len(keys) == len(check.schema()["properties"]) - len(starter.FIRST)
    check.settings("\n".join(keys), "remarks")
