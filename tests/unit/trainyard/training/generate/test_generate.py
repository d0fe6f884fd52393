"""What `trainyard generate` prints passes the chart's schema, lint and kfp's compiler."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from error_lines import sentence

from trainyard import contract
from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard.pipelines import lint
from trainyard.pipelines.ir import compile as compiler
from trainyard.training.generate import pipeline, values

TEAMS = {"global": {"contract": {"gpuImages": "cpu", "teams": [{"name": "speech", "gid": 20007, "maxGpusPerJob": 8}]}}}
SPEECH = ("-n", "speech", "--contract", "values.yaml")
JOB = ("job", "x", "--framework", "job", *SPEECH)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(TEAMS))
    return lambda *words: run("generate", *words)


def validation_errors(found: list[lint.Finding]) -> list[str]:
    return [f"{one.code} {one.reason}" for one in found if one.severity is lint.Severity.ERROR]


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "mpi", "volcano", "job"])
def test_jobs_are_clean_to_lint(run: Run, framework: str, tmp_path: Path) -> None:
    nodes = "1" if framework == "job" else "2"
    words = ["--framework", framework, "--nodes", nodes, "--gpus", "2", "--env", "LR=0.1", "--mount", "shared:/data:ro"]
    code, out, err = run("job", "digits", "-n", "speech", "--contract", "values.yaml", *words, "--", "python", "t.py")
    assert (code, err) == (0, "")
    made = yaml.safe_load(out)
    assert made["metadata"] == {**made["metadata"], "name": "digits", "namespace": "speech"}
    site = lint.site(contract.load(tmp_path / "values.yaml"), "speech")
    assert validation_errors(lint.manifest(made, site)) == []


def test_names_that_yaml_1_1_means_as_truth_values_are_quoted(run: Run) -> None:
    words = ["--env", "n=1", "--framework", "job", "-n", "speech", "--contract", "values.yaml"]
    code, out, err = run("job", "digits", *words, "--", "python", "t.py")
    assert code == 0, err
    assert 'name: "n"\n' in out


def test_a_job_takes_a_file_s_settings_and_flags_over_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("team: speech\nframework: pytorch\nnodes: 2\ncommand: [python, t.py]\n")
    code, out, _ = run("job", "x", "--file", "spec.yaml", "--contract", "values.yaml", "-n", "speech", "--nodes", "3")
    assert code == 0
    assert yaml.safe_load(out)["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] == 2


def test_a_job_of_an_image_gets_the_packages_that_its_requirements_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "needs.txt").write_text("einops==0.8.1\n-r more.txt\n")
    (tmp_path / "more.txt").write_text("six  # $(HOME)\n")
    words = ["--framework", "job", "-n", "speech", "--contract", "values.yaml", "--requirements", "needs.txt"]
    code, out, err = run("job", "digits", *words, "--", "accelerate", "launch", "t.py")
    assert code == 0 and err.startswith("needs.txt: 2 requirements, from what the image has and the platform's wheels")
    made = yaml.safe_load(out)
    pod = made["spec"]["template"]["spec"]
    fetch, install, keep = pod["initContainers"]
    assert (install["name"], keep["name"]) == ("trainyard-packages", "trainyard-keep")
    # As the kubelet hands it on.
    told = {one["name"]: one.get("value", "").replace("$$(", "$(") for one in fetch["env"]}["REQUIREMENT_FILES"]
    assert json.loads(told) == {name: (tmp_path / name).read_text() for name in ("needs.txt", "more.txt")}
    assert "--requirements=needs.txt" in fetch["args"]
    assert not [word for word in fetch["args"] if word.startswith(("--code", "--folder"))]
    main = pod["containers"][0]
    assert main["command"][-3:] == ["accelerate", "launch", "t.py"] and "workingDir" not in main
    names = {one["name"] for one in main["env"]}
    assert "PYTHONUSERBASE" in names and "TRAINYARD_RESULTS" not in names
    site = lint.site(contract.load(tmp_path / "values.yaml"), "speech")
    assert validation_errors(lint.manifest(made, site)) == []


def test_a_job_of_an_image_takes_no_requirements_that_nobody_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("six\n")
    words = ["--framework", "job", "-n", "speech", "--contract", "values.yaml"]
    code, out, err = run("job", "digits", *words, "--", "python", "t.py")
    assert (code, err) == (0, "") and "initContainers" not in yaml.safe_load(out)["spec"]["template"]["spec"]


def test_a_queue_joins_the_list_that_is_there(run: Run) -> None:
    words = ["--deserved", "nvidia.com/gpu=8,cpu=64,memory=512Gi", "--weight", "2", "--not-reclaimable"]
    code, out, _ = run("queue", "research", *words)
    names = [queue["name"] for queue in yaml.safe_load(out)["global"]["contract"]["queues"]]
    assert code == 0 and names == ["training", "research"]
    last = yaml.safe_load(out)["global"]["contract"]["queues"][-1]
    assert last.pop("deserved") == {"nvidia.com/gpu": 8, "cpu": 64, "memory": "512Gi"}
    assert last == {"name": "research", "weight": 2, "reclaimable": False}


def test_a_team_joins_the_others_with_a_group_of_its_own(run: Run) -> None:
    words = ["--group", "vision-members", "--max-gpus-per-job", "4", "--quota", "training-normal:gpus=4,pods=9"]
    code, out, _ = run("team", "vision", *words, "--quota", "pods=50", "--queue", "training", "--values", "values.yaml")
    teams = yaml.safe_load(out)["global"]["contract"]["teams"]
    assert code == 0 and [team["name"] for team in teams] == ["speech", "vision"]
    assert teams[1]["gid"] == 20008
    assert teams[1]["quota"] == {"training-normal": {"gpus": 4, "pods": 9}, "all": {"pods": 50}}
    assert values.free_gid({}) == values.FIRST_GID


def test_what_is_printed_for_teams_and_queues_fits_the_whole_chart(run: Run, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(run("team", "vision", "--values", "values.yaml", "--group", "v")[1])
    (tmp_path / "queues.yaml").write_text(run("queue", "research", "--deserved", "cpu=4")[1])
    found = values.merged(values.read(tmp_path / "more.yaml"), values.read(tmp_path / "queues.yaml"))
    values.check(found, "teams")
    values.check(found, "queues")
    assert set(contract.load(tmp_path / "more.yaml").teams) == {"speech", "vision"}


@pytest.mark.parametrize("framework", ["", "pytorch", "tensorflow", "mpi", "volcano"])
def test_pipelines_compile_and_are_clean_to_lint(run: Run, framework: str, tmp_path: Path) -> None:
    code, out, _ = run("pipeline", "my-digits", *(["--train", framework] if framework else []))
    assert code == 0
    file = tmp_path / "my_digits.py"
    file.write_text(out)
    shutil.copytree(ROOT / "pipelines" / "components", tmp_path / "components")
    found = compiler.pipeline(file)
    assert found.name == "my-digits"
    site = lint.site(contract.load(tmp_path / "values.yaml"), "speech")
    assert validation_errors(lint.pipeline(found, site)) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["queue", "Upper"], "invalid name: 'Upper'. use lower-case letters"),
        (["queue", "training"], "queue training already exists"),
        (["queue", "speech", "--values", "values.yaml"], "team speech already exists"),
        (["queue", "x", "--deserved", "cpu"], "--deserved: expected RESOURCE=QUANTITY, got 'cpu'"),
        (["queue", "x", "--deserved", "cpu=lots"], "deserved.cpu: 'lots'"),
        (["team", "speech", "--values", "values.yaml"], "team speech already exists"),
        (["team", "x", "--gid", "3"], "gid: 3 is less than the minimum of 1000"),
        (["team", "x", "--gid", "20007", "--values", "values.yaml"], "gid 20007 belongs to another team"),
        (["team", "x", "--values", "none.yaml"], "the values can't be read"),
        (["team", "x_y"], "invalid name: 'x_y'. use lower-case letters"),
        (["pipeline", "Bad Name"], "invalid pipeline name: 'Bad Name'"),
        (["pipeline", "class"], "invalid pipeline name: 'class'"),
        (["pipeline", "train"], "is one of its steps"),
        (["job", "x", "-n", "speech", "--contract", "values.yaml"], "the job has no command"),
        (["job", "x", "--name", "y", "--contract", "values.yaml", "-n", "speech"], "the name is given twice"),
        ([*JOB, "--requirements", "absent.txt", "--", "a"], "absent.txt: no file absent.txt in the folder"),
        ([*JOB, "--requirements", "source.txt", "--", "a"], "source.txt:1: -e . would install a source folder"),
        ([*JOB, "--requirements", "long.txt", "--", "a"], "long.txt: the requirements have more than 60000 characters"),
        (["job", "x", "--kubeconfig", "none", "--", "a"], "without a cluster, pass --contract FILE and -n TEAM"),
        (["queue", "x", "--deserved", "gpu=8"], "invalid resource: gpu. for GPUs, use nvidia.com/gpu"),
        (["job", "x", "-n", "none", "--contract", "values.yaml", "--", "a"], "has no team none; its teams: speech"),
    ],
)
def test_wrong_usage_is_one_sentence(run: Run, words: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "source.txt").write_text("-e .\n")
    (tmp_path / "long.txt").write_text("".join(f"package-{number}==1.0\n" for number in range(5000)))
    code, out, err = run(*words)
    assert (code, out) == (2, "") and says in sentence(err)


def test_a_word_of_python_is_no_pipeline() -> None:
    with pytest.raises(UsageError):
        pipeline.text("while", "image")


def test_anything_else_than_a_map_is_no_values(tmp_path: Path) -> None:
    for text, says in (("- a", "not values of the chart"), ("a: [", "not YAML")):
        (tmp_path / "v.yaml").write_text(text)
        with pytest.raises(UsageError, match=says):
            values.read(tmp_path / "v.yaml")


def test_lists_of_values_are_found_whatever_else_stands_there() -> None:
    odd: dict[str, Any] = {"global": {"contract": {"teams": {"a": 1}}}}
    assert values.listed(odd, "teams") == [] and values.listed({"global": 1}, "teams") == []
