"""`trainyard train` with a cluster that is played: settings, what is sent, and how the command ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from train_cluster import VALUES, Cluster, Object, group, pod, state

from trainyard import cli, contract
from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import TeamConfig, check
from trainyard.kube import Access
from trainyard.training import follow, launch, results, settings, starter
from trainyard.training.transfer import StoreUnavailableError


@pytest.fixture
def platform(tmp_path: Path) -> Path:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "digits"
    made.mkdir()
    (made / "train.py").write_text("import torch\n")
    return made


@pytest.fixture
def team_config(platform: Path) -> TeamConfig:
    return TeamConfig.of(contract.load(platform), "speech")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trainyard", *map(str, words)])
        monkeypatch.setattr("signal.signal", lambda *_: None)
        with pytest.raises(SystemExit) as ended:
            cli.main()
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err
        return int(ended.value.code or 0), shown.out, shown.err

    return call


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(results, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(results, "WAIT_S", 0.2)


def test_flags_go_over_the_file_and_env_is_joined(folder: Path) -> None:
    (folder / "trainyard.yaml").write_text("name: a\nnodes: 2\nenv: {A: '1', B: '2'}\ncommand: [python, train.py]\n")
    found = settings.merged(folder, None, {"nodes": 4, "env": {"B": "3"}}, ["sh", "run.sh"])
    assert found == {"name": "a", "nodes": 4, "env": {"A": "1", "B": "3"}, "command": ["sh", "run.sh"]}
    with pytest.raises(UsageError, match=r"flags: nodes is 0\. the least is 1"):
        settings.merged(folder, None, {"nodes": 0}, [])


def test_a_dry_run_needs_no_cluster_and_prints_the_job(run: Any, folder: Path, platform: Path) -> None:
    words = [
        "train",
        "--dir",
        folder,
        "--contract",
        platform,
        "-n",
        "speech",
        "--dry-run",
        "--gpus",
        "2",
        "--nodes",
        "2",
    ]
    code, out, err = run(*words, "--", "python", "train.py", "--lr", "0.1")
    made = yaml.safe_load(out)
    assert (code, err, made["kind"]) == (0, "", "PyTorchJob")
    master = made["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    assert master["command"][3:5] == ["torch", "python"]  # after the line that says on which device
    assert master["command"][7:] == ["2", "train.py", "--lr", "0.1"]
    code, out, _ = run(*words, "-o", "json", "--", "true")
    assert json.loads(out)["metadata"]["namespace"] == "speech"


def test_horovodrun_is_an_mpijob_and_an_elastic_job_without_snapshots_is_warned_of(
    run: Any, folder: Path, platform: Path
) -> None:
    words = ["train", "--dir", folder, "--contract", platform, "-n", "speech", "--dry-run", "--gpus", "2"]
    code, out, err = run(*words, "--", "horovodrun", "-np", "4", "-H", "server1:2,server2:2", "python", "train.py")
    spec = yaml.safe_load(out)["spec"]
    assert (code, spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]) == (0, 2, 2)
    said = "horovodrun is run as an MPIJob: 2 nodes with 2 ranks each, which the queue chooses in place of "
    assert err == f"{said}server1, server2\n"
    code, out, err = run(*words, "--nodes", "2", "--min-nodes", "1", "--", "python", "train.py")
    assert (code, yaml.safe_load(out)["spec"]["elasticPolicy"]["minReplicas"]) == (0, 1)
    assert "name the folder of snapshots with --checkpoints" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpus", "3", "--nodes", "2"], "asks for 6 GPUs over all nodes, team speech may have 4"),
        (["--build"], "an image can't be built in a team's namespace"),
        (["--mount", "a"], "--mount a is no CLAIM:PATH"),
        (["--env", "X"], "--env X is no NAME=VALUE"),
        (["--deadline", "soon"], 'flags: deadline is "soon"'),
        (["--image", "!"], 'flags: image is "!"'),
        (["--resume", "a"], "nothing says where checkpoints are"),
        (["--framework", "job", "--nodes", "2"], "a plain Job is one pod"),
        (["-n", "none"], "has no team none; its teams: speech"),
        (["--file", "none.yaml"], "the settings can't be read"),
        (["--dir", "none"], "there is no such folder"),
    ],
)
def test_wrong_usage_is_one_sentence(run: Any, folder: Path, platform: Path, words: list[str], says: str) -> None:
    base = ["train", "--dir", folder, "--contract", platform, "-n", "speech", "--dry-run"]
    code, out, err = run(*base, *words, "--", "python", "train.py")
    assert (code, out) == (2, "") and says in err and len(err.strip().splitlines()) == 1


def test_no_command_and_no_framework_for_several_nodes_are_said(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="there is no command to run"):
        launch.prepare(folder, {}, team_config, tmp_path / "x")
    (folder / "train.py").write_text("import numpy")
    with pytest.raises(UsageError, match="nothing says how 2 nodes find each other"):
        launch.prepare(folder, {"command": ["python", "train.py"], "nodes": 2}, team_config, tmp_path / "x")


def test_a_keras_script_becomes_a_tfjob_on_the_image_that_has_keras(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    (folder / "train.py").write_text("import keras\nimport h5py\nfrom mnist import data\n")
    made = launch.prepare(folder, {"command": ["python", "train.py"]}, team_config, tmp_path / "x")
    chief = made.manifest["spec"]["tfReplicaSpecs"]["Chief"]["template"]["spec"]["containers"][0]
    assert "/trainer-tensorflow:" in chief["image"] and made.why == "train.py imports keras"
    assert chief["command"][0] == "python" and chief["command"][-3:] == ["tensorflow", "python", "train.py"]


def test_another_image_of_the_platform_is_taken_and_told_and_its_python_says_the_device(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    (folder / "train.py").write_text("import transformers\ndef f():\n    import wandb\n")
    made = launch.prepare(folder, {"command": ["torchrun", "train.py"]}, team_config, tmp_path / "x")
    master = made.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    assert "/trainer-transformers:" in master["image"]
    assert made.why == "train.py imports transformers; image trainer-transformers, which has transformers"
    assert master["command"][0] == "python3" and master["command"][-2:] == ["torchrun", "train.py"]
    (doubt,) = made.doubts
    assert doubt.startswith("train.py:3 imports wandb, which the image trainer-transformers lacks; write wandb into")


def test_of_another_image_nothing_is_known_and_only_python_says_the_device(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    (folder / "train.py").write_text("import torch, anything\n")
    given = {"image": "team/image:1", "command": ["torchrun", "train.py"]}
    for command, due in ((["torchrun", "train.py"], "torchrun"), (["python", "train.py"], "python")):
        made = launch.prepare(folder, {**given, "command": command}, team_config, tmp_path / "x")
        words = made.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["command"]
        assert words[0] == due and (len(words) > 2) == (due == "python")


def test_what_no_image_has_is_refused_before_anything_is_sent(run: Any, folder: Path, platform: Path) -> None:
    (folder / "train.py").write_text("import torch\nimport sklearn.svm\n")
    base = ["train", "--dir", folder, "--contract", platform, "-n", "speech", "--dry-run"]
    code, out, err = run(*base, "--", "python", "train.py")
    assert (code, out) == (2, "")
    assert "train.py:2: imports sklearn, which the image trainer-torch lacks" in err
    assert "write scikit-learn into requirements.txt" in err


def test_a_dry_run_says_what_is_in_doubt_and_what_is_installed(run: Any, folder: Path, platform: Path) -> None:
    (folder / "train.py").write_text("import torch\nimport cv2\nimport joblib\n")
    (folder / "requirements.txt").write_text("opencv-python\n")
    base = ["train", "--dir", folder, "--contract", platform, "-n", "speech", "--dry-run"]
    code, out, err = run(*base, "--", "python", "train.py")
    said, doubt = err.splitlines()
    assert (code, yaml.safe_load(out)["kind"]) == (0, "PyTorchJob")
    assert said.startswith("requirements.txt: 1 requirement")
    assert doubt.startswith("warning: train.py:3 imports joblib, which the image trainer-torch lacks")


def test_a_script_that_saves_beside_itself_is_warned_of(folder: Path, team_config: TeamConfig, tmp_path: Path) -> None:
    (folder / "train.py").write_text("import keras\nmodel = keras.Sequential()\nmodel.save('my_model.h5')\n")
    made = launch.prepare(folder, {"command": ["python", "train.py"]}, team_config, tmp_path / "x")
    due = "train.py:3 saves my_model.h5, which goes with the pod; save it below results/, which TRAINYARD_RESULTS names"
    assert made.doubts == (due,)


def test_the_same_code_has_the_same_place_and_each_run_its_own(
    folder: Path, team_config: TeamConfig, tmp_path: Path
) -> None:
    given = {"command": ["python", "train.py"], "checkpoints": "ckpt"}
    one, two = (launch.prepare(folder, given, team_config, tmp_path / "x", resume="old-run") for _ in range(2))
    assert one.spec.code == two.spec.code == f"speech/code/{one.code.sha256}.tar.gz"
    assert one.spec.name != two.spec.name and one.spec.output == f"speech/jobs/{one.spec.name}"
    fetch = one.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["initContainers"][0]["args"]
    assert "--restore=runs/speech/jobs/old-run/ckpt=ckpt" in fetch
    assert one.why == "train.py imports torch"


def test_what_the_cluster_would_refuse_is_said_before_anything_is_sent(
    run: Any, played: Any, folder: Path, platform: Path
) -> None:
    snapshot = played({"job": state()})
    words = ["train", "--dir", folder, "--contract", platform, "--image", "ghcr.io/someone/else:1"]
    code, _, err = run(*words, "--", "python", "train.py")
    assert code == 2 and "ghcr.io/someone/else:1" in err and "(p17, " in err
    assert snapshot.cluster.created == [] and snapshot.sent == []


class Shelf:
    """A store that is played: places and what lies there. `unavailable`: so many polls end with `error`."""

    error: TrainyardError = StoreUnavailableError("the object store does not answer")

    def __init__(self, files: dict[str, bytes], unavailable: int = 0) -> None:
        self.files, self.unavailable = files, unavailable

    def stat(self, place: str) -> object:
        if self.unavailable:
            self.unavailable -= 1
            raise self.error
        return self.files.get(place)

    def read(self, place: str) -> bytes:
        return self.files[place]

    def tree(self, place: str, target: Path, **_: Any) -> list[str]:
        return sorted(key.removeprefix(f"{place}/") for key in self.files if key.startswith(f"{place}/"))


def index(complete: bool, **files: int) -> bytes:
    return json.dumps({"complete": complete, "files": {f"results/{k}": {"size": v} for k, v in files.items()}}).encode()


def test_results_are_what_rank_0_left() -> None:
    base = "runs/speech/jobs/r"
    shelf = Shelf({f"{base}/.trainyard.json": index(True, model=3), f"{base}/results/model": b"abc"})
    assert results.fetch(shelf, "speech/jobs/r", "results", Path("x")) == ["model"]  # type: ignore[arg-type]
    assert results.fetch(Shelf({}), "speech/jobs/r", "results", Path("x")) == []  # type: ignore[arg-type]
    late = Shelf({f"{base}/.trainyard.json": index(False, model=3), f"{base}/results/model": b"abc"})
    assert results.fetch(late, "speech/jobs/r", "results", Path("x")) == ["model"]  # type: ignore[arg-type]
    lost = Shelf({f"{base}/.trainyard.json": index(True, model=3)})
    with pytest.raises(TrainyardError, match="model is not in the store any longer"):
        results.fetch(lost, "speech/jobs/r", "results", Path("x"))  # type: ignore[arg-type]


def test_a_store_that_is_silent_for_a_moment_is_asked_again() -> None:
    base = "runs/speech/jobs/r"
    shelf = Shelf({f"{base}/.trainyard.json": index(True, model=3), f"{base}/results/model": b"abc"}, unavailable=3)
    assert results.fetch(shelf, "speech/jobs/r", "results", Path("x")) == ["model"]  # type: ignore[arg-type]
    shelf.unavailable = 10_000
    with pytest.raises(TrainyardError, match="does not answer"):
        results.fetch(shelf, "speech/jobs/r", "results", Path("x"))  # type: ignore[arg-type]
    shelf.unavailable, shelf.error = 10_000, TrainyardError("the object store refuses")
    with pytest.raises(TrainyardError, match="refuses"):
        results.fetch(shelf, "speech/jobs/r", "results", Path("x"))  # type: ignore[arg-type]
    assert shelf.unavailable == 9_999


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, platform: Path) -> Callable[..., SimpleNamespace]:
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
    run: Any, played: Any, folder: Path, platform: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "LETTERS", "z")
    failed = {"job": state(Failed="no"), "pods": [pod("x-worker-0", "Failed", 3, job="x-zzzzz")]}
    snapshot = played(failed, logs={"x-worker-0": ["RuntimeError: no data"]})
    words = ["train", "--dir", folder, "--contract", platform, "--name", "x"]
    code, _, err = run(*words, "--", "python", "train.py")
    assert code == 3 and "RuntimeError: no data" in err and "code sent; created x-" in err
    assert snapshot.cluster.created == [("PyTorchJob", True), ("PyTorchJob", False)]
    assert snapshot.sent[0].startswith("runs/speech/code/")
    played({"job": state(Succeeded="")}, present=True)
    code, _, err = run(*words, "--", "python", "train.py")
    assert code == 0 and "code unchanged, not sent" in err and "succeeded" in err


def test_detached_it_prints_the_run_alone(run: Any, played: Any, folder: Path, platform: Path) -> None:
    snapshot = played({"job": state()})
    code, out, err = run("train", "--dir", folder, "--contract", platform, "--detach", "--", "python", "train.py")
    assert code == 0 and out.startswith("digits-") and f"--attach {out.strip()}" in err
    assert snapshot.cluster.at == -1


def test_it_can_wait_for_what_the_team_has_in_the_queue(
    run: Any, played: Any, folder: Path, platform: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    snapshot = played({"podgroups": [group("earlier", "Inqueue", "1")]}, {"podgroups": []})
    words = ["train", "--dir", folder, "--contract", platform, "--after-started", "--detach"]
    code, _, err = run(*words, "--", "python", "train.py")
    assert code == 0 and "waiting until PodGroup earlier has started in queue speech" in err
    assert [dry for _, dry in snapshot.cluster.created] == [True, False]


def test_ctrl_c_leaves_the_job_and_says_how_to_go_on(
    run: Any, played: Any, folder: Path, platform: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    snapshot = played({"job": state()})
    monkeypatch.setattr(follow, "follow", interrupted)
    code, _, err = run("train", "--dir", folder, "--contract", platform, "--", "python", "train.py")
    assert code == 130 and "goes on. Follow it:  trainyard train -n speech --attach digits-" in err
    assert "trainyard runs stop -n speech digits-" in err
    assert snapshot.cluster.deleted == []


def test_a_run_that_is_there_can_be_attached_to(run: Any, played: Any, folder: Path, platform: Path) -> None:
    found = state(Succeeded="")
    played({"job": found})
    assert run("train", "--dir", folder, "--contract", platform, "--attach", "digits-abc")[0] == 0
    played({"job": None})
    code, _, err = run("train", "--dir", folder, "--contract", platform, "--attach", "digits-abc")
    assert code == 2 and "there is no job digits-abc in speech" in err


def test_init_writes_settings_that_are_well_formed_and_asks_nothing(run: Any, folder: Path) -> None:
    code, out, _ = run("init", "--dir", folder)
    assert code == 0 and "framework pytorch (train.py imports torch)" in out
    text = (folder / "trainyard.yaml").read_text()
    found = check.settings(text, "trainyard.yaml")
    assert found == {
        "name": "digits",
        "framework": "pytorch",
        "command": ["python3", "train.py"],
        "nodes": 1,
        "gpus": 0,
    }
    assert (folder / ".trainyardignore").is_file()
    code, _, err = run("init", "--dir", folder)
    assert code == 2 and "is there already" in err
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
