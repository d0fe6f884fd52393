"""Components that run a container: one shared template for each, however many tasks run it."""

import json
import re
from dataclasses import asdict
from typing import Any

from trainyard.kinds.pods import CLOSED
from trainyard.pipelines.ir import installer
from trainyard.pipelines.ir.model import Artifact, Component, Executor, FromTask, Parameter, Task
from trainyard.pipelines.translate import (
    claims,
    importer,
    interfaces,
    kubernetes,
    packages,
    resources,
    sources,
    step_parts,
    values,
)
from trainyard.pipelines.translate.context import Context, Object, UnknownAtSubmitError, digest

LARGEST = 100_000  # bytes of a template, which Argo passes to its pod in one variable; Linux allows 128 KiB


def template(ctx: Context, owner: Component, task: Task, component: Component) -> tuple[str, list[Object], list[str]]:
    """The template of a task's step, its arguments in addition to the component's, and the tasks that they come from.

    Tasks share a template if component, retries, cache and the values known before the run are the same.
    """
    executor = component.executor
    if executor is None:
        raise ctx.graph.dangling(f"the executor {component.executor_label or '(none)'}", component)
    if executor.kind not in ("container", "importer"):
        raise ctx.refuse(f"a {executor.kind}", component, hint="it belongs to Google's service; run a container")
    known = _known(ctx, owner, task, component, executor)
    exits = task is ctx.graph.exit
    cache = task.cache and ctx.settings.cache and not exits
    key = [
        "step",
        _content(component, executor),
        asdict(task.retry) if task.retry else None,
        cache,
        task.cache_key,
        known,
        exits,
    ]
    made = ctx.template(key, component.name, lambda: _body(ctx, component, executor, task, cache, known))
    name, references = made
    extra: list[Object] = []
    before: list[str] = []
    for parameter, spec in references:
        source = sources.reference(ctx, owner, task, spec)
        if isinstance(source, FromTask):
            before.append(source.task)
        extra.append({"name": parameter, "value": sources.parameter(ctx, owner, task, source).text})
    return name, extra, before


def _content(component: Component, executor: Executor) -> Any:
    """The content by which two components are the same, whatever their names."""
    parts: list[Any] = [executor.raw, executor.kind, executor.kubernetes]
    for interface in (component.inputs, component.outputs):
        declared: list[Parameter | Artifact] = [*interface.parameters.values(), *interface.artifacts.values()]
        parts += [{k: repr(v) for k, v in asdict(one).items() if k != "line"} for one in declared]
    return digest(parts)


def _known(ctx: Context, owner: Component, task: Task, component: Component, executor: Executor) -> dict[str, Any]:
    """Settings for which Argo allows no parameter, with their values at submission."""
    found: dict[str, Any] = {}
    for place, feature, spec in [*kubernetes.fixed(executor), *resources.fixed(executor)]:
        source = sources.reference(ctx, owner, task, spec)
        try:
            found[place] = ctx.known(owner, source)
        except UnknownAtSubmitError:
            raise ctx.refuse(
                f"{feature} that is only known while the pipeline runs",
                component,
                hint="use a constant or an argument of the pipeline",
            ) from None
    return found


