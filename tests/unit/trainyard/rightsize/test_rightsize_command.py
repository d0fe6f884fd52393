"""`trainyard rightsize`, and the hints of lint and `train`: over HTTP, with what the platform's agent publishes."""

import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from maps_server import Maps, served

from trainyard import contract
from trainyard.kinds import JobSpec, TeamConfig, manifest
from trainyard.kube import Access
from trainyard.rightsize import hints, usage, values
from trainyard_agent.usage.notes import Notes

Call = Callable[..., Any]
GIB = 1 << 30
JOB = """\
# Four cores, because the last one had four.
apiVersion: batch/v1
kind: Job
metadata: {name: mnist}
spec:
  template:
    spec:
      containers:
        - name: main
          resources:
            requests: {cpu: 4, memory: 8Gi}
            limits: {memory: 8Gi}
"""
MAP = "vision/trainyard-usage"


def part(cpu: float, memory: float, **more: Any) -> dict[str, Any]:
    used = {"cpu": {"p50": cpu / 2, "p95": cpu, "p99": cpu, "max": cpu * 1.1}, "memory": {"p95": memory, "max": memory}}
    asked = {"asked": {"cpu": 4, "memory": 8 * GIB}, "limits": {"memory": 8 * GIB}}
    return {"role": "", "container": "main", "pods": 1, "oom": 0, "samples": 40, **used, **asked, **more}


def published(*runs: tuple[str, str, str, dict[str, Any]]) -> dict[str, str]:
    """The agent's published usage of runs, each with name, kind and object's name of its job, and one container."""
    notes = Notes(at=time.time())
    for number, (name, kind, job, one) in enumerate(runs):
        begin = time.time() - 10_000 + 100 * number
        notes.measured(notes.add(name, kind, job, begin), [one], at=begin + 90, last=begin + 90, ended=True)
    return {"usage.json": notes.text(notes.jobs_text(), 120, 15)}


@pytest.fixture
def maps() -> Iterator[Maps]:
    with served() as server:
        server.data[MAP] = published(
            ("mnist", "Job", "mnist-b4x2z", part(0.8, 1.5 * GIB)), ("mnist", "Job", "mnist-c5x2z", part(1.0, GIB))
        )
        raw = contract.render.defaults()
        raw["teams"] = [{**raw["teamDefaults"], "name": "vision", "gid": 20001}]
        server.data["trainyard-system/trainyard-contract"] = {"contract.yaml": yaml.safe_dump(raw)}
        yield server


