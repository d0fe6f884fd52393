"""Why a newcomer's file would be refused or fail, beyond its form: rights, operators, Argo, the network."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from lint_cases import one, site
from lint_texts import IMAGE, MAIN, REPLICAS, SECURITY, VCJOB, WORKFLOW, resource

from trainyard import contract
from trainyard.paths import ROOT
from trainyard.pipelines import lint
from trainyard.pipelines.lint.files import check_text
from trainyard.policy.lint import Severity, advice, rights
from trainyard.policy.lint import site as lint_site
from trainyard.policy.lint.pod_rules import storage_class

Run = Callable[..., Any]
TEAMS = contract.load(ROOT / "tests" / "policies" / "teams.yaml")
PLAIN = list(yaml.safe_load_all((ROOT / "tests" / "policies" / "plain.yaml").read_text()))


@pytest.mark.parametrize("text", [VCJOB, WORKFLOW, resource(VCJOB)], ids=["vcjob", "workflow", "resource"])
def test_what_the_cases_begin_from_is_clean(text: str) -> None:
    assert check_text(text, "file.yaml", site()) == []


FORBIDDEN = {
    ("apps/v1", "Deployment"): "use a Job, which ends, or ask the platform engineer",
    ("apps/v1", "ReplicaSet"): "use a Job",
    ("batch.volcano.sh/v1alpha1", "CronJob"): "use `trainyard schedule create`",
    ("v1", "Service"): "don't need one",
    ("v1", "Secret"): "the team's own",
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): "set the queue in the job",
    ("argoproj.io/v1alpha1", "WorkflowTemplate"): "copy its templates into the Workflow",
    ("networking.k8s.io/v1", "NetworkPolicy"): "ask the platform engineer, who may",
}


@pytest.mark.parametrize(("version", "kind"), FORBIDDEN)
def test_kinds_that_members_may_not_create_are_errors_that_name_whom_to_ask(version: str, kind: str) -> None:
    found = lint.manifest({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}, site())
    (said,) = [finding for finding in found if finding.code == "TY110"]
    assert said.severity is lint.Severity.ERROR and f"may not create a {kind}" in said.reason
    assert FORBIDDEN[version, kind] in said.hint and "platform engineer" in said.hint


MISSING = {
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): "the platform has no kind TrainJob of trainer.kubeflow.org",
    ("flow.volcano.sh/v1alpha1", "JobFlow"): "no kind JobFlow of flow.volcano.sh",
    ("argoproj.io/v1alpha1", "ClusterWorkflowTemplate"): "no kind ClusterWorkflowTemplate",
    ("xgboostjob.kubeflow.org/v1alpha1", "XGBoostJob"): "no kind XGBoostJob of xgboostjob.kubeflow.org",
    ("kubeflow.org/v1beta1", "TFJob"): "no TFJob in version kubeflow.org/v1beta1",
    ("batch/v1beta1", "CronJob"): "no CronJob in version batch/v1beta1",
}


@pytest.mark.parametrize(("version", "kind"), MISSING)
def test_kinds_that_the_platform_does_not_have_are_errors(version: str, kind: str) -> None:
    (said,) = lint.manifest({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}, site())
    assert said.code == "TY106" and said.severity is lint.Severity.ERROR and MISSING[version, kind] in said.reason


def test_a_config_map_is_a_members() -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}}
    assert lint.manifest(made, site()) == []


@pytest.mark.parametrize(("chosen", "says"), [("vision", "the team is vision"), ("", "no team has the namespace")])
def test_an_object_of_another_namespace(chosen: str, says: str) -> None:
    text = VCJOB.replace("{name: digits}", "{name: digits, namespace: kubeflow}")
    found = check_text(text, "job.yaml", lint.site(TEAMS, chosen))
    one([finding for finding in found if finding.code == "TY505"], text, "TY505", "namespace: kubeflow")
    assert says in found[0].reason and "remove it" in found[0].hint


def test_the_account_of_pipelines_creates_less_than_members() -> None:
    assert rights.pipeline().creates < rights.member().creates
    assert rights.member().creates - rights.pipeline().creates >= {("", "pods"), ("argoproj.io", "workflows")}


def test_no_hint_leads_into_a_gang_that_waits_for_ever() -> None:
    text = VCJOB.replace(REPLICAS, f"{REPLICAS}      dependsOn: {{name: [master]}}\n")
    found = check_text(text.replace("  queue: vision", "  queue: vision\n  minAvailable: 1"), "job.yaml", site())
    assert [finding.hint for finding in found if "dependsOn" in finding.hint] == [
        "remove dependsOn, and have its program wait for the other"
    ]


def test_the_rest_of_a_gang_is_told_where_the_tasks_say_less() -> None:
    text = VCJOB.replace(REPLICAS, f"{REPLICAS}      minAvailable: 1\n")
    (found,) = check_text(text, "job.yaml", site())
    assert found.hint.endswith("and remove it from the tasks") or "remove it from the tasks" in found.reason


def test_a_template_without_an_entrypoint_is_a_library() -> None:
    text = WORKFLOW.replace("kind: Workflow\n", "kind: WorkflowTemplate\n").replace("  entrypoint: main\n", "")
    assert "TY214" not in {finding.code for finding in check_text(text, "file.yaml", site())}


def test_containers_of_a_set_are_closed_by_the_controller() -> None:
    whole = (
        "      containerSet:\n"
        "        containers: [{name: a, image: site.invalid/trainyard/trainer-torch:0.4.0, command: [a]}]\n"
    )
    assert check_text(WORKFLOW.replace(MAIN, whole), "file.yaml", site()) == []


def test_equal_roles_are_told_each() -> None:
    text = VCJOB.replace(IMAGE, "nginx:1.27")
    found = [finding for finding in check_text(text, "job.yaml", site()) if finding.code == "p17"]
    assert [finding.field for finding in found] == [
        f"spec.tasks[{index}].template.spec.containers[0].image" for index in (0, 1)
    ]
    flat = json.dumps(yaml.safe_load(text))  # all on one line
    assert len([finding for finding in check_text(flat, "job.json", site()) if finding.code == "p17"]) == 2


def test_a_template_that_the_file_has_once_is_told_once() -> None:
    data = yaml.safe_load(VCJOB.replace(IMAGE, "nginx:1.27"))
    data["spec"]["tasks"][1]["template"] = data["spec"]["tasks"][0]["template"]
    text = yaml.safe_dump(data)
    assert "*id001" in text
    found = check_text(text, "job.yaml", site())
    assert [finding.code for finding in found] == ["p17"]


def test_fields_are_those_to_write_in() -> None:
    text = WORKFLOW.replace("  serviceAccountName: pipeline\n", "").replace(
        "  entrypoint: main\n",
        "  entrypoint: main\n  volumeClaimTemplates:\n    - metadata: {name: v}\n"
        "      spec: {storageClassName: standard, resources: {requests: {storage: 1Gi}}}\n",
    )
    found = {finding.code: finding.field for finding in check_text(text, "file.yaml", site())}
    assert found == {"p21": "spec.serviceAccountName", "p24": "spec.volumeClaimTemplates[0].spec.storageClassName"}


def test_the_deadline_of_a_volcano_job_is_a_field_of_its_pods() -> None:
    gpu = "resources: {requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}, limits: {memory: 1Gi, nvidia.com/gpu: 1}}"
    text = VCJOB.replace("command: [python3, train.py]", f"command: [python3, train.py], {gpu}")
    text = text.replace("  queue: vision", "  schedulerName: volcano\n  queue: vision")
    fields = {finding.field for finding in check_text(text, "job.yaml", site()) if finding.code == "p13"}
    assert fields == {f"spec.tasks[{index}].template.spec.activeDeadlineSeconds" for index in (0, 1)}


def test_the_dot_of_a_cache_is_part_of_the_hint() -> None:
    text = WORKFLOW.replace(
        "    - name: main\n", "    - name: main\n      memoize: {key: a, cache: {configMap: {name: x}}}\n"
    )
    (found,) = check_text(text, "file.yaml", site())
    assert found.hint.endswith("begin with vision.")


@pytest.mark.parametrize("resource", ["huawei.com/npu-core", "example.com/gpu"])
def test_devices_of_any_name_are_told_once(resource: str) -> None:
    text = VCJOB.replace("command: [python3, train.py]", f"command: [a], resources: {{limits: {{{resource}: 1}}}}", 1)
    found = [finding for finding in check_text(text, "job.yaml", site()) if resource in finding.reason]
    assert len(found) == 1 and "nvidia.com/gpu" in found[0].hint


def test_an_image_that_may_run_as_root_is_a_warning_and_the_hint_of_pod_security_names_a_user() -> None:
    image = f"docker.io/other/root@sha256:{'0' * 64}"
    text = VCJOB.replace(IMAGE, image).replace("runAsUser: 1000, ", "")
    found = check_text(text, "job.yaml", site())
    assert {(finding.code, str(finding.severity)) for finding in found} == {("TY602", "warning")}
    assert "runAsUser: 1000" in found[0].hint
    text = text.replace(f"          securityContext: {SECURITY.replace('runAsUser: 1000, ', '')}\n", "")
    assert all("runAsUser: 1000" in one.hint for one in check_text(text, "job.yaml", site()) if one.code == "TY601")


def test_what_argo_fills_in_is_left_out() -> None:
    text = resource(
        VCJOB.replace("queue: vision", "queue: '{{inputs.parameters.queue}}'").replace("replicas: 3", "replicas: {{n}}")
    )
    assert check_text(text, "file.yaml", site()) == []


def test_a_team_without_a_contract_is_a_team_of_that_name(trainyard: Run, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("TRAINYARD_CONTRACT", raising=False)
    file = tmp_path / "job.yaml"
    file.write_text(VCJOB.replace("  queue: vision\n", ""))
    ended = trainyard("lint", str(file), "--team", "vision")
    assert "to one of vision, training" in ended.out


def test_one_line_names_the_command_that_writes_what_is_missing(trainyard: Run, tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(WORKFLOW.replace("  serviceAccountName: pipeline\n", ""))
    teams = str(ROOT / "tests" / "policies" / "teams.yaml")
    ended = trainyard("lint", str(file), "--contract", teams, "--team", "vision")
    assert ended.out.splitlines()[-1].startswith(f"{file}: `trainyard submit {file}` fills in account, queue")
    job = [lint.Finding("job.yaml", 1, "p06", "it names no queue", task="PyTorchJob/x")]
    assert list(advice.lines(job, ["lint"])) == []
    assert list(advice.lines(job, ["adopt"])) == [
        "job.yaml: `trainyard adopt job.yaml` fills in the platform's defaults"
    ]


def test_a_class_that_the_cluster_gives_is_replaced_where_it_fills_in() -> None:
    claim = "{metadata: {name: v}, spec: {storageClassName: standard, resources: {requests: {storage: 1Gi}}}}"
    text = WORKFLOW.replace("  entrypoint: main\n", f"  entrypoint: main\n  volumeClaimTemplates: [{claim}]\n")
    policies = TEAMS.raw["policies"]
    for served, due in ((False, ["p24"]), (True, [])):
        fills = {**policies["fill"], "served": served, "clusterClasses": ["standard"]}
        made = replace(TEAMS, raw={**TEAMS.raw, "policies": {**policies, "fill": fills}})
        found = check_text(text, "f.yaml", lint_site(made, "vision"))
        assert [one.code for one in found if one.severity is Severity.ERROR] == due
        assert (storage_class("standard", made, made.team("vision")) is None) == served


def test_submit_tells_lines(tmp_path: Path) -> None:
    from trainyard.errors import UsageError
    from trainyard.pipelines.submit import prepare

    file = tmp_path / "flow.yaml"
    file.write_text(WORKFLOW.replace(IMAGE, "python:3.11"))
    with pytest.raises(UsageError) as error:
        prepare.workflow(prepare.Wanted(file), TEAMS, "vision", lambda text: None)
    line = 1 + WORKFLOW.splitlines().index(MAIN.rstrip("\n"))
    assert f"{file}:{line}: error p17 " in error.value.what


@pytest.mark.parametrize("plain", PLAIN, ids=lambda one: f"{one['kind']}-{one['metadata'].get('name', '')}")
def test_where_the_cluster_fills_in_a_plain_manifest_is_clean(plain: dict[str, Any]) -> None:
    """The manifests that a server which fills in has to take, see tests/policies/test_fill.py."""
    policies = TEAMS.raw["policies"]
    raw = {**TEAMS.raw, "policies": {**policies, "fill": {**policies["fill"], "served": True}}}
    text = yaml.safe_dump(plain)
    assert any(one.severity is Severity.ERROR for one in check_text(text, "f.yaml", lint_site(TEAMS, "vision")))
    found = check_text(text, "f.yaml", lint_site(replace(TEAMS, raw=raw), "vision"))
    assert [one for one in found if one.severity is Severity.ERROR] == []
    (note,) = (one for one in found if one.severity is Severity.NOTE)
    assert note.code == "TY111" and note.reason.startswith("the cluster fills in ")
    teams = {"vision": replace(TEAMS.team("vision"), fill={"enabled": False})}
    opted_out = check_text(text, "f.yaml", lint_site(replace(TEAMS, raw=raw, teams=teams), "vision"))
    assert any(one.severity is Severity.ERROR for one in opted_out)
