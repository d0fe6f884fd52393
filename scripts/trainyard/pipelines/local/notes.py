"""Requests of a pipeline that this machine can't meet: reported before the run, so that none is ignored silently."""

from collections.abc import Iterator
from typing import Any

from trainyard.errors import UsageError
from trainyard.observe.listing import some
from trainyard.pipelines.ir.model import Executor, Pipeline

# Fields of kfp-kubernetes' settings, and their names in messages.
SETTINGS = {
    "secretAsEnv": "secrets as variables",
    "secretAsVolume": "secrets as files",
    "configMapAsEnv": "ConfigMaps as variables",
    "configMapAsVolume": "ConfigMaps as files",
    "fieldPathAsEnv": "the pod's own fields as variables",
    "pvcMount": "volumes",
    "genericEphemeralVolume": "volumes",
    "emptyDirMounts": "volumes",
    "nodeSelector": "placement",
    "tolerations": "placement",
    "nodeAffinity": "placement",
    "podAffinity": "placement",
    "podMetadata": "labels and annotations",
    "imagePullSecret": "pull secrets",
    "imagePullPolicy": "pull policies",
    "activeDeadlineSeconds": "timeouts",
    "securityContext": "users and groups",
    "enabledSharedMemory": "shared memory",
}
STORE = "trainyard-s3"
CREATE, DELETE = "argostub/createpvc", "argostub/deletepvc"


def refuse(pipeline: Pipeline) -> None:
    """Refuses a pipeline that can't run here at all. Raises UsageError, naming the executor."""
    for executor in pipeline.executors.values():
        if executor.kind not in ("container", "importer"):
            what = f"{_name(executor)} is of the kind {executor.kind}, which runs on Vertex AI only"
            raise UsageError(what, where=pipeline.where(executor.line), hint="remove it, or put a component there")


def not_honoured(pipeline: Pipeline) -> list[str]:
    """Lines for the user: each ignored setting and the steps that have it."""
    found: dict[str, list[str]] = {}
    for executor in pipeline.executors.values():
        for what in _of(executor):
            found.setdefault(what, []).append(_name(executor))
    caching = [str(place) for place in pipeline.tasks() if place.task.cache]
    lines = [f"{what}: {some(dict.fromkeys(names), 6)}" for what, names in sorted(found.items())]
    if images := sorted({executor.image for executor in pipeline.executors.values() if executor.image}):
        lines.append(f"images: steps run with this machine's programs, not in {some(dict.fromkeys(images), 6)}")
    if caching:
        lines.append("cache: every step runs")
    return lines


def _of(executor: Executor) -> Iterator[str]:
    secrets = [
        _secret(entry) for key in ("secretAsEnv", "secretAsVolume") for entry in executor.kubernetes.get(key, [])
    ]
    for key, value in executor.kubernetes.items():
        if not value or (key == "secretAsEnv" and secrets and set(secrets) <= {STORE}):
            continue
        yield SETTINGS.get(key, key)
    if secrets and set(secrets) <= {STORE}:
        yield f"the secret {STORE} (s3:// leads to folders instead)"
    if executor.image.startswith((CREATE, DELETE)):
        yield "volumes"
    resources = executor.resources
    if resources.get("accelerator"):
        yield "GPUs"
    if any(key for key in resources if key != "accelerator"):
        yield "CPU and memory requests"


def _secret(entry: dict[str, Any]) -> str:
    named = (entry.get("secretNameParameter") or {}).get("runtimeValue", {}).get("constant")
    return str(named or entry.get("secretName") or "")


def _name(executor: Executor) -> str:
    return executor.label.removeprefix("exec-")
