"""Adapts a workflow written for Argo to the platform: account, queue, scheduler, deadline, store and GPUs."""

from collections.abc import Callable, Mapping
from typing import Any

from trainyard.errors import UsageError
from trainyard.names import QUEUE
from trainyard.pipelines import deadlines
from trainyard.pipelines.raw import places, templates
from trainyard.pipelines.runs.model import EXPERIMENT, PIPELINE
from trainyard.pipelines.translate.settings import Settings

API_ACCESS = "trainyard.io/api-access"  # label of pods that may reach the API server by the network policy

Object = dict[str, Any]


def workflow(
    document: Object,
    settings: Settings,
    given: Mapping[str, str],
    *,
    queue: str = "",
    say: Callable[[str], None] = lambda text: None,
) -> Object:
    """The workflow as it is sent. The author's settings stay; the team's defaults fill the gaps.

    Args:
        given: values for its parameters, as texts: Argo has no other type.
        queue: the queue that was requested separately; it replaces the file's own.
        say: reports changes to what the author wrote, such as a key of the store.

    Raises:
        UsageError: it is for another namespace; a parameter is unknown or has no value.
    """
    spec, meta = document["spec"], document["metadata"]
    name = str(meta.get("name") or meta.get("generateName", "")).rstrip("-")
    meta["namespace"] = _namespace(meta, settings)
    meta["labels"] = {PIPELINE: name[:63].rstrip("-."), EXPERIMENT: settings.experiment, **(meta.get("labels") or {})}
    spec.setdefault("serviceAccountName", settings.contract.service_account)
    spec.setdefault("schedulerName", settings.contract.scheduler)
    if settings.team.home:
        spec.setdefault("nodeSelector", dict(settings.team.home))
    # A strategy for success or failure alone takes precedence over this.
    spec["ttlStrategy"] = {"secondsAfterCompletion": settings.keep, **(spec.get("ttlStrategy") or {})}
    spec.setdefault("activeDeadlineSeconds", settings.deadline)
    templates.complete(spec, settings)
    places.complete(spec, settings, say)
    all_have_one = "activeDeadlineSeconds" in (spec.get("templateDefaults") or {})
    if isinstance(spec["activeDeadlineSeconds"], int) and not all_have_one:
        deadlines.bound(spec.get("templates") or [], spec["activeDeadlineSeconds"])
    if settings.priority:
        spec["podPriorityClassName"] = settings.priority
    elif settings.team.default_priority:
        spec.setdefault("podPriorityClassName", settings.team.default_priority)
    pods = spec.setdefault("podMetadata", {})
    pods["labels"] = {API_ACCESS: "true", **(pods.get("labels") or {})}
    pods["annotations"] = {
        QUEUE: settings.queue,
        **(pods.get("annotations") or {}),
        **({QUEUE: queue} if queue else {}),
    }
    _fill(spec, given)
    return document


def _namespace(meta: Object, settings: Settings) -> str:
    """The team's namespace. Raises UsageError if the file names another."""
    own = str(meta.get("namespace") or settings.team.name)
    if own != settings.team.name:
        what = f"the workflow is for the namespace {own}, and is submitted to {settings.team.name}"
        raise UsageError(what, hint="leave out its metadata.namespace, or name your team with -n")
    return own


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
