"""`trainyard train` with a cluster that is played: what is sent, what is shown, and how it ends."""

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

from trainyard import cli, contract
from trainyard.errors import TrainyardError, UsageError
from trainyard.jobs import Facts, JobSpec, check, manifest
from trainyard.kube import Access, KubeError
from trainyard.train import follow, launch, results, settings, starter, watch

VALUES = {"global": {"contract": {"teams": [{"name": "speech", "gid": 20002, "maxGpusPerJob": 4}]}}}
Object = dict[str, Any]


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
def facts(platform: Path) -> Facts:
    return Facts.of(contract.load(platform), "speech")


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


class Cluster:
    """Answers with one look after the other; the last one stays."""

    namespace = "speech"

    def __init__(self, *looks: Object, logs: dict[str, list[str]] | None = None) -> None:
        self.looks, self.at, self.printed, self.deleted, self.created = list(looks), -1, logs or {}, [], []  # type: ignore[var-annotated]

    def path(self, version: str, resource: str, name: str = "", **_: str) -> str:
        return resource

    def path_of(self, obj: Object) -> str:
        return obj["kind"]

    def find(self, path: str) -> Object | None:
        now = self._now()
        if isinstance(now.get("job"), Exception):
            raise now["job"]
        return now.get("job")

    def list(self, path: str, **_: str) -> list[Object]:
        self.at += path == "pods"  # what a look begins with
        return self._now().get(path, [])

    def _now(self) -> Object:
        return self.looks[max(0, min(self.at, len(self.looks) - 1))]

    def logs(self, pod: str, container: str, **_: Any) -> Iterator[bytes]:
        if pod not in self.printed:
            raise KubeError("no log", status=404)
        return iter(line.encode() for line in self.printed[pod])

    def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        self.created.append((obj["kind"], dry_run))
        return obj

    def delete(self, path: str) -> bool:
        self.deleted.append(path)
        return True


@pytest.fixture
def job(facts: Facts) -> Object:
    spec = JobSpec("digits-abc", ("python", "train.py"), nodes=2, gpus=1, code="c", code_sha256="0", output="o")
    return manifest(spec, facts)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LOOK_S", 0.01)
    monkeypatch.setattr(results, "LOOK_S", 0.01)
    monkeypatch.setattr(results, "WAIT_S", 0.2)


def state(**conditions: str) -> Object:
    told = [{"type": kind, "status": "True", "message": text} for kind, text in conditions.items()]
    return {"metadata": {"name": "digits-abc", "uid": "u1"}, "status": {"conditions": told}}


def pod(name: str, phase: str, code: int | None = None, finished: str = "1", job: str = "digits-abc") -> Object:
    """A pod of a job."""
    ended = {"terminated": {"exitCode": code, "finishedAt": finished}}
    running = {"running": {}} if phase == "Running" else {}
    one = {"name": "pytorch", "state": running if code is None else ended}
    status = {"phase": phase, "containerStatuses": [one]}
    labels = {"trainyard.io/job": job}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"nodeName": f"node-{name[-1]}"},
        "status": status,
    }


def group(name: str, phase: str, created: str, message: str = "") -> Object:
    told = [{"type": "Unschedulable", "status": "True", "message": message}] if message else []
    meta = {"name": name, "creationTimestamp": created}
    return {"metadata": meta, "spec": {"queue": "speech"}, "status": {"phase": phase, "conditions": told}}


def warning(name: str, kind: str, reason: str, message: str) -> Object:
    return {"involvedObject": {"name": name, "kind": kind}, "reason": reason, "message": message}


