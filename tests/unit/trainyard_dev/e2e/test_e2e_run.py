"""The frame of an end-to-end run: whatever happens, the cluster is removed and the exit code is right."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.pipelines.local import dataset
from trainyard_dev.cluster import lifecycle
from trainyard_dev.e2e import run
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import Recorder, require
from trainyard_dev.engine import Engine
from trainyard_dev.gpu import detect
from trainyard_dev.images import source

Call = Callable[..., Any]
Checks = Callable[[Context], None]


class World(SimpleNamespace):
    """A fake environment of the run; `calls` are its calls on clusters."""

    calls: list[str]
    checks: Checks
    out: Path


@pytest.fixture
def world(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A machine on which a cluster comes up at once and every check is the test's own."""
    made = World(calls=[], checks=lambda context: None, out=tmp_path / "out", up=None, taken=False)

    def up(engine: Engine, options: lifecycle.Options, **given: object) -> SimpleNamespace:
        made.calls.append("up")
        if made.up:
            raise made.up
        return SimpleNamespace()

    def exists(engine: Engine, name: str) -> bool:
        return made.taken or made.calls[-1:] == ["up"]

    monkeypatch.setattr(run.engines, "find", lambda wanted: Engine("podman"))
    monkeypatch.setattr(run.detect, "choose", lambda wanted: detect.GpuChoice("mock", "no GPU here"))
    monkeypatch.setattr(run.source, "choose", lambda wanted: source.Source("build", "asked for"))
    monkeypatch.setattr(run.dataset, "find", lambda: dataset.Dataset("MNIST", tmp_path))
    supply = SimpleNamespace(close=lambda: None, steps=[("image base", 1.0, 2.0)])
    monkeypatch.setattr(run, "Supply", lambda engine, source, names: supply)
    monkeypatch.setattr(run.lifecycle, "exists", exists)
    monkeypatch.setattr(run.lifecycle, "up", up)
    monkeypatch.setattr(run.lifecycle, "down", lambda engine, name: made.calls.append("down"))
    monkeypatch.setattr(run.order, "checks", lambda context: made.checks(context))
    monkeypatch.setattr(run.diagnose, "collect", lambda *args, **kwargs: made.calls.append("diagnose"))
    monkeypatch.setattr(run.diagnose, "probable_cause", lambda found: "The queue is closed.")
    return made


def good(context: Context) -> None:
    with context.recorder.check("train.cpu", "CPU job") as figures:
        figures["accuracy"] = 0.9


def bad(context: Context) -> None:
    with context.recorder.check("train.cpu", "CPU job"):
        require(False, "the accuracy is too low")


def test_a_good_run(world: World, trainyard: Call) -> None:
    world.checks = good
    ended = trainyard("e2e", "--out", str(world.out))
    assert (ended.code, ended.err) == (0, "")
    assert world.calls == ["up", "down"]
    assert "PASSED  train.cpu" in ended.out
    summary = json.loads((world.out / "summary.json").read_text())
    assert [(c["id"], c["status"]) for c in summary["checks"]] == [("cluster.up", "passed"), ("train.cpu", "passed")]
    assert {p.name for p in world.out.iterdir()} >= {"report.html", "junit.xml", "timeline.svg"}


def test_a_failed_check_fails_the_run_and_is_diagnosed_before_the_cluster_goes(world: World, trainyard: Call) -> None:
    world.checks = bad
    ended = trainyard("e2e", "--out", str(world.out))
    assert ended.code == 1
    assert world.calls == ["up", "diagnose", "down"]
    assert "the accuracy is too low" in ended.out
    assert "The queue is closed." in ended.out
    assert json.loads((world.out / "summary.json").read_text())["checks"][-1]["status"] == "failed"


def test_a_cluster_that_does_not_come_up_is_reported(world: World, trainyard: Call) -> None:
    world.up = TrainyardError("kind failed")
    world.checks = lambda context: pytest.fail("there is no cluster to check")
    world.calls.append("nothing")
    ended = trainyard("e2e", "--out", str(world.out))
    assert ended.code == 1
    assert "kind failed." in ended.out
    assert "Traceback" not in ended.out + ended.err
    assert world.calls[-1] == "down"


def test_an_interrupted_run_takes_its_cluster_away(world: World) -> None:
    def interrupted(context: Context) -> None:
        raise KeyboardInterrupt

    world.checks = interrupted
    with pytest.raises(KeyboardInterrupt):
        run.run(run.Options("trainyard", "auto", "auto", "auto", False, world.out))
    assert world.calls == ["up", "down"]


