"""Objects that steps create: checked before the pipeline is sent, as the account that will create them."""

import copy
import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import contract
from trainyard.paths import ROOT
from trainyard.pipelines import lint

TEAMS = contract.load(ROOT / "tests" / "policies" / "teams.yaml")
VCJOB = yaml.safe_load("""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {generateName: made-}
spec:
  schedulerName: volcano
  queue: vision
  minAvailable: 1
  ttlSecondsAfterFinished: 600
  tasks:
    - name: worker
      replicas: 1
      template:
        metadata: {annotations: {scheduling.volcano.sh/queue-name: vision}}
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          activeDeadlineSeconds: 600
          securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
          containers:
            - name: worker
              image: site.invalid/trainyard/trainer-torch:0.2.0
              command: ["sh", "-c", "exit {code}"]
              securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
              resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
""")
TEXT = """\
from kfp import dsl

from components import create_object

MANIFEST = {manifest!r}


@dsl.component(base_image="site.invalid/trainyard/pipeline:0.4.0", install_kfp_package=False)
def asked() -> str:
    return "vision"


@dsl.pipeline(name="made")
def made(code: int = 0):
    create_object(manifest=MANIFEST, {arguments})
"""
Found = list[tuple[str, str, str]]


@pytest.fixture
def linted(tmp_path: Path) -> Callable[..., Found]:
    """(code, field, reason) of what lint says of a pipeline with one such step."""
    shutil.copytree(ROOT / "pipelines" / "components", tmp_path / "components")

    def call(manifest: Any, arguments: str = "", site: contract.Contract = TEAMS) -> Found:
        file = tmp_path / "made.py"
        file.write_text(TEXT.format(manifest=manifest, arguments=arguments))
        found = lint.file(file, lint.site(site, "vision"))
        lines = file.read_text().splitlines()
        assert all("create_object(" in lines[one.line - 1] and one.task == "create-object" for one in found), found
        return [(one.code, one.field, one.reason) for one in found if one.severity is lint.Severity.ERROR]

    return call


def changed(*path: Any, to: Any) -> dict[str, Any]:
    made = copy.deepcopy(VCJOB)
    node: Any = made
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = to
    return made  # type: ignore[no-any-return]


POD = ("spec", "tasks", 0, "template", "spec")


def test_what_the_cases_begin_from_is_clean(linted: Callable[..., Found]) -> None:
    assert linted(VCJOB, 'settings={"code": code}, success_condition="status.succeeded > 0"') == []


ELSEWHERE = {"name": "x", "namespace": "speech"}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "data": {}}
RAY = {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {}}


@pytest.mark.parametrize(
    ("manifest", "arguments", "code", "field", "says"),
    [
        (changed("spec", "queue", to="{q}"), 'settings={"q": "speech"}', "p05", "manifest.spec.queue", "speech"),
        (changed(*POD, "containers", 0, "image", to="python:3.11"), "", "p17", None, "python:3.11"),
        (changed(*POD, "automountServiceAccountToken", to=True), "", "p16", None, "API token"),
        (changed(*POD, "hostNetwork", to=True), "", "TY601", None, "host"),
        (changed("metadata", to=ELSEWHERE), "", "TY505", "manifest.metadata.namespace", "speech"),
        ({**MAP, "kind": "Pod"}, "", "TY110", "manifest.kind", "may not create a Pod"),
        ({**MAP, "kind": "Secret"}, "", "TY110", "manifest.kind", "may not create a Secret"),
        (RAY, "", "TY106", "manifest.kind", "no kind RayJob"),
        ({"kind": "Job"}, "", "TY104", "manifest", "is not a Kubernetes object"),
        (VCJOB, 'timeout="soon"', "TY104", "timeout", "invalid duration"),
        (VCJOB, 'success_condition="status.succeeded >"', "TY104", "success_condition", "success_condition"),
    ],
)
def test_what_a_step_would_be_refused_for(
    linted: Callable[..., Found], manifest: Any, arguments: str, code: str, field: str | None, says: str
) -> None:
    found = linted(manifest, arguments)
    assert any(one[0] == code and field in (None, one[1]) and says in one[2] for one in found), found


def test_a_step_may_make_a_file_of_settings(linted: Callable[..., Found]) -> None:
    assert linted(MAP, "") == []


def test_what_only_the_run_knows_is_no_error(linted: Callable[..., Found]) -> None:
    made = changed("spec", "queue", to="{queue}")
    made["spec"]["minAvailable"] = "{many:json}"
    later = 'settings={"queue": asked().output, "many": code}'
    assert linted(made, later) == []
    assert linted({"apiVersion": "v1", "kind": "{queue}"}, later) == []


def test_kinds_that_the_site_gives_to_steps_are_taken(linted: Callable[..., Found]) -> None:
    given = [{"apiGroups": ["ray.io"], "resources": ["rayjobs"]}]
    site = dataclasses.replace(TEAMS, raw={**TEAMS.raw, "pipelines": {**TEAMS.pipelines, "objects": given}})
    assert linted(RAY, site=site) == []


def test_where_the_api_server_fills_in_what_it_fills_in_is_not_missed(linted: Callable[..., Found]) -> None:
    plain = copy.deepcopy(VCJOB)
    del plain["spec"]["queue"], plain["spec"]["tasks"][0]["template"]["spec"]["securityContext"]
    assert {"p05", "TY601"} <= {code for code, _, _ in linted(plain)}
    policies = TEAMS.raw["policies"]
    served = dataclasses.replace(
        TEAMS, raw={**TEAMS.raw, "policies": {**policies, "fill": {**policies["fill"], "served": True}}}
    )
    assert linted(plain, site=served) == []
    assert {code for code, _, _ in linted({**plain, "spec": {**plain["spec"], "queue": "speech"}}, site=served)} == {
        "p05"
    }
