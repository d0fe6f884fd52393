"""Broken manifests, settings of jobs and Argo workflows: each is one clear finding at its line, none a traceback.

A case changes one text of something that is clean: (what is wrong, old, new, code, what the line of the finding holds).
"""

from dataclasses import replace
from pathlib import Path

import pytest
from lint_cases import broken, damaged, misshapen, one, site

from trainyard import __version__
from trainyard.paths import ROOT
from trainyard.pipelines.lint.files import check, check_text

JOB = (ROOT / "manifests" / "jobs" / "pytorchjob.yaml").read_text()
MASTER = JOB.partition("      minAvailable: 4\n")[2].partition(": 1\n")[0]
JOBS = [
    ("no kind", "kind: PyTorchJob\n", "", "TY105", "apiVersion"),
    ("a kind that lint does not know", "kind: PyTorchJob", "kind: MXJob", "TY106", "kind: MXJob"),
    ("a name with capitals", "  name: mnist-pytorch\n  labels", "  name: MNIST\n  labels", "TY108", "MNIST"),
    ("no replicas", "  pytorchReplicaSpecs:", "  replicaSpecs:", "TY105", ""),
    ("a role that is none", "    Worker:\n", "    Workers:\n", "TY105", "pytorchReplicaSpecs"),
    ("replicas that are a text", "replicas: 3", "replicas: three", "TY105", "replicas: three"),
    ("a field of the run policy that is mistyped", "activeDeadlineSeconds", "deadlineSeconds", "TY105",
     "deadlineSeconds"),
    ("a number as a value of the environment", "valueFrom: {fieldRef: {fieldPath: spec.nodeName}}", "value: 3", "TY105",
     "value: 3"),
    ("yes as a value of the environment", "valueFrom: {fieldRef: {fieldPath: spec.nodeName}}", "value: yes", "TY105",
     "yes"),
    ("a name that begins with a digit", "  name: mnist-pytorch\n  labels", "  name: 1st\n  labels", "TY109", "1st"),
    ("two masters", f"      minAvailable: 4\n{MASTER}: 1", f"{MASTER}: 2", "TY109", "replicas: 2"),
    ("a container that the operator does not find", "- name: pytorch #", "- name: main #", "TY109", "name: main"),
    ("a user below zero", "runAsUser: 1000", "runAsUser: -1", "TY105", "runAsUser"),
    ("a user that is a text", "runAsUser: 1000", "runAsUser: me", "TY105", "runAsUser"),
    ("no deadline", "    activeDeadlineSeconds: 1800\n", "", "p13", "runPolicy"),
    ("a job that would stay", "    ttlSecondsAfterFinished: 3600\n", "", "p13", ""),
    ("no queue", "      queue: vision\n", "", "p06", "schedulingPolicy"),
    ("the queue of another team", "queue: vision", "queue: speech", "p06", "speech"),
    ("a queue that runs no jobs", "queue: vision", "queue: above", "TY501", "above"),
    ("a queue that is too narrow", "queue: vision", "queue: narrow", "TY403", "narrow"),
    ("a priority class of others", "priorityClass: training-normal", "priorityClass: system-node-critical", "p07",
     "system"),
    ("a part of the gang", "minAvailable: 4", "minAvailable: 2", "p22", "minAvailable: 2"),
    ("an amount that is none", "cpu: 150m", "cpu: lots", "TY105", "lots"),
    ("a limit below the request", "limits: {memory: 1Gi,", "limits: {memory: 64Mi,", "TY405", "64Mi"),
    ("no request of memory", "requests: {cpu: 150m, memory: 384Mi,", "requests: {cpu: 150m,", "p01", "resources"),
    ("GPUs in limits alone", "384Mi, nvidia.com/gpu: 1}", "384Mi}", "p01", "resources"),
    ("a toleration that is missing", "            - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}",
     "            - {key: other, operator: Exists}", "TY408", "tolerations"),
    ("a pool that is not there", "trainyard.io/pool: gpu", "trainyard.io/pool: huge", "TY408", "nodeSelector"),
    ("a token", "          automountServiceAccountToken: false", "          enableServiceLinks: false", "p16", ""),
    ("a privileged container", "readOnlyRootFilesystem: true", "privileged: true", "TY601", ""),
    ("an idle container", "[python3, -m, mnist.train_torch]", "[sleep, infinity]", "p14", "sleep"),
    ("the host's folder", "emptyDir: {sizeLimit: 512Mi}", "hostPath: {path: /}", "p15", "name: tmp"),
    ("a node by name", "          schedulerName: volcano", "          nodeName: gpu-1", "p10", "gpu-1"),
    ("another scheduler", "schedulerName: volcano", "schedulerName: mine", "p02", "mine"),
    ("an image without a version", f"trainer-torch:{__version__}", "trainer-torch", "TY301", "trainer-torch"),
    ("a bucket that is not there", "s3://datasets/", "s3://data/", "TY504", "s3://data/"),
    ("a field that YAML reads twice", "      queue: vision", "      queue: vision\n      queue: training", "TY101",
     "training"),
    ("no text", JOB, "- 1\n", "TY101", "1"),
    ("nothing", JOB, "# nothing\n", "TY101", ""),
    ("a text", JOB, "just words\n", "TY101", "just"),
]  # fmt: skip