def test_a_bug_between_two_checks_is_reported(world: World, trainyard: Call) -> None:
    def broken(context: Context) -> None:
        good(context)
        raise RuntimeError("a bug")

    world.checks = broken
    ended = trainyard("e2e", "--out", str(world.out))
    assert ended.code == 1
    assert world.calls == ["up", "diagnose", "down"]
    checks = json.loads((world.out / "summary.json").read_text())["checks"]
    assert [(check["id"], check["status"]) for check in checks[1:]] == [("train.cpu", "passed"), ("e2e.run", "failed")]
    assert "RuntimeError in test_e2e_run.py, line " in checks[-1]["reason"]
    assert "Traceback" not in ended.out + ended.err


def test_keep_leaves_the_cluster(world: World, trainyard: Call) -> None:
    world.checks = good
    ended = trainyard("e2e", "--keep", "--out", str(world.out))
    assert world.calls == ["up"]
    assert "the cluster is kept: export KUBECONFIG=" in ended.out


def test_a_full_run_takes_its_second_cluster_away_and_looks_into_it(
    world: World, trainyard: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(context: Context) -> None:
        assert context.second
        with context.second().recorder.check("uninstall.purge", "all goes"):
            require(False, "a claim is left")

    assert not run.selection.apart({"install.helm"})  # of no entry: it failed on the first
    looked: list[str] = []
    monkeypatch.setattr(run.second, "make", lambda first, options: first)
    monkeypatch.setattr(run, "_diagnose", lambda engine, name, *_: looked.append(name) or "A claim.")
    monkeypatch.setattr(run.lifecycle, "down", lambda engine, name: looked.append(name))
    world.checks = broken
    assert trainyard("e2e", "--full", "--out", str(world.out)).code == 1
    assert looked == ["trainyard-second", "trainyard-second", "trainyard"]


def test_a_taken_name_touches_nothing(world: World, trainyard: Call) -> None:
    world.taken = True
    world.out.mkdir()
    (world.out / "report.html").write_text("of the last run")
    error = trainyard("e2e", "--name", "lab", "--out", str(world.out)).error()
    assert error.startswith("a cluster named lab exists already. remove it with `trainyard cluster down --name lab`")
    assert world.calls == []
    assert (world.out / "report.html").read_text() == "of the last run"


def test_results_of_the_last_run_do_not_stay(world: World, trainyard: Call) -> None:
    (world.out / "diagnosis").mkdir(parents=True)
    (world.out / "diagnosis/cause.txt").write_text("old")
    world.checks = good
    assert trainyard("e2e", "--out", str(world.out)).code == 0
    assert not (world.out / "diagnosis").exists()


def test_an_answer_of_another_shape_fails_its_check_only(capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder()
    with recorder.check("a", "A"):
        {}["items"]
    with recorder.check("b", "B"):
        pass
    recorder.skip("c", "C", "it can't run here")
    assert [(c.id, c.status) for c in recorder.checks] == [("a", "failed"), ("b", "passed"), ("c", "skipped")]
    assert recorder.checks[0].reason == "unexpected answer: KeyError: 'items'"
    assert recorder.failed("a")
    assert not recorder.failed("c")
    assert "FAILED  a" in capsys.readouterr().out


# data


def test_mnist_where_it_is_given(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mnist").mkdir()
    for name in dataset.FILES:
        (tmp_path / "mnist" / name).write_text("x")
    monkeypatch.setenv("TRAINYARD_DATA", str(tmp_path))
    assert dataset.find() == dataset.Dataset("MNIST", tmp_path / "mnist")


def test_fashion_mnist_from_the_package_once(cache: Path, program: Callable[[str, str], Path], tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.delenv("TRAINYARD_DATA", raising=False)
    program("apt-get", f"echo x >> {tmp_path}/calls; touch d_1.deb")
    names = " ".join(dataset.FILES)
    program("dpkg", f'mkdir -p "$3/usr/data"; for n in {names}; do touch "$3/usr/data/$n"; done')
    for _ in range(2):
        found = dataset.find()
        assert found.name.startswith("Fashion-MNIST")
        assert sorted(p.name for p in found.folder.iterdir()) == sorted(dataset.FILES)
    assert (tmp_path / "calls").read_text() == "x\n"
    assert [p.name for p in (cache / "data").iterdir()] == ["fashion-mnist"]


def test_no_data_at_all(cache: Path, program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINYARD_DATA", raising=False)
    program("apt-get", 'echo "E: Unable to locate package" >&2; exit 100')
    with pytest.raises(
        TrainyardError, match=r"Unable to locate package\. set TRAINYARD_DATA to a folder that holds mnist/"
    ):
        dataset.find()
    assert list((cache / "data").iterdir()) == []
