"""Amounts in a member's own file: found in every kind of job, written with everything else left as it is."""

import difflib
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard.rightsize import files
from trainyard.rightsize.files import WORKERS, difference, matching, read
from trainyard.rightsize.proposal import Amounts

GIB = float(1 << 30)
JOB = """\
# From an article.
apiVersion: batch/v1
kind: Job
metadata: {name: mnist}  # short
spec:
  template:
    spec:
      containers:
        - name: main
          resources:
            requests: {cpu: 4, memory: "8Gi"}  # guessed
            limits:
              # may not grow
              memory: 8Gi
              nvidia.com/gpu: 1
"""
NEW = Amounts({"cpu": 1.15, "memory": 2 * GIB}, {"memory": 2 * GIB})


def changed(text: str, *amounts: Amounts) -> list[str]:
    """Lines that differ, with + and -, once amounts are put at the places of a file."""
    file = read("f.yaml", text, "folder")
    for place, one in zip(file.places, amounts or [NEW] * len(file.places), strict=True):
        place.apply(one)
    lines = difflib.unified_diff(text.splitlines(), file.edited().splitlines(), n=0)
    return [line for line in lines if line[0] in "+-" and not line.startswith(("---", "+++"))]


def test_comments_order_and_the_gpus_stay() -> None:
    assert changed(JOB) == [
        '-            requests: {cpu: 4, memory: "8Gi"}  # guessed',
        '+            requests: {cpu: 1150m, memory: "2Gi"}  # guessed',
        "-              memory: 8Gi",
        "+              memory: 2Gi",
    ]


def test_a_place_says_whose_and_what_it_asks() -> None:
    (place,) = read("f.yaml", JOB).places
    assert (place.job, place.kind, place.keys, place.line) == ("mnist", "Job", [("", "main")], 9)
    assert (place.requests, place.limits) == ({"cpu": 4.0, "memory": 8 * GIB}, {"memory": 8 * GIB})


def test_a_container_without_amounts_gets_them() -> None:
    text = JOB[: JOB.index("          resources")]
    assert changed(text) == [
        "+          resources:",
        "+            requests:",
        "+              cpu: 1150m",
        "+              memory: 2Gi",
        "+            limits:",
        "+              memory: 2Gi",
    ]


def test_whole_cores_stay_a_number() -> None:
    assert changed(JOB, Amounts({"cpu": 2.0}, {})) == [
        '-            requests: {cpu: 4, memory: "8Gi"}  # guessed',
        '+            requests: {cpu: 2, memory: "8Gi"}  # guessed',
    ]
    text = JOB.replace("cpu: 4", 'cpu: "4"')
    assert '+            requests: {cpu: "2", memory: "8Gi"}  # guessed' in changed(text, Amounts({"cpu": 2.0}, {}))


def test_json_stays_json() -> None:
    import json

    text = json.dumps(yaml.safe_load(JOB), indent=2)
    file = read("f.json", text)
    file.places[0].apply(NEW)
    assert json.loads(file.edited())["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "1150m", "memory": "2Gi"},
        "limits": {"memory": "2Gi", "nvidia.com/gpu": 1},
    }


def test_trainyard_yaml_has_one_amount_of_memory() -> None:
    text = "# mine\nname: ddp\nframework: pytorch\ncpu: 4  # cores\nmemory: 8Gi\ncommand: [python, train.py]\n"
    (place,) = read("trainyard.yaml", text).places
    assert (place.job, place.keys, place.line) == ("ddp", [(WORKERS, "pytorch")], 5)
    assert (place.requests, place.limits) == ({"cpu": 4.0, "memory": 8 * GIB}, {"memory": 8 * GIB})
    assert changed(text) == ["-cpu: 4  # cores", "-memory: 8Gi", "+cpu: 1150m  # cores", "+memory: 2Gi"]
    assert read("trainyard.yaml", "framework: mpi\n", "folder").places[0].job == "folder"