SETTINGS = """\
name: digits
team: vision
framework: pytorch
command: [python, train.py]
nodes: 2
gpus: 1
queue: training
priority: training-normal
memory: 4Gi
env: {MODE: fast}
deadline: 12h
"""
SETTINGS_CASES = [
    ("a setting that is mistyped", "nodes: 2", "node: 2", "TY104", "node:"),
    ("a framework that is none", "framework: pytorch", "framework: caffe", "TY104", "caffe"),
    ("a number as text", "gpus: 1", "gpus: one", "TY104", "one"),
    ("a command that is a text", "[python, train.py]", "python train.py", "TY104", "command"),
    ("a length of time that is none", "12h", "soon", "TY104", "soon"),
    ("an amount that is none", "4Gi", "much", "TY104", "much"),
    ("a name with capitals", "name: digits", "name: Digits", "TY104", "Digits"),
    ("yes in the environment", "MODE: fast", "MODE: yes", "TY104", "MODE"),
    ("the queue of another team", "queue: training", "queue: speech", "TY501", "speech"),
    ("a priority class of others", "priority: training-normal", "priority: system-node-critical", "TY502", "system"),
    ("more GPUs than a job may have", "nodes: 2\ngpus: 1", "nodes: 4\ngpus: 4", "p08", "gpus"),
    ("more GPUs than a node has", "nodes: 2\ngpus: 1", "nodes: 1\ngpus: 8", "TY401", "gpus"),
    ("a pool that is not there", "deadline: 12h", "deadline: 12h\npool: huge", "TY408", "pool"),
    ("a spot pool without checkpoints", "deadline: 12h", "deadline: 12h\npool: spot", "TY407", "pool"),
    ("an image of elsewhere", "deadline: 12h", "deadline: 12h\nimage: example.org/x:1", "p17", "image"),
]

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
        image: site.invalid/trainyard/trainer-torch:0.2.0
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
    ("an account that is not the pipelines'", "serviceAccountName: pipeline", "serviceAccountName: default", "p21",
     "default"),
    ("far more memory than is requested", STEP,
     f"{STEP}\n        resources: {{requests: {{memory: 1Gi}}, limits: {{memory: 64Gi}}}}", "p32", "resources"),
    ("a model in the step's own files", STEP, f"{STEP[:-1]}, --output-dir, /out]", "p33", "container:"),
    ("no end", "  activeDeadlineSeconds: 86400\n", "", "p21", ""),
    ("that would stay", "  ttlStrategy: {secondsAfterCompletion: 3600}\n", "", "p21", ""),
    ("the queue of another team", "queue-name: vision", "queue-name: speech", "p03", "speech"),
    ("a template without an image", "        image: site.invalid/trainyard/trainer-torch:0.2.0\n", "", "TY105",
     "container"),
    ("a container's field that is mistyped", STEP, f"{STEP}\n        workDir: /tmp", "TY105", "workDir"),
    ("an image of elsewhere", "site.invalid/trainyard/trainer-torch:0.2.0", "python:3.11", "p17", "python:3.11"),
    ("a root's container", STEP, f"{STEP}\n        securityContext: {{runAsUser: 0}}", "TY601", "name: step"),
    ("the host's folder", "  entrypoint: main", "  entrypoint: main\n  volumes: [{name: v, hostPath: {path: /}}]",
     "p15", "hostPath"),
    ("a root password", STEP, f"{STEP}\n        envFrom: [{{secretRef: {{name: minio-root}}}}]", "p23", "minio-root"),
    (
        "a claim of another class",
        "  entrypoint: main",
        "  entrypoint: main\n  volumeClaimTemplates: [{metadata: {name: v}, "
        "spec: {storageClassName: standard, resources: {requests: {storage: 1Gi}}}}]",
        "p24",
        "standard",
    ),
]  # fmt: skip
BEGINNINGS = {
    "job.yaml": (JOB, JOBS),
    "trainyard.yaml": (SETTINGS, SETTINGS_CASES),
    "workflow.yaml": (WORKFLOW, WORKFLOWS),
}
EVERY = [(file, *case) for file, (_, cases) in BEGINNINGS.items() for case in cases]
EACH_FILE = pytest.mark.parametrize("file", BEGINNINGS)