@pytest.fixture
def call(trainyard: Call, maps: Maps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line with a kubeconfig of the server, in a folder with mnist.yaml."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(maps.kubeconfig(tmp_path / "kubeconfig", "vision")))
    (tmp_path / "mnist.yaml").write_text(JOB)
    return trainyard


def test_a_file_comes_with_its_difference_and_stays_as_it_is(call: Call, tmp_path: Path, maps: Maps) -> None:
    ended = call("rightsize", "mnist.yaml")
    assert ended.code == 0, ended.err
    said = "mnist main cpu 4 0.50 1.00 1.00 1.10 1150m"
    assert ended.out.splitlines()[1].split()[:9] == said.split()
    assert "memory    8Gi" in ended.out
    assert "1.5Gi in the most of the last 2 runs" in ended.out
    assert "-            requests: {cpu: 4, memory: 8Gi}\n" in ended.out
    assert "+            requests: {cpu: 1150m, memory: 1792Mi}\n" in ended.out
    assert "+            limits: {memory: 1792Mi}\n" in ended.out
    assert ended.err == "to write the change, add --write\n"
    assert (tmp_path / "mnist.yaml").read_text() == JOB
    assert len(maps.asked) == 1


def test_it_is_written_when_told(call: Call, tmp_path: Path) -> None:
    ended = call("rightsize", "mnist.yaml", "--write")
    assert (ended.code, ended.err) == (0, "written to mnist.yaml\n")
    new = (tmp_path / "mnist.yaml").read_text()
    assert new == JOB.replace("cpu: 4, memory: 8Gi", "cpu: 1150m, memory: 1792Mi").replace("y: 8Gi", "y: 1792Mi")
    again = call("rightsize", "mnist.yaml", "--write")
    assert (again.code, again.err) == (0, "the file already fits: no changes\n")


def test_a_patch_goes_to_a_file_or_is_printed_alone(call: Call, tmp_path: Path) -> None:
    ended = call("rightsize", "mnist.yaml", "--patch", "sizes.patch")
    assert ended.err == "difference written to sizes.patch; apply it with `git apply sizes.patch`\n"
    printed = call("rightsize", "mnist.yaml", "--patch", "-")
    assert printed.out == (tmp_path / "sizes.patch").read_text()
    assert printed.out.startswith("--- a/mnist.yaml\n+++ b/mnist.yaml\n")


def test_the_margin_is_a_choice_between_10_and_20(call: Call) -> None:
    assert (
        "+            requests: {cpu: 1100m, memory: 1728Mi}" in call("rightsize", "mnist.yaml", "--margin", "10").out
    )
    assert call("rightsize", "mnist.yaml", "--margin", "30").code == 2
    assert "cpu: 920m" not in call("rightsize", "mnist.yaml").out
    assert "cpu: 1150m" in call("rightsize", "mnist.yaml", "--runs", "1").out


def test_a_job_by_name_or_by_a_run_s_name(call: Call) -> None:
    for name in ("mnist", "mnist-b4x2z", "mnist-zzzzz"):
        assert "1150m" in call("rightsize", name).out
    data = json.loads(call("rightsize", "mnist", "-o", "json").out)
    (one,) = data["containers"]
    assert (one["asked"], one["proposed"]) == (
        {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {"memory": "8Gi"}},
        {"requests": {"cpu": "1150m", "memory": "1792Mi"}, "limits": {"memory": "1792Mi"}},
    )
    assert [run["run"] for run in one["runs"]] == ["mnist-c5x2z", "mnist-b4x2z"]
    assert yaml.safe_load(call("rightsize", "mnist", "-o", "yaml").out) == data


def test_what_stopped_a_run_stands_beside_its_bar(call: Call, maps: Maps, tmp_path: Path) -> None:
    maps.data[MAP] = published(
        ("mnist", "Job", "mnist-b4x2z", part(0.8, GIB)),
        ("mnist", "Job", "mnist-c5x2z", part(1.0, GIB, oom=1, throttled=0.23)),
    )
    call("rightsize", "mnist", "--svg", "sizes.svg")
    root = ET.fromstring((tmp_path / "sizes.svg").read_text())
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert (words.count("throttled 23%"), words.count("killed for memory")) == (1, 1)


def test_all_jobs_of_the_team(call: Call, maps: Maps) -> None:
    maps.data[MAP] = published(("mnist", "Job", "a", part(1, GIB)), ("prep", "Job", "b", part(2, GIB, samples=1)))
    out = call("rightsize").out
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["prep", "prep", "mnist", "mnist"]
    assert "runs were too short to judge" in out
    assert "cpu: all pods of a run ask for 8.00 together; 2.85 less would do" in out


def test_the_evidence_is_drawn(call: Call, tmp_path: Path) -> None:
    ended = call("rightsize", "mnist.yaml", "--svg", "sizes.svg")
    assert "drawn in sizes.svg\n" in ended.err
    text = (tmp_path / "sizes.svg").read_text()
    root = ET.fromstring(text)
    words = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"mnist-b4x2z", "mnist-c5x2z", "asked 4", "proposed 1150m", "proposed 1792Mi", "1.10"} <= set(words)
    wide = float(root.attrib["viewBox"].split()[2])
    for one in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(one.get("x", 0)) + float(one.attrib["width"]) <= wide
    call("rightsize", "mnist.yaml", "--svg", "again.svg")
    assert (tmp_path / "again.svg").read_text() == text
    assert call("rightsize", "mnist", "--svg", "no/sizes.svg").error().startswith("no such folder: no")


