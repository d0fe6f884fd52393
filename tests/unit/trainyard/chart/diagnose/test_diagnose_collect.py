"""What the diagnosis writes, and that nothing stops it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from trainyard.chart.diagnose import collect
from trainyard.chart.diagnose import collect as package_collect
from trainyard_dev.report import Check

NOW = "2026-05-28T20:30:0"


def crashing() -> dict[str, Any]:
    env = [{"name": "S3_SECRET_KEY", "value": "hunter2"}, {"name": "EPOCHS", "value": "3"}]
    return {
        "metadata": {"name": "mnist-0", "namespace": "e2e", "managedFields": [{"manager": "x"}]},
        "spec": {"nodeName": "worker", "containers": [{"name": "main", "env": env}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {
                    "name": "main",
                    "ready": False,
                    "restartCount": 2,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"exitCode": 1}},
                }
            ],
        },
    }


def event(second: int, reason: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "e2e", "name": "mnist-0"}
    return {
        "type": "Warning",
        "reason": reason,
        "message": "m",
        "involvedObject": about,
        "lastTimestamp": f"{NOW}{second}Z",
        "count": 3,
    }


class Kubectl:
    """Answers as kubectl would; ``broken`` are first words of commands that fail."""

    def __init__(self, *broken: str) -> None:
        self.broken, self.calls = broken, []  # type: ignore[var-annotated]

    def __call__(self, arguments: list[str]) -> str:
        self.calls.append(arguments)
        text = " ".join(arguments)
        if any(text.startswith(b) for b in self.broken):
            raise RuntimeError(f"{text}: the server has asked for the client to provide credentials")
        if arguments[0] == "logs":
            return "last words of the previous life\n" if "--previous" in arguments else "starting\n"
        if arguments[0] == "describe" or "wide" in arguments:
            return f"text of {text}"
        items: dict[str, list[Any]] = {
            "pods": [crashing()],
            "nodes": [{"metadata": {"name": "worker"}, "status": {}}],
            "events": [event(5, "BackOff"), event(1, "Scheduled"), event(3, "Pulled")],
            "queues.scheduling.volcano.sh": [{"metadata": {"name": "training"}, "status": {"state": "Open"}}],
        }
        return json.dumps({"items": items.get(arguments[1], [])})


def test_everything_is_collected(tmp_path: Path) -> None:
    kubectl = Kubectl()
    check = Check("train.x", "t", "failed", "it crashed")
    found = collect(
        kubectl,
        tmp_path,
        ["e2e"],
        node_exec=lambda node, argv: f"{node}: {argv[0]}",
        helm=lambda argv: " ".join(argv),
        checks=[check],
    )
    folder = tmp_path / "diagnosis"
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert files == {
        "events.txt", "pods.txt", "nodes.txt", "problems.txt", "cause.txt", "helm-status.txt", "helm-history.txt",
        "objects/sick-pods.yaml", "objects/queues.yaml", "nodes/worker-devices.json", "nodes/worker-kubelet.txt",
        "logs/e2e/mnist-0.main.log", "logs/e2e/mnist-0.main.previous.log",
    }  # fmt: skip
    lines = (folder / "events.txt").read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["Scheduled", "Pulled", "BackOff"]
    assert lines[0].endswith("Pod e2e/mnist-0: m (x3)")
    assert "last words of the previous life" in (folder / "cause.txt").read_text()
    assert (folder / "problems.txt").read_text() == "none\n"
    assert found.checks[0]["id"] == "train.x"
    assert not [call for call in kubectl.calls if "secret" in " ".join(call).lower()]


def test_secrets_and_noise_are_left_out(tmp_path: Path) -> None:
    collect(Kubectl(), tmp_path, ["e2e"])
    text = (tmp_path / "diagnosis/objects/sick-pods.yaml").read_text()
    assert "hunter2" not in text
    assert "managedFields" not in text
    assert "EPOCHS" in text


@pytest.mark.parametrize("broken", ["get", "logs", "describe", "get pods", "get events", "get queues"])
def test_a_failing_command_is_noted_and_does_not_stop_the_rest(tmp_path: Path, broken: str) -> None:
    found = collect(Kubectl(broken), tmp_path, ["e2e"], helm=Kubectl("status"))
    notes = (tmp_path / "diagnosis/problems.txt").read_text()
    assert "the server has asked" in notes
    assert "helm-status.txt" in notes
    assert "not collected: helm-status.txt" in (tmp_path / "diagnosis/helm-status.txt").read_text()
    assert found.problems
    assert (tmp_path / "diagnosis/cause.txt").read_text().strip()


def test_nothing_answers(tmp_path: Path) -> None:
    def dead(arguments: list[str]) -> str:
        raise OSError("dial tcp 127.0.0.1:6443: connect: connection refused")

    collect(dead, tmp_path, ["e2e"])
    assert "does not answer" in (tmp_path / "diagnosis/cause.txt").read_text()


def test_not_json(tmp_path: Path) -> None:
    found = collect(lambda arguments: "Error: oops", tmp_path, ["e2e"])
    assert any("not a JSON list" in p for p in found.problems)


def test_a_hanging_command_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    import trainyard.chart.diagnose.collect  # noqa: F401

    monkeypatch.setattr(sys.modules["trainyard.chart.diagnose.collect"], "ONE", 0.05)
    started = time.monotonic()
    found = package_collect(lambda arguments: time.sleep(5) or "", tmp_path, ["e2e"], seconds=0.5)
    assert time.monotonic() - started < 3
    assert any("no answer within" in p for p in found.problems)
    assert any("the diagnosis ran out of time" in p for p in found.problems)


def test_files_are_bounded_and_keep_their_end(tmp_path: Path) -> None:
    class Long(Kubectl):
        def __call__(self, arguments: list[str]) -> str:
            return "x" * 2_000_000 + "the end\n" if arguments[0] == "describe" else super().__call__(arguments)

    collect(Long(), tmp_path, ["e2e"])
    text = (tmp_path / "diagnosis/nodes.txt").read_text()
    assert len(text) < 600_000
    assert text.startswith("[the first ")
    assert text.endswith("the end\n")


def test_an_unwritable_folder_does_not_raise(tmp_path: Path) -> None:
    (tmp_path / "diagnosis").write_text("a file")
    found = collect(Kubectl(), tmp_path, ["e2e"])
    assert any("can't be written" in p for p in found.problems)
