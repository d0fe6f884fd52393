"""The whole Workflow: arguments, root, and settings for all of a run's pods."""

import json
from typing import Any

from hera.workflows import models as hera
from pydantic import ValidationError

from trainyard.errors import UsageError
from trainyard.kinds.pods import hide_gpus, restricted
from trainyard.names import GPU, QUEUE, label
from trainyard.pipelines import deadlines
from trainyard.pipelines.ir.arguments import checked
from trainyard.pipelines.ir.model import ROOT, Artifact, Pipeline
from trainyard.pipelines.translate import dags, importer, interfaces, memoization, names, size, values
from trainyard.pipelines.translate.context import Context, Object
from trainyard.pipelines.translate.settings import Settings


def translate(pipeline: Pipeline, arguments: dict[str, Any] | None, settings: Settings) -> Object:
    """Translate the pipeline to a Workflow, a plain dict that hera's models have checked.

    Args:
        arguments: values of the pipeline's inputs, as text or as Python values; an artifact is given as its URI.

    Raises:
        Unsupported: a part that would change its meaning; names its user.
        UsageError: an argument is missing, unknown or of the wrong type, or the workflow is too large for etcd.
    """
    given = _fits_argo(pipeline, checked(pipeline, {**pipeline.arguments, **(arguments or {})}))
    ctx = Context(pipeline, given, settings)
    entry, last = _entry(ctx), dags.at_exit(ctx)
    labels = {
        "trainyard.io/pipeline": label(pipeline.name),
        "trainyard.io/experiment": label(settings.experiment),
    }
    spec: Object = {
        "entrypoint": entry,
        **({"onExit": last} if last else {}),
        "serviceAccountName": settings.contract.service_account,
        "schedulerName": settings.contract.scheduler,
        **({"podPriorityClassName": one} if (one := settings.priority or settings.team.default_priority) else {}),
        **({"nodeSelector": dict(settings.team.home)} if settings.team.home else {}),  # a step with GPUs has its own
        "podMetadata": {
            "labels": {**labels, "trainyard.io/api-access": "true"},
            "annotations": {QUEUE: settings.queue},
        },
        "securityContext": restricted(),
        "podGC": {"strategy": "OnWorkflowCompletion", "deleteDelayDuration": "600s"},
        "ttlStrategy": _ttl(ctx),
        "templates": memoization.wrap(ctx.templates),
    }
    if parameters := _arguments(ctx):
        spec["arguments"] = {"parameters": parameters}
    if ctx.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in ctx.pull_secrets]
    # A workflow without a deadline is refused; a run may not last longer than the site's limit for jobs.
    spec["activeDeadlineSeconds"] = settings.ends(pipeline.config)
    if workspace := pipeline.config.get("workspace"):
        spec["volumeClaimTemplates"] = [_workspace(workspace)]
        spec["volumeClaimGC"] = {"strategy": "OnWorkflowCompletion"}
    metadata = {
        "generateName": f"{names.workflow(pipeline.name)}-",
        "namespace": settings.team.name,
        "labels": labels,
        "annotations": {"trainyard.io/pipeline-name": pipeline.name},
    }
    deadlines.bound(spec["templates"], spec["activeDeadlineSeconds"])
    for one in spec["templates"]:
        if "container" in one:
            _hide_gpus(one, {pool.resource for pool in settings.team.pools if pool.resource} | {GPU})
    found = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}
    workflow = through_hera(found, pipeline.file)
    size.check(workflow, pipeline.file)
    return workflow


def through_hera(workflow: Object, file: str = "") -> Object:
    """The workflow checked by hera's models: they find a wrong type or name before Argo does."""
    try:
        model = hera.Workflow.model_validate(workflow)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(_place(workflow, first["loc"]))
        raise UsageError(
            f"{place}: {first['msg']}, it is {first['input']!r}", where=file, hint="correct that setting"
        ) from None
    return json.loads(model.model_dump_json(exclude_none=True, by_alias=True, exclude_unset=True))


def _hide_gpus(template: Object, resources: set[str]) -> None:
    """Hides GPUs from containers that request none, even if their images would use them."""
    for one in [template["container"], *template.get("initContainers", []), *template.get("sidecars", [])]:
        asked = {*one.get("resources", {}).get("limits", {}), *one.get("resources", {}).get("requests", {})}
        if not asked & resources:
            hide_gpus(one)


