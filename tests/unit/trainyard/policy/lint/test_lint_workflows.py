"""Broken Argo workflows: each is one clear finding at its line, none a traceback.

A case changes one text of something that is clean: (what is wrong, old, new, code, what the line of the finding holds).
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from lint_cases import broken, damaged, misshapen, one, site

from trainyard.pipelines.lint.files import check_text

WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: digits-, namespace: vision}
spec:
  entrypoint: main
  serviceAccountName: pipeline
  activeDeadlineSeconds: 86400
  ttlStrategy: {secondsAfterCompletion: 3600}
  podMetadata:
    annotations: {scheduling.volcano.sh/queue-name: vision}
  templates:
    - name: main
      dag:
        tasks:
          - {name: make, template: step, arguments: {parameters: [{name: rows, value: "3"}]}}
          - name: train
            template: step
            depends: make.Succeeded
            arguments: {parameters: [{name: rows, value: "{{tasks.make.outputs.result}}"}]}
    - name: step
      inputs: {parameters: [{name: rows}]}
      container:
        image: docker.io/trainyard/trainer-torch:0.2.0
        command: [python3, step.py]
"""


STEP = "        command: [python3, step.py]"


WORKFLOWS = [
    ("no entrypoint", "  entrypoint: main\n", "", "TY214", ""),
    ("an entrypoint that is not there", "entrypoint: main", "entrypoint: begin", "TY214", "begin"),
    ("a template that is not there", "            template: step", "            template: stop", "TY214", "stop"),
    ("a task to wait for that is not there", "depends: make.Succeeded", "depends: mae.Succeeded", "TY214", "mae"),
    ("a result of a task that is not there", "tasks.make.outputs", "tasks.mke.outputs", "TY214", "mke"),
    ("a circle", "{name: make, template: step,", "{name: make, depends: train, template: step,", "TY214", "name: make"),
    ("an input that is missing", ', arguments: {parameters: [{name: rows, value: "3"}]}', "", "TY214", "name: make"),
    (
        "an account that is not the pipelines'",
        "serviceAccountName: pipeline",
        "serviceAccountName: default",
        "p21",
        "default",
    ),
    (
        "far more memory than is requested",
        STEP,
        f"{STEP}\n        resources: {{requests: {{memory: 1Gi}}, limits: {{memory: 64Gi}}}}",
        "p32",
        "resources",
    ),
    ("a model in the step's own files", STEP, f"{STEP[:-1]}, --output-dir, /out]", "p33", "container:"),
    ("no end", "  activeDeadlineSeconds: 86400\n", "", "p21", ""),
    ("that would stay", "  ttlStrategy: {secondsAfterCompletion: 3600}\n", "", "p21", ""),
    ("the queue of another team", "queue-name: vision", "queue-name: speech", "p03", "speech"),
    (
        "a template without an image",
        "        image: docker.io/trainyard/trainer-torch:0.2.0\n",
        "",
        "TY105",
        "container",
    ),
    ("a container's field that is mistyped", STEP, f"{STEP}\n        workDir: /tmp", "TY105", "workDir"),
    ("an image of elsewhere", "docker.io/trainyard/trainer-torch:0.2.0", "python:3.11", "p17", "python:3.11"),
    ("a root's container", STEP, f"{STEP}\n        securityContext: {{runAsUser: 0}}", "TY601", "name: step"),
    (
        "the host's folder",
        "  entrypoint: main",
        "  entrypoint: main\n  volumes: [{name: v, hostPath: {path: /}}]",
        "p15",
        "hostPath",
    ),
    ("a root password", STEP, f"{STEP}\n        envFrom: [{{secretRef: {{name: minio-root}}}}]", "p23", "minio-root"),
    (
        "a claim of another class",
        "  entrypoint: main",
        "  entrypoint: main\n  volumeClaimTemplates: [{metadata: {name: v}, "
        "spec: {storageClassName: standard, resources: {requests: {storage: 1Gi}}}}]",
        "p24",
        "standard",
    ),
]


def test_what_the_cases_begin_from_is_clean() -> None:
    assert check_text(WORKFLOW, "file.yaml", site()) == []


@pytest.mark.parametrize(("about", "old", "new", "code", "line"), WORKFLOWS, ids=[case[0] for case in WORKFLOWS])
def test_workflow(about: str, old: str, new: str, code: str, line: str) -> None:
    text = broken(WORKFLOW, old, new)
    one(check_text(text, "workflow.yaml", site()), text, code, line)


def test_damaged_files_are_findings_and_no_tracebacks() -> None:
    for made in (*damaged(WORKFLOW), *misshapen(WORKFLOW)):
        assert all(finding.reason and finding.line >= 0 for finding in check_text(made, "damaged.yaml", site()))


def test_advice_about_steps_is_no_refusal_where_the_rule_is_enforced() -> None:
    """The pods of steps are their controller's, which the rule spares."""
    text = WORKFLOW.replace(STEP, f"{STEP[:-1]}, --output-dir, /out]")
    enforced = replace(site(), contract=replace(site().contract, modes={"model-path": "enforce"}))
    assert [(one.code, str(one.severity)) for one in check_text(text, "f.yaml", enforced)] == [("p33", "warning")]


def test_a_step_at_the_exit_is_told_its_deadline_together_with_the_workflow() -> None:
    text = broken(WORKFLOW, "  activeDeadlineSeconds: 86400\n", "  onExit: last\n")
    text += "    - {name: last, container: {image: docker.io/trainyard/trainer-torch:0.2.0, command: [ls]}}\n"
    found = {finding.code for finding in check_text(text, "workflow.yaml", site())}
    assert {"p12", "p21"} <= found, found