def test_trainyard_yaml_is_a_job_of_its_folder_s_name(call: Call, maps: Maps, tmp_path: Path) -> None:
    maps.data[MAP] = published(
        ("ddp", "PyTorchJob", "ddp-b4x2z", part(0.5, 100 << 20, role="worker", container="pytorch"))
    )
    (tmp_path / "ddp").mkdir()
    (tmp_path / "ddp/trainyard.yaml").write_text("framework: pytorch\ncpu: 4  # mine\nsharedMemory: 1Gi\n")
    ended = call("rightsize", "ddp/trainyard.yaml")
    assert ended.code == 0, ended.err
    assert "-cpu: 4  # mine\n+cpu: 580m  # mine\n" in ended.out
    assert "+memory: 1Gi\n" in ended.out
    assert "and sharedMemory is a part of it" in ended.out


def test_the_platform_s_own_pods_become_values(call: Call, maps: Maps) -> None:
    maps.data["trainyard-system/trainyard-usage"] = published(
        ("trainyard-scheduler", "component", "trainyard-scheduler",
         part(0.2, 200 << 20, container="trainyard-scheduler", asked={"cpu": 0.05, "memory": 64 << 20}, limits={})),
        ("trainyard-minio", "component", "trainyard-minio",
         part(0.01, GIB, container="minio", asked={"cpu": 0.05, "memory": 192 << 20}, limits={"memory": 4 * GIB})),
        ("trainyard-new", "component", "trainyard-new", part(0.01, GIB, container="new", asked={}, limits={})),
    )  # fmt: skip
    out = call("rightsize", "--components").out
    assert yaml.safe_load(out) == {
        "volcano": {"custom": {"scheduler_resources": {"requests": {"cpu": "230m", "memory": "240Mi"}}}},
        "minio": {"resources": {"requests": {"cpu": "20m", "memory": "1216Mi"}, "limits": {"memory": "4Gi"}}},
    }
    assert "# minio.resources (trainyard-minio): cpu 0.01 in 95 % of the last run; memory 1.0Gi in the most of" in out
    assert "# trainyard-new new has no own value" in out


def test_every_place_of_the_platform_s_values_is_there() -> None:
    from trainyard.paths import ROOT

    umbrella = yaml.safe_load((ROOT / "charts/trainyard/values.yaml").read_text())
    for path in (*values.PLACES.values(), *map(values.place, ("metrics-server", "minio", "training-operator"))):
        first, *rest = path.split(".")
        own = ROOT / "charts" / first / "values.yaml"
        at = yaml.safe_load(own.read_text()) if own.is_file() else umbrella[first]
        for word in rest:
            at = at[word]
        assert "requests" in at, path


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["mnist", "--write"], "--patch and --write need a FILE"),
        (["mnist.yaml", "--write", "--patch", "a"], "--patch and --write exclude each other"),
        (["mnist", "--components"], "--components excludes JOB and FILE"),
        (["absent.yaml"], "absent.yaml: No such file or directory"),
        (["other"], "no measured run of other found in vision. measured jobs: mnist."),
        (["mnist", "-n", "speech"], "ConfigMap trainyard-usage of speech is empty"),
    ],
)  # fmt: skip
def test_what_can_t_be_is_said_in_one_sentence(call: Call, words: list[str], what: str) -> None:
    assert what in call("rightsize", *words).error()