def test_a_job_is_followed_from_the_queue_to_its_end(job: Object, capfdbinary: Any) -> None:
    waiting = [group("other", "Pending", "1"), group("digits-abc", "Pending", "2", "0/2 nodes have a GPU")]
    pods = [pod("digits-abc-master-0", "Running"), pod("digits-abc-worker-1", "Running")]
    cluster = Cluster(
        {"job": state(), "podgroups": waiting},
        {"job": state(Running=""), "pods": pods},
        {"job": state(Succeeded=""), "pods": [pod("digits-abc-master-0", "Succeeded", 0)]},
        logs={"digits-abc-master-0": ["epoch 1", "epoch 2"]},
    )
    said: list[str] = []
    end = follow.follow(cluster, job, said.append)  # type: ignore[arg-type]
    assert end == follow.End(True, 0, "", True)
    assert said[0] == "in queue speech, number 2 of 2 of this team: 0/2 nodes have a GPU"
    assert said[1] == "2 pods running on node-0, node-1"
    assert capfdbinary.readouterr().out == b"epoch 1\nepoch 2\n"


def test_a_command_that_the_image_lacks_is_told_in_the_runtime_s_words(job: Object) -> None:
    failed = pod("digits-abc-master-0", "Failed", 128)
    told = failed["status"]["containerStatuses"][0]["state"]["terminated"]
    told |= {"reason": "StartError", "message": 'runc: unable to start container process: exec: "python": not found'}
    looks = {"job": state(Failed="backoff limit"), "pods": [failed]}
    end = follow.follow(Cluster(looks, logs={"digits-abc-master-0": ["code: 3 files"]}), job, print)  # type: ignore[arg-type]
    words = 'its command can\'t be started: exec: "python": not found'
    assert end.message == f"digits-abc-master-0 ended with code 128: {words}"


def test_gangs_whose_pods_have_gone_are_not_before_it_in_the_queue(job: Object) -> None:
    groups = [group("stale", "Inqueue", "1"), group("alive", "Inqueue", "2"), group("digits-abc", "Pending", "3")]
    other = {"metadata": {"name": "x", "annotations": {"scheduling.k8s.io/group-name": "alive"}}, "spec": {}}
    sight = watch.Watcher(Cluster({"job": state(), "podgroups": groups, "pods": [other]}), job).look()  # type: ignore[arg-type]
    assert watch.place(sight, "digits-abc") == "in queue speech, number 2 of 2 of this team"


def test_the_rank_that_failed_first_is_named_with_its_error_and_its_code(job: Object) -> None:
    pods = [pod("digits-abc-master-0", "Failed", 143, "3"), pod("digits-abc-worker-0", "Failed", 7, "2")]
    log = ["epoch 1", "Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    boom()"]
    logs = {"digits-abc-worker-0": [*log, "ValueError: loss is NaN at step 17"]}
    end = follow.follow(Cluster({"job": state(Failed="job failed"), "pods": pods}, logs=logs), job, print)  # type: ignore[arg-type]
    assert (end.succeeded, end.code) == (False, 7)
    assert end.message == "digits-abc-worker-0 ended with code 7: ValueError: loss is NaN at step 17"


def test_a_rank_that_only_lost_its_peers_is_not_the_one_to_blame(job: Object) -> None:
    pods = [pod("digits-abc-master-0", "Failed", 1, "2"), pod("digits-abc-worker-0", "Failed", 1, "2")]
    lost = "RuntimeError: [./gloo/pair.cc:598] Connection closed by peer [10.0.0.1]:1"
    logs = {"digits-abc-master-0": [lost], "digits-abc-worker-0": ["ValueError: NaN", "Traceback", lost]}
    end = follow.follow(Cluster({"job": state(Failed="no"), "pods": pods}, logs=logs), job, print)  # type: ignore[arg-type]
    assert end.message == "digits-abc-worker-0 ended with code 1: ValueError: NaN"


def test_a_job_that_failed_without_a_pod_tells_its_controller_s_words(job: Object) -> None:
    end = follow.follow(Cluster({"job": state(Failed="deadline exceeded")}), job, print)  # type: ignore[arg-type]
    assert end == follow.End(False, 1, "deadline exceeded", False)


def test_pods_that_are_refused_end_it_at_once(job: Object) -> None:
    event = warning("digits-abc", "PyTorchJob", "FailedCreatePod", "pods x is forbidden: violates PodSecurity")
    cluster = Cluster({"job": state(), "events": [event]})
    with pytest.raises(TrainyardError, match=r"pods are refused: .*violates PodSecurity.*the job was taken away"):
        follow.follow(cluster, job, print)  # type: ignore[arg-type]
    assert cluster.deleted == ["PyTorchJob/digits-abc"]


