"""A step that makes a Kubernetes Job and outputs how many of its pods succeeded."""

import sys
from pathlib import Path

from kfp import dsl

sys.path.insert(0, str(Path(__file__).parents[5] / "pipelines"))
from components import create_object

IMAGE = "site.invalid/trainyard/pipeline:0.4.0"
POD = {
    "restartPolicy": "Never", "schedulerName": "volcano", "automountServiceAccountToken": False,
    "activeDeadlineSeconds": 300,
    "securityContext": {
        "runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"},
    },
    "containers": [{
        "name": "main", "image": IMAGE, "command": ["sh", "-c", "exit {code}"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
    }],
}  # fmt: skip
JOB = {
    "apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "made-by-a-step-"},
    "spec": {
        "backoffLimit": 0, "ttlSecondsAfterFinished": 600, "activeDeadlineSeconds": 300, "parallelism": "{pods:json}",
        "completions": "{pods:json}",
        "template": {
            "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "{queue}"}},
            "spec": POD,
        },
    },
}  # fmt: skip
BARE = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "not-for-steps-"}, "spec": POD}
LATER = {**BARE, "kind": "{kind}"}  # not known to lint


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def how_many() -> int:
    return 2


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def what_kind() -> str:
    return "Pod"


@dsl.pipeline(name="objects")
def objects(queue: str, code: int = 0) -> str:
    made = create_object(
        manifest=JOB, success_condition="status.succeeded > 1",
        failure_condition="status.conditions.#(type==Failed).status == True",
        timeout="10m", output="status.succeeded",
        settings={"pods": how_many().output, "queue": queue, "code": code},
    )  # fmt: skip
    return made.outputs["value"]


@dsl.pipeline(name="refused")
def refused():
    create_object(manifest=LATER, settings={"kind": what_kind().output, "code": 0})


@dsl.pipeline(name="linted")
def linted():
    create_object(manifest=BARE, settings={"code": 0})
