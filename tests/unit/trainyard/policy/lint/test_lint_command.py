"""`trainyard lint`: its output, formats and exit codes."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from local_server import kubeconfig

from trainyard import __version__, cli
from trainyard.paths import ROOT
from trainyard.pipelines import lint
from trainyard.policy.lint.codes import registry
from trainyard.policy.lint.page import PAGE, render

TEAMS = str(ROOT / "tests" / "policies" / "teams.yaml")
JOB = ROOT / "manifests" / "jobs" / "pytorchjob.yaml"
Run = Callable[..., Any]


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job with an error and a warning; no cluster can be found."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("TRAINYARD_CONTRACT", raising=False)
    file = tmp_path / "job.yaml"
    named = f"trainer-torch:{__version__}"
    text = JOB.read_text().replace("queue: vision", "queue: speech").replace(named, "trainer-torch")
    file.write_text(text)
    return file


def test_text(trainyard: Run, wrong: Path) -> None:
    ended = trainyard("lint", str(wrong), "--contract", TEAMS, "--team", "vision")
    assert ended.code == 1
    assert re.search(
        r"job\.yaml:26: error p06 job-queue \[PyTorchJob/mnist-pytorch spec\.\S+queue\] queue speech is not", ended.out
    )
    assert "    set spec.runPolicy.schedulingPolicy.queue to one of vision, training" in ended.out
    assert f"1 file: 1 error, 1 warning (contract: {TEAMS})" in ended.out


def test_a_clean_file_and_a_code_left_out(trainyard: Run, wrong: Path) -> None:
    assert trainyard("lint", str(JOB), "--contract", TEAMS).code == 0
    asked = ("lint", str(wrong), "--contract", TEAMS, "--team", "vision", "--ignore", "p06")
    assert trainyard(*asked).code == 0
    assert trainyard(*asked, "--strict").code == 1
    assert trainyard(*asked, "--strict", "--ignore", "TY301").code == 0


def test_json(trainyard: Run, wrong: Path) -> None:
    ended = trainyard("lint", str(wrong), "--contract", TEAMS, "--team", "vision", "-o", "json")
    found = json.loads(ended.out)["findings"]
    keys = {"code", "severity", "file", "line", "task", "field", "reason", "hint"}
    assert [one["code"] for one in found] == ["p06", "TY301"]
    assert all(keys <= one.keys() for one in found) and found[0]["policy"] == "job-queue"


def test_sarif_fits_what_code_hosts_read(trainyard: Run, wrong: Path) -> None:
    ended = trainyard("lint", str(wrong), "--contract", TEAMS, "--team", "vision", "-o", "sarif")
    log = json.loads(ended.out)
    assert log["version"] == "2.1.0" and "sarif-2.1.0" in log["$schema"]
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        (place,) = result["locations"]
        assert place["physicalLocation"]["region"]["startLine"] >= 1
        assert place["physicalLocation"]["artifactLocation"]["uri"] == str(wrong)


def test_without_a_contract_the_team_is_not_asked_for(trainyard: Run, wrong: Path) -> None:
    ended = trainyard("lint", str(wrong))
    assert ended.code == 0 and "p06" not in ended.out and "1 warning (contract: the chart's defaults)" in ended.out


def test_the_contract_of_the_environment(trainyard: Run, wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_CONTRACT", TEAMS)
    assert TEAMS in trainyard("lint", str(JOB)).out


def test_a_cluster_that_does_not_answer_is_not_waited_for(trainyard: Run, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", token="t")
    ended = trainyard("lint", str(JOB), "--kubeconfig", str(config))
    assert ended.code == 0 and "the chart's defaults" in ended.out
    assert trainyard("lint", str(JOB), "--kubeconfig", str(config), "--live").code == 1


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ((), "no files given"),
        (("nowhere.yaml",), "nowhere.yaml: no such file"),
        ((str(JOB), "--ignore", "X1"), "unknown code X1"),
        ((str(JOB), "--contract", TEAMS, "--team", "sound"), "no team sound; its teams: vision, speech"),
        ((str(JOB), "--contract", "nowhere.yaml"), "the contract can't be read"),
        ((str(JOB), "--contract", TEAMS, "--live"), "exclude each other"),
    ],
)
def test_wrong_usage(trainyard: Run, wrong: Path, more: tuple[Any, ...], says: str) -> None:
    ended = trainyard("lint", *more)
    assert ended.code == 2 and says in ended.error()


def test_other_files_are_left_alone(trainyard: Run, wrong: Path, tmp_path: Path) -> None:
    other = tmp_path / "compose.yaml"
    other.write_text("services: {web: {image: nginx}}\n")
    assert trainyard("lint", str(other)).code == 1
    ended = trainyard("lint", str(other), str(JOB), "--skip-others")
    assert ended.code == 0 and "1 file: no problems" in ended.out


def test_the_hook_calls_a_command_that_there_is() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, command, *options = shlex.split(hook["entry"])
    assert program == "trainyard" and command in cli.COMMANDS and options == ["--skip-others"]
    assert re.search(hook["files"], "pipelines/train.py") and re.search(hook["files"], "trainyard.yaml")


def test_the_page_has_every_code() -> None:
    page = (ROOT / PAGE).read_text()
    assert page == render()
    for code in registry().values():
        assert f'<a id="{code.id}"></a>' in page and code.title and code.why


def test_the_library_takes_an_object() -> None:
    from trainyard import contract

    found = lint.manifest(yaml.safe_load(JOB.read_text()), lint.site(contract.load(Path(TEAMS)), "vision"))
    assert found == []
