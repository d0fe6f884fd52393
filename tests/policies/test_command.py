"""`trainyard policy`: what it says of good, bad and broken manifests, without a cluster."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import HERE
from error_lines import sentence

from trainyard.paths import ROOT
from trainyard_dev.apiserver import ApiServer, Identity
from trainyard_dev.cli import main
from trainyard_dev.policy import check
from trainyard_dev.policy.cases import bases, changed, rules
from trainyard_dev.policy.check import Site, Verdict

JOBS = sorted((ROOT / "manifests" / "jobs").glob("*.yaml"))
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """`run("policy", "list")` in this process, as its entry point does: code, output, errors."""
    before = signal.getsignal(signal.SIGTERM)

    def call(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trainyard", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err
        return int(ended.value.code or 0), shown.out, shown.err

    yield call
    signal.signal(signal.SIGTERM, before)


def said(verdicts: list[Verdict]) -> dict[str, list[str]]:
    """Who objects to what, by kind."""
    return {verdict.kind: [finding.by for finding in verdict.findings] for verdict in verdicts}


@pytest.mark.parametrize("file", JOBS, ids=lambda file: file.stem)
def test_example_jobs_and_all_that_operators_make_of_them_are_admitted(vision: Site, file: Path) -> None:
    verdicts = vision.check(list(yaml.safe_load_all(file.read_text())))
    assert [(v.kind, v.name, v.findings) for v in verdicts if v.findings] == []
    assert "Pod" in {verdict.kind for verdict in verdicts}


@pytest.mark.parametrize(
    ("base", "made"),
    [
        ("pytorchjob", ["PyTorchJob", "PodGroup", "Pod", "Pod"]),
        ("mpijob", ["MPIJob", "PodGroup", "Pod", "Pod"]),
        ("vcjob", ["Job", "PodGroup", "Pod", "Pod"]),
        ("cronjob", ["CronJob", "Job", "Pod"]),
        ("deployment", ["Deployment", "Pod"]),
    ],
)
def test_children_of_each_kind(vision: Site, base: str, made: list[str]) -> None:
    verdicts = vision.check([changed(bases()[base], {})])
    assert [verdict.kind for verdict in verdicts] == made
    assert verdicts[1].identity.startswith("system:serviceaccount:")


def test_every_violation_is_reported_not_the_first_alone(vision: Site) -> None:
    places = {"/spec/nodeName": "x", "/spec/priorityClassName": "training-high", "/spec/containers/0/image": "busybox"}
    [verdict] = vision.check([changed(bases()["gpu-pod"], places)])
    assert {finding.by for finding in verdict.findings} == {"node-name", "priority-class", "image-source"}
    assert verdict.refused


def test_rights_pod_security_and_limits_answer_too(vision: Site) -> None:
    assert said(vision.check([changed(bases()["deployment"], {})]))["Deployment"] == ["rights"]
    assert said(vision.check([changed(bases()["cpu-pod"], {"/spec/hostNetwork": True})])) == {"Pod": ["Pod Security"]}
    large = changed(bases()["claim"], {"/spec/resources/requests/storage": "200Gi"})
    assert said(vision.check([large])) == {"PersistentVolumeClaim": ["limits"]}
    unknown = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}}
    assert said(vision.check([unknown])) == {"Thing": ["API"]}


def test_pods_are_refused_where_their_job_was_not_asked_enough(vision: Site) -> None:
    """A pod of an operator meets Pod Security, of which the job only warns."""
    container = "/spec/pytorchReplicaSpecs/Master/template/spec/containers/0/securityContext"
    verdicts = vision.check([changed(bases()["pytorchjob"], {container: {"privileged": True}})])
    assert [v.kind for v in verdicts if v.refused] == ["Pod"]


def test_a_job_in_another_namespace_is_refused_by_rights(vision: Site) -> None:
    [job, *_] = vision.check([changed(bases()["pytorchjob"], {"/metadata/namespace": "speech"})])
    assert job.refused and job.findings[0].by == "rights"


def test_list_names_every_rule(run: Run) -> None:
    code, out, _ = run("policy", "list")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()] == sorted(rules(), key=lambda rule: out.index(f"  {rule} "))
    code, out, _ = run("policy", "list", "-o", "json")
    assert {rule["name"] for rule in json.loads(out)} == set(rules())


def test_verdicts_as_table_and_as_data(run: Run, tmp_path: Path, vision: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jobs.yaml"
    bad: dict[str, Any] = changed(bases()["cpu-pod"], {"/spec/nodeName": "x", "/metadata/name": "bad"})
    listed = {"apiVersion": "v1", "kind": "List", "items": [bases()["cpu-pod"], bad]}
    file.write_text(yaml.safe_dump(listed))
    monkeypatch.setattr(check, "running", lambda: nullcontext(vision.server))  # on which these values are installed
    monkeypatch.setattr(check, "install", lambda *_: None)
    words = ("policy", "test", file, "--values", HERE / "teams.yaml", "--team", "vision")
    code, out, _ = run(*words, "--as", "ada")
    assert code == 1
    assert "Pod/case  admitted  as ada" in out
    assert "node-name: nodeName x would put the pod past scheduler" in " ".join(out.split())
    assert "2 objects: 1 admitted, 1 refused" in out
    code, out, _ = run(*words, "-o", "yaml")
    found = yaml.safe_load(out)
    assert code == 1
    assert [one["refused"] for one in found] == [False, True]
    assert found[1]["findings"][0]["by"] == "node-name"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "is not valid YAML, see line 1"),
        ("just words", "contains an object without apiVersion and kind"),
        ("", "contain no objects"),
        ("{apiVersion: v1, kind: Pod, spec: [1]}", "whose metadata or spec is not a map"),
        ("{apiVersion: v1, kind: List, items: [1]}", "contains an object without apiVersion and kind"),
        ("{apiVersion: v1, kind: List, items: 5}", "contains an object without apiVersion and kind"),
    ],
)
def test_what_is_no_manifest_is_wrong_usage(run: Run, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    code, _, err = run("policy", "test", file)
    assert code == 2
    assert says in sentence(err)


def test_absent_files_and_teams_are_wrong_usage(run: Run, tmp_path: Path) -> None:
    code, _, err = run("policy", "test", tmp_path / "none.yaml")
    assert (code, "No such file" in err) == (2, True)
    code, _, err = run("policy", "test", JOBS[0], "--values", tmp_path / "none.yaml")
    assert (code, "values file not found" in err) == (2, True)
    for words, says in (((), "several teams"), (("--team", "sales"), "no team sales")):
        code, _, err = run("policy", "test", JOBS[0], "--values", HERE / "teams.yaml", *words)
        assert (code, says in err, "vision, speech" in err) == (2, True, True)


@pytest.mark.parametrize(
    "spec", [{"template": {}}, {"template": {"spec": {}}}, {"template": "x"}, {"tasks": [{}]}, {"tasks": [1]}, {}]
)
def test_half_objects_get_a_verdict(vision: Site, spec: dict[str, Any]) -> None:
    for version, kind in (("batch/v1", "Job"), ("batch.volcano.sh/v1alpha1", "Job"), ("apps/v1", "Deployment")):
        job = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": json.loads(json.dumps(spec))}
        assert vision.check([job])[0].refused


def test_the_server_of_the_tests_refuses_what_the_command_s_warns_of(server: ApiServer) -> None:
    pod = changed(bases()["cpu-pod"], {"/spec/nodeName": "x", "/metadata/namespace": "vision"})
    assert not server.create(pod, identity=Identity("ada", ("vision-members",)), dry_run=True).ok