def test_settings_that_were_left_open_are_added_only_where_they_change() -> None:
    text = "framework: pytorch\ncommand: [python, train.py]\n"
    assert changed(text, Amounts({"cpu": 1.0, "memory": 4 * GIB}, {})) == ["+memory: 4Gi"]


@pytest.mark.parametrize("path", sorted((ROOT / "manifests/jobs").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_read_and_written_and_stays_what_it_is(path: Path) -> None:
    text = path.read_text()
    file = read(path.name, text)
    assert file.places
    for place in file.places:
        place.apply(NEW)
    new = file.edited()
    kept = [line for line in text.splitlines() if line.strip().startswith("#")]
    assert [line for line in new.splitlines() if line.strip().startswith("#")] == kept
    again = read(path.name, new)
    assert all(place.requests.get("cpu", 1.15) == 1.15 for place in again.places)
    assert all(place.limits["memory"] == 2 * GIB for place in again.places)
    assert [place.keys for place in again.places] == [place.keys for place in file.places]


def test_roles_that_a_file_writes_once_are_one_place() -> None:
    text = (ROOT / "manifests/jobs/pytorchjob.yaml").read_text()
    (place,) = read("pytorchjob.yaml", text).places
    assert place.keys == [("master", "pytorch"), ("worker", "pytorch")]


def test_the_difference_is_one_that_git_and_patch_take(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/mnist.yaml").write_text(JOB)
    file = read("jobs/mnist.yaml", JOB)
    file.places[0].apply(NEW)
    patch = difference("jobs/mnist.yaml", JOB, file.edited())
    assert patch.startswith("--- a/jobs/mnist.yaml\n+++ b/jobs/mnist.yaml\n")
    git = shutil.which("git")
    assert git
    subprocess.run([git, "apply", "-"], input=patch.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "jobs/mnist.yaml").read_text() == file.edited()
    assert difference("f.yaml", JOB, JOB) == ""


def test_roles_that_share_amounts_by_an_alias_can_t_differ() -> None:
    text = (ROOT / "manifests/jobs/pytorchjob.yaml").read_text()
    file = read("pytorchjob.yaml", text)
    documents = yaml.safe_load(text)
    specs = documents["spec"]["pytorchReplicaSpecs"]
    assert specs["Master"]["template"]["spec"]["containers"] is specs["Worker"]["template"]["spec"]["containers"]
    file.places[0].apply(NEW)
    assert (
        yaml.safe_load(file.edited())["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0][
            "resources"
        ]["limits"]["memory"]
        == "2Gi"
    )


def test_which_measured_containers_are_a_place_s() -> None:
    known = [("master", "pytorch"), ("worker", "pytorch"), ("worker", "trainyard-upload")]
    settings = read("trainyard.yaml", "framework: pytorch\n", "a").places[0]
    assert matching(settings, known) == known[:2]
    unsaid = read("trainyard.yaml", "cpu: 1\n", "a").places[0]
    assert matching(unsaid, known) == known[:2]
    mpi = read("trainyard.yaml", "framework: mpi\n", "a").places[0]
    assert matching(mpi, [("launcher", "mpi"), ("worker", "mpi")]) == [("worker", "mpi")]
    assert matching(read("f.yaml", JOB).places[0], [("", "main"), ("", "other")]) == [("", "main")]
    assert {kind.container for kind in registry.KINDS} == files.MAIN


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "invalid YAML: "),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "no job in the file requests resources"),
        ("", "no job in the file requests resources"),
        ("- 1\n", "not an object"),
        ("nodes: many\n", "nodes"),
    ],
)
def test_what_is_no_job_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        read("f.yaml", text)


def test_a_file_that_can_t_be_written_into_says_so() -> None:
    text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      containers:\n      - {name: a, resources: &r {limits: {memory: 8Gi}}}\n      - {name: b, resources: {<<: *r}}\n"  # noqa: E501
    file = read("f.yaml", text)
    file.places[0].apply(NEW)
    with pytest.raises(TrainyardError, match=r"alias|used in several places"):
        file.edited()