def _body(
    ctx: Context, component: Component, executor: Executor, task: Task, cache: bool, known: dict[str, Any]
) -> tuple[Object, list[tuple[str, dict[str, Any]]]]:
    if executor.kind == "importer":
        return importer.body(ctx, component, executor, cache=cache), []
    if executor.image in claims.IMAGES:
        return claims.body(ctx, component, executor), []
    _refuse_unknown(ctx, component, executor)
    inputs = interfaces.inputs(component, ctx.graph.used(component))
    name = task.name if task is ctx.graph.exit else "{{tasks.name}}"
    asked, command = installer.split([*executor.command, *executor.args])
    start = ["sh", "-c", step_parts.WITH_KFP] if asked else []
    container = _container(ctx, component, executor, [*start, *command], name, cache)
    found: Object = {"container": container, "volumes": [{"name": "kfp", "emptyDir": {}}]}
    resources.apply(ctx, component, executor, known, found)
    references = kubernetes.apply(ctx, component, executor, known, found)
    if references:
        inputs.setdefault("parameters", []).extend({"name": name} for name, _ in references)
    for artifact in inputs.get("artifacts", ()):
        artifact["path"] = f"/kfp/in/{artifact['name']}"
    if ctx.pipeline.config.get("workspace"):
        container["volumeMounts"].append({"name": "kfp-workspace", "mountPath": "/kfp-workspace"})
    if lists := [one.name for one in component.inputs.artifacts.values() if one.is_list]:
        found["initContainers"] = [_collect(ctx, container, lists)]
    if asked:
        packages.add(ctx, component, asked, found)
    found["retryStrategy"] = step_parts.retry_strategy(task.retry) if task.retry else step_parts.infrastructure()
    if found["retryStrategy"]["limit"] == "0":
        del found["retryStrategy"]
    if cache:
        names = [one["name"] for one in inputs.get("parameters", ()) if not one["name"].startswith("at-")]
        found["memoize"] = step_parts.memoize(
            ctx, component, [_content(component, executor), known], names, task.cache_key
        )
    head: Object = {"inputs": inputs} if inputs else {}
    head["outputs"] = interfaces.outputs(ctx, component)
    size = len(json.dumps({**head, **found}))
    if size > LARGEST:
        raise ctx.refuse(
            f"a command and settings of {size:,} bytes",
            component,
            reason=f"a step may have {LARGEST:,}",
            hint="move the code to the image, or data to an artifact",
        )
    return {**head, **found}, references


def _container(
    ctx: Context, component: Component, executor: Executor, command: list[str], task: str, cache: bool
) -> Object:
    if not any(re.search(r"\{\{(?!\$)", word) for word in command):
        words, mode = command, "--"
    else:
        words, mode = [json.dumps(command, ensure_ascii=False).replace("{{", "{\\u007b")], "--json"
    own = {name: values.input_parameter(name).code for name in component.inputs.parameters}
    environment_ = step_parts.environment(ctx, component, own, cache, task)
    for name, value in executor.env.items():
        if "{{" in value:
            raise ctx.refuse(f"{{{{ in the variable {name}", component, hint="set it inside the component")
        environment_ = [one for one in environment_ if one["name"] != name]
        environment_.append({"name": name, "value": value})
    return {
        "image": ctx.settings.contract.pulled(executor.image),
        "imagePullPolicy": "IfNotPresent",
        "command": [step_parts.PROGRAM, "run", mode],
        **({"args": words} if words else {}),
        "env": environment_,
        "securityContext": dict(CLOSED),
        "volumeMounts": [{"name": "kfp", "mountPath": "/kfp"}, {"name": "kfp", "mountPath": "/s3", "subPath": "s3"}],
    }


def _collect(ctx: Context, container: Object, lists: list[str]) -> Object:
    """Fetches lists of artifacts before the command; the keys stay out of the container that runs users' code."""
    pairs = ", ".join(
        f"{json.dumps(name)}: {{{{=toJson(inputs.parameters[{values.quoted(f'at-{name}')}])}}}}" for name in lists
    )
    return {
        "name": "collect",
        "image": container["image"],
        "imagePullPolicy": container["imagePullPolicy"],
        "command": [step_parts.PROGRAM, "collect"],
        "env": [{"name": "TRAINYARD_LISTS", "value": "{" + pairs + "}"}, *step_parts.store_keys()],
        "securityContext": container["securityContext"],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [{"name": "kfp", "mountPath": "/kfp"}],
    }


def _refuse_unknown(ctx: Context, component: Component, executor: Executor) -> None:
    if executor.raw.get("lifecycle"):
        raise ctx.refuse("a lifecycle command before the cache is asked", component, hint="remove it")
    if component.passthroughs or any(p.type == "TASK_CONFIG" for p in component.inputs.parameters.values()):
        raise ctx.refuse("dsl.TaskConfig", component, hint="pass the settings to the component as parameters")
    if not executor.image:
        raise ctx.refuse("no image", component, hint="set base_image")
    if not executor.command and (not executor.args or executor.args[0].startswith("-")):
        raise ctx.refuse("a container without a command", component, hint="write the image's own as command=[…]")
    if "{{" in executor.image:
        raise ctx.refuse("an image that is a parameter", component, hint="write the image")