def test_a_field_under_a_wrong_name_hides_nothing_else_of_its_pod() -> None:
    """All findings are reported at once, so that no second round is needed."""
    text = broken(JOB, "          automountServiceAccountToken: false\n", "          parallelism: 2\n")
    text = broken(text, "          securityContext:\n", "          securityContxt:\n")
    assert {finding.code for finding in check_text(text, "job.yaml", site())} == {"TY105", "p16"}


@EACH_FILE
def test_what_the_cases_begin_from_is_clean(file: str) -> None:
    assert check_text(BEGINNINGS[file][0], "file.yaml", site()) == []


@pytest.mark.parametrize(("file", "about", "old", "new", "code", "line"), EVERY, ids=[case[1] for case in EVERY])
def test_case(file: str, about: str, old: str, new: str, code: str, line: str) -> None:
    text = broken(BEGINNINGS[file][0], old, new)
    one(check_text(text, file, site()), text, code, line)


def test_all_errors_are_reported_at_once() -> None:
    text = JOB.replace("queue: vision", "queue: speech").replace("minAvailable: 4", "minAvailable: 2")
    text = text.replace(f"trainer-torch:{__version__}", "trainer-torch").replace("s3://runs/", "s3://run/")
    assert {finding.code for finding in check_text(text, "job.yaml", site())} == {"p06", "p22", "TY301", "TY504"}


@EACH_FILE
def test_damaged_files_are_findings_and_no_tracebacks(file: str) -> None:
    text = BEGINNINGS[file][0]
    for made in (*damaged(text), *misshapen(text)):
        assert all(finding.reason and finding.line >= 0 for finding in check_text(made, "damaged.yaml", site()))


def test_what_has_no_text_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "model.yaml"
    file.write_bytes(b"\xff\xfe\x00model")
    (finding,) = check(file, site())
    assert (finding.code, finding.reason) == ("TY101", "the file is not text")


def test_advice_about_steps_is_no_refusal_where_the_rule_is_enforced() -> None:
    """The pods of steps are their controller's, which the rule spares."""
    text = WORKFLOW.replace(STEP, f"{STEP[:-1]}, --output-dir, /out]")
    enforced = replace(site(), contract=replace(site().contract, modes={"model-path": "enforce"}))
    assert [(one.code, str(one.severity)) for one in check_text(text, "f.yaml", enforced)] == [("p33", "warning")]


def test_a_step_at_the_exit_is_told_its_deadline_together_with_the_workflow() -> None:
    text = broken(WORKFLOW, "  activeDeadlineSeconds: 86400\n", "  onExit: last\n")
    text += "    - {name: last, container: {image: site.invalid/trainyard/trainer-torch:0.2.0, command: [ls]}}\n"
    found = {finding.code for finding in check_text(text, "workflow.yaml", site())}
    assert {"p12", "p21"} <= found, found