def test_a_full_quota_is_told_and_waited_for(job: Object) -> None:
    event = warning("digits-abc", "PyTorchJob", "FailedCreatePod", "pods x is forbidden: exceeded quota: team")
    said: list[str] = []
    looks = ({"job": state(), "events": [event]}, {"job": state(), "events": [event]}, {"job": state(Succeeded="")})
    assert follow.follow(Cluster(*looks), job, said.append).succeeded  # type: ignore[arg-type]
    told = "warning: digits-abc: FailedCreatePod: pods x is forbidden: exceeded quota: team"
    assert [line for line in said if "warning" in line] == [told]


def test_a_deleted_job_and_one_that_can_not_be_read_end_it(job: Object) -> None:
    with pytest.raises(TrainyardError, match="was deleted while it was followed"):
        follow.follow(Cluster({"job": None}), job, print)  # type: ignore[arg-type]
    with pytest.raises(KubeError, match="no right"):
        follow.follow(Cluster({"job": KubeError("no right", status=403)}), job, print)  # type: ignore[arg-type]


def test_a_short_outage_of_the_api_is_waited_out(job: Object) -> None:
    looks = ({"job": KubeError("away")}, {"job": KubeError("away")}, {"job": state(Succeeded="")})
    assert follow.follow(Cluster(*looks), job, print).succeeded  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["a", "Traceback (most recent call last):", '  File "x", line 1', "    y", "KeyError: 'k'"], "KeyError: 'k'"),
        (
            ["torch.cuda.OutOfMemoryError: CUDA out of memory", "", "  more"],
            "torch.cuda.OutOfMemoryError: CUDA out of memory",
        ),
        (["one", "two"], "one | two"),
        ([], ""),
    ],
)
def test_last_words_are_the_error_without_frames(lines: list[str], words: str) -> None:
    assert follow.last_words(lines) == words


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
    assert master["command"][3:] == ["2", "train.py", "--lr", "0.1"]
    code, out, _ = run(*words, "-o", "json", "--", "true")
    assert json.loads(out)["metadata"]["namespace"] == "speech"


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


