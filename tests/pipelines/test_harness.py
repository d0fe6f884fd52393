"""The platform of these tests itself, with a workflow written by hand after the step program's README."""

import json
from typing import Any

from pipeline_harness import PipelineHarness


def template(name: str, step: dict[str, Any], script: str, *words: str, **more: Any) -> dict[str, Any]:
    """One step that runs a shell script."""
    return {
        "name": name,
        "volumes": [{"name": "kfp", "emptyDir": {}}],
        "container": {
            "image": "site.invalid/trainyard/pipeline:0.2.0",
            "command": ["/var/run/argo/trainyard-step", "run", "--"],
            "args": ["sh", "-c", script, "sh", "{{$.outputs.artifacts['made'].path}}", *words],
            "env": [
                {"name": "TRAINYARD_STEP", "value": json.dumps({"task": name, **step})},
                {"name": "TRAINYARD_RUN", "value": "{{workflow.name}}"},
            ],
            "volumeMounts": [{"name": "kfp", "mountPath": "/kfp"}],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}},
        },
        "outputs": {
            "parameters": [{"name": "sha-made", "valueFrom": {"path": "/kfp/outp/.sha-made"}}],
            "artifacts": [
                {"name": "made", "path": "/kfp/out/made", "archive": {"none": {}}, "optional": True},
                {"name": "lineage", "path": "/kfp/lineage.json", "archive": {"none": {}}, "optional": True},
            ],
        },
        **more,
    }


MADE = {"artifacts": {"made": {"type": "system.Dataset"}}}
TAKEN = {"artifacts": {"taken": {"type": "system.Dataset"}}}


def workflow(*scripts: str) -> dict[str, Any]:
    """Two steps in line."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "by-hand-", "labels": {}},
        "spec": {
            "entrypoint": "root",
            "serviceAccountName": "pipeline",
            "schedulerName": "volcano",
            "podPriorityClassName": "training-normal",
            "podMetadata": {"annotations": {"scheduling.volcano.sh/queue-name": "training"}},
            "activeDeadlineSeconds": 600,
            "ttlStrategy": {"secondsAfterCompletion": 3600},
            "templates": [
                {"name": "root", "dag": {"tasks": [
                    {"name": "first", "template": "first"},
                    {"name": "second", "template": "second", "depends": "first", "arguments": {
                        "artifacts": [{"name": "taken", "from": "{{tasks.first.outputs.artifacts.made}}"}]}},
                ]}},
                template("first", {"outputs": MADE}, scripts[0]),
                template("second", {"inputs": TAKEN, "outputs": MADE}, scripts[1],
                         "{{$.inputs.artifacts['taken'].path}}",
                         inputs={"artifacts": [{"name": "taken", "path": "/kfp/in/taken"}]}),
            ],
        },
    }  # fmt: skip


def test_artifacts_travel_through_the_store(harness: PipelineHarness) -> None:
    run = harness.submit(workflow('echo hello > "$1"', 'tr a-z A-Z < "$2" > "$1"')).wait()
    assert run.phase == "Succeeded", run.message
    assert harness.store.read(run.key("second", "made") + "/data") == b"HELLO\n"
    assert run.key("first", "made").startswith(f"vision/pipelines/{run.name}/")
    (taken,) = run.lineage("second")["inputs"]
    assert (taken["run"], taken["task"], taken["sha256"]) == (run.name, "first", run.value("first", "sha-made"))


def test_the_steps_error_is_the_nodes_message(harness: PipelineHarness) -> None:
    run = harness.submit(workflow("echo no data >&2; exit 3", "true")).wait()
    assert run.phase == "Failed"
    assert run.node("first")["message"] == "main: Error (exit code 3): no data"
