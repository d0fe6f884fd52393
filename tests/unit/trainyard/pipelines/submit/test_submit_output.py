"""What `trainyard submit --wait -o …` prints for a program; a server answers as the API server of a run does."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from local_server import Answers, kubeconfig, serving

from trainyard.paths import ROOT

WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: hello}
spec:
  entrypoint: main
  templates:
    - name: main
      container: {image: site.invalid/trainyard/trainer-torch:0.4.0, command: [echo, hello]}
"""
OUTPUTS = {"parameters": [{"name": "word", "value": "hello"}]}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A kubeconfig of a server with one Workflow at most; `phases`: what it says of it, one after the other."""
    state = SimpleNamespace(workflow=None, phases=["Running", "Succeeded"])

    class Handler(Answers):
        def post(self) -> None:
            body = json.loads(self.body())
            if not self.path.partition("?")[0].endswith("/workflows"):
                return self.answer(404, {"kind": "Status", "message": "not here"})
            state.workflow = {**body, "metadata": {**body["metadata"], "uid": "1", "namespace": "vision"}}
            return self.answer(201, state.workflow)

        def get(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/apis/argoproj.io/v1alpha1":
                return self.answer(200, {"resources": [{"name": "workflows", "kind": "Workflow", "namespaced": True}]})
            if not path.endswith("/workflows/hello") or not state.phases:
                return self.answer(404, {"kind": "Status", "message": "not here"})
            phase = state.phases.pop(0) if len(state.phases) > 1 else state.phases[0]
            if phase == "gone":
                return self.answer(404, {"kind": "Status", "message": "not here"})
            node = {"id": "hello", "name": "hello", "displayName": "hello", "type": "Pod", "phase": phase,
                    "outputs": OUTPUTS, "message": "it broke" if phase == "Failed" else ""}  # fmt: skip
            status = {"phase": phase, "nodes": {"hello": node}, "startedAt": "2026-01-01T00:00:00Z"}
            return self.answer(200, {**state.workflow, "status": status})

    monkeypatch.setattr("trainyard.pipelines.runs.follow.POLL_INTERVAL_S", 0.01)
    with serving(Handler) as host:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "kubeconfig", host)))
        yield state


@pytest.fixture
def submit(trainyard: Callable[..., Any], cluster: SimpleNamespace, tmp_path: Path) -> Callable[..., Any]:
    file = tmp_path / "hello.yaml"
    file.write_text(WORKFLOW)
    return lambda *words: trainyard("submit", str(file), "--contract", str(ROOT / "tests/policies/teams.yaml"), *words)


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_who_waits_gets_the_run_as_it_ended_and_nothing_else(
    submit: Callable[..., Any], form: str, read: Callable[[str], Any]
) -> None:
    ended = submit("--wait", "-o", form)
    assert ended.code == 0, ended.err
    run = read(ended.out)
    assert (run["metadata"]["name"], run["status"]["phase"]) == ("hello", "Succeeded")
    assert run["spec"]["activeDeadlineSeconds"] and run["spec"]["serviceAccountName"] == "pipeline"
    assert "run hello created in vision" in ended.err and "word = hello" in ended.err


def test_the_name_alone_is_printed_and_results_go_elsewhere(submit: Callable[..., Any]) -> None:
    ended = submit("--wait", "-o", "name")
    assert (ended.code, ended.out) == (0, "hello\n")
    assert "run hello succeeded" in ended.err and "word = hello" in ended.err


def test_without_a_form_results_are_what_is_printed(submit: Callable[..., Any]) -> None:
    ended = submit("--wait")
    assert ended.code == 0 and ended.out.splitlines()[-1] == "  word = hello"


def test_a_failed_run_is_printed_and_fails(submit: Callable[..., Any], cluster: SimpleNamespace) -> None:
    cluster.phases = ["Failed"]
    ended = submit("--wait", "-o", "json")
    assert ended.code == 1 and json.loads(ended.out)["status"]["phase"] == "Failed"
    assert "it broke" in ended.err and "run hello failed" in ended.err


def test_a_run_that_is_deleted_meanwhile_is_said(submit: Callable[..., Any], cluster: SimpleNamespace) -> None:
    cluster.phases = ["Running", "gone"]
    ended = submit("--wait", "-o", "json")
    assert (ended.code, ended.out) == (1, "") and "run hello was deleted while it was followed" in ended.err


def test_a_log_and_a_run_are_not_printed_into_each_other(submit: Callable[..., Any], cluster: SimpleNamespace) -> None:
    ended = submit("--logs", "main", "-o", "json")
    assert ended.code == 2 and "--logs and -o exclude each other" in ended.err
    assert cluster.workflow is None


def test_what_kfp_answers_has_no_form(submit: Callable[..., Any]) -> None:
    ended = submit("--backend", "kfp", "--endpoint", "http://kfp", "-o", "json")
    assert ended.code == 2 and "-o is for the backend argo" in ended.err