def test_no_command_and_no_framework_for_several_nodes_are_said(folder: Path, facts: Facts, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no command to run"):
        launch.prepare(folder, {}, facts, tmp_path / "x")
    (folder / "train.py").write_text("import numpy")
    with pytest.raises(UsageError, match="nothing says how 2 nodes find each other"):
        launch.prepare(folder, {"command": ["python", "train.py"], "nodes": 2}, facts, tmp_path / "x")


def test_the_same_code_has_the_same_place_and_each_run_its_own(folder: Path, facts: Facts, tmp_path: Path) -> None:
    given = {"command": ["python", "train.py"], "checkpoints": "ckpt"}
    one, two = (launch.prepare(folder, given, facts, tmp_path / "x", resume="old-run") for _ in range(2))
    assert one.spec.code == two.spec.code == f"speech/code/{one.code.sha256}.tar.gz"
    assert one.spec.name != two.spec.name and one.spec.output == f"speech/jobs/{one.spec.name}"
    fetch = one.manifest["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["initContainers"][0]["args"]
    assert "--restore=runs/speech/jobs/old-run/ckpt=ckpt" in fetch
    assert one.why == "train.py imports torch"


def test_what_the_cluster_would_refuse_is_said_before_anything_is_sent(
    run: Any, played: Any, folder: Path, platform: Path
) -> None:
    scene = played({"job": state()})
    words = ["train", "--dir", folder, "--contract", platform, "--image", "ghcr.io/someone/else:1"]
    code, _, err = run(*words, "--", "python", "train.py")
    assert code == 2 and "ghcr.io/someone/else:1" in err and "(p17, " in err
    assert scene.cluster.created == [] and scene.sent == []


class Shelf:
    """A store that is played: places and what lies there."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def stat(self, place: str) -> object:
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


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, platform: Path) -> Callable[..., SimpleNamespace]:
    """A cluster and a store behind the command; the job ends as the looks say."""

    def play(*looks: Object, present: bool = False, **more: Any) -> SimpleNamespace:
        cluster, sent = Cluster(*looks, **more), []

        @contextmanager
        def opened(*_: object) -> Iterator[SimpleNamespace]:
            def put(path: Path, place: str, **_: Any) -> bool:
                sent.append(place)
                return not present

            yield SimpleNamespace(put=put, stat=lambda place: None)

        monkeypatch.setattr(Access, "connect", lambda self: cluster)
        monkeypatch.setattr(launch, "opened", opened)
        monkeypatch.setenv("TERM", "dumb")
        return SimpleNamespace(cluster=cluster, sent=sent)

    return play


def test_the_command_sends_creates_follows_and_ends_with_the_job_s_code(
    run: Any, played: Any, folder: Path, platform: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "LETTERS", "z")
    failed = {"job": state(Failed="no"), "pods": [pod("x-worker-0", "Failed", 3, job="x-zzzzz")]}
    scene = played(failed, logs={"x-worker-0": ["RuntimeError: no data"]})
    words = ["train", "--dir", folder, "--contract", platform, "--name", "x"]
    code, _, err = run(*words, "--", "python", "train.py")
    assert code == 3 and "RuntimeError: no data" in err and "code sent; created x-" in err
    assert scene.cluster.created == [("PyTorchJob", True), ("PyTorchJob", False)]
    assert scene.sent[0].startswith("runs/speech/code/")
    played({"job": state(Succeeded="")}, present=True)
    code, _, err = run(*words, "--", "python", "train.py")
    assert code == 0 and "code unchanged, not sent" in err and "succeeded" in err


def test_detached_it_prints_the_run_alone(run: Any, played: Any, folder: Path, platform: Path) -> None:
    scene = played({"job": state()})
    code, out, err = run("train", "--dir", folder, "--contract", platform, "--detach", "--", "python", "train.py")
    assert code == 0 and out.startswith("digits-") and f"--attach {out.strip()}" in err
    assert scene.cluster.at == -1


def test_ctrl_c_leaves_the_job_and_says_how_to_go_on(
    run: Any, played: Any, folder: Path, platform: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    scene = played({"job": state()})
    monkeypatch.setattr(follow, "follow", interrupted)
    code, _, err = run("train", "--dir", folder, "--contract", platform, "--", "python", "train.py")
    assert code == 130 and "goes on. Follow it:  trainyard train -n speech --attach digits-" in err
    assert "kubectl delete -n speech pytorchjobs.kubeflow.org/digits-" in err
    assert scene.cluster.deleted == []


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


def test_what_controllers_print_of_the_api_s_refusals_becomes_a_sentence_and_is_said_once() -> None:
    raw = 'Error creating pods: [failed, err: &errors.StatusError{{Status:"Failure", '
    raw += 'Message:"pods \\"w\\" is forbidden: exceeded quota", Details:(*v1.StatusDetails)({})}}]'
    events = [warning("j", "Job", "FailedCreate", raw.format(at)) for at in ("0x1", "0x2")]
    said = watch.complaints(watch.Sight({}, [], [], events))
    assert said == ['j: FailedCreate: pods "w" is forbidden: exceeded quota']


def test_places_of_a_job_are_told_in_words() -> None:
    def place(**sight: Any) -> str:
        return watch.place(
            watch.Sight({"metadata": {"uid": "u"}}, **{"pods": [], "groups": [], "events": [], **sight}), "j"
        )

    assert place() == "waiting for its pods"
    assert place(pods=[pod("a", "Pending"), pod("b", "Running")]) == "starting: 1 of 2 pods run"
    assert place(pods=[pod("a", "Succeeded", 0), pod("b", "Running")]) == "ending: 1 of 2 pods ended"
    assert place(pods=[pod("b-1", "Running")]) == "1 pod running on node-1"
    assert place(groups=[group("j-u", "Inqueue", "1")]) == "in queue speech, number 1 of 1 of this team"
