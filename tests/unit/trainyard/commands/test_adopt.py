"""`trainyard adopt`: the platform's settings are written into a file, and nothing else in it changes."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import contract

Call = Callable[..., Any]
JOB = """\
# From an article.
apiVersion: batch/v1
kind: Job
metadata:
  name: mnist-demo   # short
spec:
  template:
    spec:
      restartPolicy: OnFailure
      containers:
        - name: mnist
          image: tensorflow/tensorflow:2.15
          resources: {limits: {nvidia.com/gpu: 1}}
---
# Left alone.
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {epochs: "3"}
"""


@pytest.fixture
def site(tmp_path: Path) -> str:
    """A contract with one team and one stand-in image."""
    raw = contract.render.defaults()
    times = {"deadlineSeconds": 3600, "keepSeconds": 600}
    raw["teams"] = [{**raw["teamDefaults"], "name": "vision", "gid": 20001, "fill": times}]
    reference = "site.invalid/trainyard/trainer-tensorflow:0.4.0"
    raw["policies"]["fill"] |= {"imageNames": ["tensorflow/tensorflow"], "imageReferences": [reference]}
    raw["policies"]["fill"]["cudaReferences"] = []
    file = tmp_path / "contract.yaml"
    file.write_text(yaml.safe_dump(raw))
    return str(file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "job.yaml"
    place.write_text(JOB)
    return place


def test_the_difference_is_shown_and_nothing_written(trainyard: Call, file: Path, site: str) -> None:
    ended = trainyard("adopt", str(file), "--contract", site)
    assert ended.code == 1
    assert "+      schedulerName: volcano" in ended.out
    assert "+  activeDeadlineSeconds: 3600" in ended.out
    gone = [line for line in ended.out.splitlines() if line.startswith("-") and not line.startswith("---")]
    assert [line.split()[1] for line in gone] == ["image:", "resources:"], "nothing else is touched"
    assert "Job mnist-demo: queue, schedulerName, tolerations" in ended.err
    assert "warning: site.invalid/trainyard/trainer-tensorflow:0.4.0 replaces the image" in ended.err
    assert "1 of 1 files would change; to write them, add --write" in ended.err
    assert file.read_text() == JOB


def test_it_is_written_once(trainyard: Call, file: Path, site: str) -> None:
    assert trainyard("adopt", "--write", str(file), "--contract", site).code == 0
    made = file.read_text()
    assert made.startswith("# From an article.\n") and "name: mnist-demo   # short" in made
    assert made.endswith(JOB.partition("---\n")[2])
    again = trainyard("adopt", "--write", str(file), "--contract", site)
    assert (again.code, again.out, again.err) == (0, "", "nothing is missing\n")
    assert file.read_text() == made
    notes = yaml.safe_load(made.partition("---\n")[0])["metadata"]["annotations"]
    assert notes["trainyard.io/filled"].startswith("queue, schedulerName, tolerations")
    stands_in = "tensorflow/tensorflow:2.15 -> site.invalid/trainyard/trainer-tensorflow:0.4.0"
    assert notes["trainyard.io/image-stands-in"] == stands_in
    assert trainyard("lint", str(file), "--contract", site, "--skip-others").code == 0


def test_another_file_gets_the_result(trainyard: Call, file: Path, site: str, tmp_path: Path) -> None:
    out = tmp_path / "adopted.yaml"
    assert trainyard("adopt", str(file), "-o", str(out), "--contract", site).code == 0
    assert yaml.safe_load(out.read_text().partition("---")[0])["spec"]["ttlSecondsAfterFinished"] == 600
    assert file.read_text() == JOB
    printed = trainyard("adopt", str(file), "-o", "-", "--contract", site)
    assert (printed.code, printed.out) == (0, out.read_text())


def test_a_list_of_objects(trainyard: Call, site: str, tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    claim = '{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {}}'
    file.write_text(f'{{"apiVersion": "v1", "kind": "List", "items": [{claim}]}}')
    assert trainyard("adopt", "-i", str(file), "--contract", site).code == 0
    assert '"spec": {"storageClassName": "trainyard-shared"}' in file.read_text()


def test_a_date_is_a_text(trainyard: Call, site: str, tmp_path: Path) -> None:
    file = tmp_path / "claim.yaml"
    meta = "{name: c, annotations: {made: 2024-01-02}}"
    spec = "{accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}"
    file.write_text(f"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {meta}\nspec: {spec}\n")
    assert trainyard("adopt", "-i", str(file), "--contract", site).code == 0
    assert "made: 2024-01-02" in file.read_text() and "storageClassName: trainyard-shared" in file.read_text()
    assert "TY105" not in trainyard("lint", str(file), "--contract", site).out


def test_standard_input_in_any_locale(trainyard: Call, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = '{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "größe"}, "spec": {}}'
    for content, code, says in [(claim.encode(), 0, "größe"), (claim.encode("latin-1"), 2, "not UTF-8 text")]:
        text = io.TextIOWrapper(io.BytesIO(content), encoding="ascii", errors="surrogateescape")
        monkeypatch.setattr(sys, "stdin", text)
        ended = trainyard("adopt", "-", "-o", "-", "--contract", site)
        assert ended.code == code and says in ended.out + ended.err


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("a: [", [], "invalid YAML: "),
        ("a: 1", [], "found an object without apiVersion or kind"),
        ("apiVersion: v1\nkind: Pod\nmetadata: x", [], "an object whose metadata or spec is not a map"),
        (JOB, ["--team", "speech"], "the contract has no team speech"),
        (JOB, ["-o", "x", "--write"], "--output needs a single FILE and no --write"),
        (JOB, ["-", "--write"], "--write can't write to standard input. print the result with --output=-"),
    ],
)
def test_wrong_usage(trainyard: Call, file: Path, site: str, text: str, arguments: list[str], says: str) -> None:
    file.write_text(text)
    ended = trainyard("adopt", str(file), "--contract", site, *arguments)
    assert ended.code == 2
    assert says in ended.error()
    assert file.read_text() == text


@pytest.mark.parametrize("arguments", [["--write"], ["-o", "-"], ["-o", "x", "--team", "visoin"]])
def test_without_a_contract_nothing_is_written(trainyard: Call, file: Path, arguments: list[str]) -> None:
    """The chart's defaults know neither teams nor their queues: a name with a mistake would be one."""
    ended = trainyard("adopt", str(file), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "no contract found; the chart's defaults may differ from your site's" in ended.error()
    assert file.read_text() == JOB
    shown = trainyard("adopt", str(file))
    assert shown.code == 1 and "warning: no contract found" in shown.err


def test_a_file_that_is_not_there(trainyard: Call, site: str) -> None:
    ended = trainyard("adopt", "nowhere.yaml", "--contract", site)
    assert (ended.code, ended.err) == (
        2,
        "error: nowhere.yaml: No such file or directory\nhint: pass files with manifests\n",
    )