def test_a_text_of_a_member_s_own_is_no_evidence(call: Call, maps: Maps) -> None:
    good = maps.data[MAP]["usage.json"]
    for text in ("{", "[]", '{"schema": "trainyard.io/usage/v1", "jobs": [1]}'):
        maps.data[MAP] = {"usage.json": text}
        assert (
            "ConfigMap trainyard-usage of vision: the platform did not write its content" in call("rightsize").error()
        )
    for found, forged in (
        ('"name": "mnist"', '"name": "mnist\\u001b]0;owned\\u0007"'),
        ('"job":"mnist-b4x2z"', '"job":"mnist\\n# monitoring"'),
        ('"seconds":', '"seconds":-'),
        ('"p95":', '"p95":Infinity,"x":'),
        ('"p95":', '"p95":NaN,"x":'),
        ("trainyard.io/usage/v1", "trainyard.io/usage/v2\\u001b[2J"),
    ):
        assert found in good, found
        maps.data[MAP] = {"usage.json": good.replace(found, forged)}
        assert "the platform did not write its content" in call("rightsize").error(), forged
    maps.data[MAP] = {"usage.json": '{"schema": "trainyard.io/usage/v9"}'}
    assert "unsupported schema trainyard.io/usage/v9, expected trainyard.io/usage/v1" in call("rightsize").error()


def test_figures_of_a_stopped_pod_are_said_to_be_old(call: Call, maps: Maps) -> None:
    text = maps.data[MAP]["usage.json"]
    old = {**json.loads(text), "at": time.time() - 7200}
    maps.data[MAP] = {"usage.json": json.dumps(old)}
    assert "warning: the figures are 2h00m old: the platform's pod may have stopped" in call("rightsize").err


def test_lint_notes_a_request_far_from_what_was_used_by_one_request(call: Call, maps: Maps) -> None:
    ended = call("lint", "mnist.yaml", "--live")
    assert (
        "mnist.yaml:9: note TY411 cpu 4 of main is more than twice what the job needs: 1.00 in 95 % of the last 2 runs"
        "; 1150m would do\n    see `trainyard rightsize mnist.yaml`" in ended.out
    )
    assert "TY411 memory 8Gi" in ended.out
    assert len([path for path in maps.asked if "trainyard-usage" in path]) == 1
    assert "TY411" not in call("lint", "mnist.yaml", "--live", "--ignore", "TY411").out


def test_lint_says_nothing_where_nothing_is_known(call: Call, maps: Maps, tmp_path: Path) -> None:
    del maps.data[MAP]
    assert "TY411" not in call("lint", "mnist.yaml", "--live").out
    maps.asked.clear()
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(contract.render.defaults()))
    call("lint", "mnist.yaml", "--contract", "contract.yaml")
    (tmp_path / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    call("lint", "map.yaml", "--live")
    assert not [path for path in maps.asked if "trainyard-usage" in path]


def test_train_hints_about_the_job_that_it_sends(maps: Maps, tmp_path: Path) -> None:
    from trainyard.commands.train import _sizes

    maps.data[MAP] = published(("ddp", "PyTorchJob", "ddp-b4x2z", part(6.0, GIB, role="worker", container="pytorch")))
    kube = Access(kubeconfig=str(maps.kubeconfig(tmp_path / "kubeconfig", "vision"))).connect()
    team = TeamConfig.of(contract.live(kube), "vision")
    spec = JobSpec("ddp-c5x2z", ("python", "train.py"), nodes=2, team="vision", memory="16Gi", output="vision/jobs/a")
    maps.asked.clear()
    assert _sizes(kube, manifest(spec, team)) == [
        "cpu 1 of worker/pytorch is less than what the job needs: 6.00 in 95 % of the last run; 6900m would do; "
        "see `trainyard rightsize ddp`",
        "memory 16Gi of worker/pytorch is more than twice what the job needs: 1.0Gi in the most of the last run; "
        "1216Mi would do; see `trainyard rightsize ddp`",
    ]
    assert len(maps.asked) == 1
    del maps.data[MAP]
    assert _sizes(kube, manifest(spec, team)) == []
    assert hints.known(kube, "vision") is None
    assert usage.base("ddp-c5x2z") == "ddp"
