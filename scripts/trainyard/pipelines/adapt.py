"""Makes a workflow that somebody wrote for Argo fit the platform: account, queue, scheduler, and an end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds.pods import restricted
from trainyard.names import QUEUE
from trainyard.pipelines import deadlines
from trainyard.pipelines.runs.model import EXPERIMENT, PIPELINE
from trainyard.pipelines.translate.settings import Settings

API_ACCESS = "trainyard.io/api-access"  # label of pods that the network policy lets reach the API server

Object = dict[str, Any]


def workflow(document: Object, settings: Settings, given: Mapping[str, str]) -> Object:
    """The workflow as it is sent. What its author set stays; what is missing becomes the team's.

    Args:
        given: values for its parameters, as texts: Argo knows no other type.

    Raises:
        UsageError: a parameter that it doesn't have, or one without a value.
    """
    spec, meta = document["spec"], document["metadata"]
    name = str(meta.get("name") or meta.get("generateName", "")).rstrip("-")
    meta["namespace"] = settings.namespace
    meta["labels"] = {PIPELINE: name[:63].rstrip("-."), EXPERIMENT: settings.experiment, **(meta.get("labels") or {})}
    spec.setdefault("serviceAccountName", settings.service_account)
    spec.setdefault("schedulerName", settings.scheduler)
    spec.setdefault("ttlStrategy", {"secondsAfterCompletion": settings.keep})
    spec.setdefault("activeDeadlineSeconds", settings.deadline)
    if isinstance(spec["activeDeadlineSeconds"], int):
        deadlines.bound(spec.get("templates") or [], spec["activeDeadlineSeconds"])
    spec.setdefault("securityContext", restricted())
    if settings.priority:
        spec["podPriorityClassName"] = settings.priority
    pods = spec.setdefault("podMetadata", {})
    pods["labels"] = {API_ACCESS: "true", **(pods.get("labels") or {})}
    pods["annotations"] = {**(pods.get("annotations") or {}), QUEUE: settings.queue}
    _fill(spec, given)
    return document


def _fill(spec: Object, given: Mapping[str, str]) -> None:
    parameters = spec.setdefault("arguments", {}).setdefault("parameters", [])
    known = {one["name"]: one for one in parameters}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"the workflow has no parameter {', '.join(unknown)}; it has: {', '.join(known) or 'none'}")
    for name, value in given.items():
        known[name].pop("valueFrom", None)
        known[name]["value"] = value
    missing = [name for name, one in known.items() if not {"value", "valueFrom", "default"} & one.keys()]
    if missing:
        hint = "give " + " ".join(f"--param {name}=…" for name in missing)
        raise UsageError(f"the workflow needs a value for {', '.join(missing)}", hint=hint)