def _place(workflow: Object, path: tuple[str | int, ...]) -> list[str]:
    """A path with templates by name, in the form that readers know."""
    words: list[str] = []
    at: Any = workflow
    for part in path:
        at = (
            at[part]
            if isinstance(at, list) and isinstance(part, int)
            else at.get(part)
            if isinstance(at, dict)
            else None
        )
        words.append(at["name"] if isinstance(part, int) and isinstance(at, dict) and "name" in at else str(part))
    return words


def _fits_argo(pipeline: Pipeline, values_: dict[str, Any]) -> dict[str, Any]:
    """The arguments, if all can be passed as Argo's texts. Raises UsageError."""
    for name, value in values_.items():
        text = values.to_text(value)
        if name in pipeline.inputs.artifacts or value is None:
            continue
        if (length := len(text.encode())) > values.LARGEST:
            what = f"{name} has {length:,} bytes, a parameter may have {values.LARGEST:,}"
            raise UsageError(what, where=pipeline.file, hint="pass large values as artifacts")
        if "{{" in text:
            raise UsageError(f"{name} contains {{{{, which Argo would replace", where=pipeline.file)
    return values_


def _entry(ctx: Context) -> str:
    """The root's template. Artifacts that are inputs of the pipeline are imported first, by a template around it."""
    root = ctx.pipeline.root
    given = [one for one in root.inputs.artifacts.values() if one.name in ctx.arguments]
    name = dags.template(ctx, root)
    if not given:
        return name
    parameters = [
        {"name": one["name"], "value": values.tag(f"workflow.parameters.{one['name']}")} for one in _arguments(ctx)
    ]
    artifacts, tasks = list[Object](), list[Object]()
    for one in given:
        task = _import(ctx, one)
        digest = values.output_parameter(task["name"], f"sha-{one.name}")
        parameters.append({"name": f"sha-{one.name}", "value": digest.text})
        artifacts.append({"name": one.name, "from": values.tag(f"tasks.{task['name']}.outputs.artifacts.{one.name}")})
        tasks.append(task)
    body = {
        "name": ROOT,
        "template": name,
        "depends": " && ".join(f"{task['name']}.Succeeded" for task in tasks),
        "arguments": {"parameters": parameters, "artifacts": artifacts},
    }
    entry, _ = ctx.template(["entry"], "with-inputs", lambda: ({"dag": {"tasks": [*tasks, body]}}, None))
    return entry


def _import(ctx: Context, artifact: Artifact) -> Object:
    """The task that imports an input artifact of the pipeline from its URI."""
    component = importer.for_input(artifact)
    executor = component.executor
    assert executor is not None

    def body() -> tuple[Object, None]:
        return importer.body(ctx, component, executor, cache=False), None

    template, _ = ctx.template(["input", artifact.name], component.name, body)
    uri = {"name": "uri", "value": values.literal(ctx.arguments[artifact.name]).text}
    return {"name": component.name, "template": template, "arguments": {"parameters": [uri]}}


def _arguments(ctx: Context) -> list[Object]:
    found = []
    for one in ctx.pipeline.inputs.parameters.values():
        default = interfaces.default_of(one)
        if one.name in ctx.arguments:
            found.append({"name": one.name, "value": values.to_text(ctx.arguments[one.name])})
        elif "default" in default:
            found.append({"name": one.name, "value": default["default"]})
    return found


def _ttl(ctx: Context) -> Object:
    """How long a finished run stays. kfp's setting for one outcome leaves the others at the platform's default."""
    config = ctx.pipeline.config
    found = {"secondsAfterCompletion": config.get("resourceTtlOnCompletion") or ctx.settings.keep}
    for field, key in (
        ("resourceTtlOnSuccess", "secondsAfterSuccess"),
        ("resourceTtlOnFailure", "secondsAfterFailure"),
    ):
        if config.get(field):
            found[key] = config[field]
    return found


def _workspace(workspace: dict[str, Any]) -> Object:
    """The claim that all steps of a run share."""
    patch = workspace.get("kubernetes", {}).get("pvcSpecPatch", {})
    spec = {
        "accessModes": ["ReadWriteOnce"],
        **patch,
        "resources": {"requests": {"storage": workspace.get("size", "")}},
    }
    return {"metadata": {"name": "kfp-workspace"}, "spec": spec}
