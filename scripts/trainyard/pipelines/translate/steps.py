"""Components that run a container: one shared template each, however many tasks run it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from typing import Any

from trainyard.pipelines.ir.model import Component, Executor, FromTask, Retry, Task
from trainyard.kinds.pods import CLOSED
from trainyard.pipelines.translate import claims, dags, importer, kubernetes, resources, sources, values
from trainyard.pipelines.translate.context import Context, Object, UnknownAtSubmitError, digest
from trainyard.pipelines.translate.settings import Settings

PROGRAM = "/var/run/argo/trainyard-step"
# A step that ran out of its time has the pod's message and no attempt; a stopped run has none in any case.
LOST = (
    "lastRetry.status == 'Error' || (lastRetry.exitCode == '143' && lastRetry.message startsWith 'main:')"
    " || lastRetry.message matches '(?i)low on resource|evict|preempt|node shutdown'"
)
LARGEST = 100_000  # bytes of a template, which Argo hands to its pod in one variable; Linux takes 128 KiB


def template(ctx: Context, owner: Component, task: Task, component: Component) -> tuple[str, list[Object], list[str]]:
    """The template of a task's step, the arguments it takes beside those of the component, and tasks they come from.

    Tasks share a template when component, retries, cache and what is known before the run are the same.
    """
    executor = component.executor
    if executor is None:
        raise ctx.graph.dangling(f"the executor {component.executor_label or '(none)'}", component)
    if executor.kind not in ("container", "importer"):
        raise ctx.refuse(f"a {executor.kind}", component, mend="it belongs to Google's service; run a container")
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


def retry_strategy(retry: Retry) -> Object:
    """kfp's retries, for failures of the command and of the infrastructure alike."""
    found: Object = {"limit": str(retry.count), "retryPolicy": "Always"}
    if retry.backoff:
        found["backoff"] = {"duration": _seconds(retry.backoff)}
        if retry.factor:
            # Argo takes whole numbers; the wait grows a little faster then, up to the same longest one.
            found["backoff"]["factor"] = str(math.ceil(retry.factor))
        if retry.longest:
            found["backoff"]["cap"] = _seconds(retry.longest)
    return found


def _seconds(amount: float) -> str:
    return f"{int(amount)}s" if float(amount).is_integer() else f"{amount}s"


def infrastructure(settings: Settings) -> Object:
    """Attempts after the pod was lost or the store was away, which Argo calls an error, and after it was preempted or
    evicted, which it calls a failure. At once: Argo waits before it sees that a failing command has no attempt left,
    and the executor has waited for the store already.
    """
    return {"limit": str(settings.infrastructure_retries), "retryPolicy": "Always", "expression": LOST}


def _content(component: Component, executor: Executor) -> Any:
    """What makes two components the same, whatever they are called."""
    parts: list[Any] = [executor.raw, executor.kind, executor.kubernetes]
    for interface in (component.inputs, component.outputs):
        for one in [*interface.parameters.values(), *interface.artifacts.values()]:
            parts.append({k: repr(v) for k, v in asdict(one).items() if k != "line"})
    return digest(parts)


def _known(ctx: Context, owner: Component, task: Task, component: Component, executor: Executor) -> dict[str, Any]:
    """Settings that Argo takes no parameter for, as they are at submission."""
    found: dict[str, Any] = {}
    for place, feature, spec in [*kubernetes.fixed(executor), *resources.fixed(executor)]:
        source = sources.reference(ctx, owner, task, spec)
        try:
            found[place] = ctx.known(owner, source)
        except UnknownAtSubmitError:
            raise ctx.refuse(
                f"{feature} that is only known while the pipeline runs",
                component,
                mend="give a constant or an argument of the pipeline",
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
    inputs = dags.inputs(component, ctx.graph.used(component))
    name = task.name if task is ctx.graph.exit else "{{tasks.name}}"
    container = _container(ctx, component, executor, name, cache)
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
    found["retryStrategy"] = retry_strategy(task.retry) if task.retry else infrastructure(ctx.settings)
    if found["retryStrategy"]["limit"] == "0":
        del found["retryStrategy"]
    if cache:
        names = [one["name"] for one in inputs.get("parameters", ()) if not one["name"].startswith("at-")]
        found["memoize"] = memoize(ctx, component, [_content(component, executor), known], names, task.cache_key)
    head: Object = {"inputs": inputs} if inputs else {}
    head["outputs"] = outputs(ctx, component)
    size = len(json.dumps({**head, **found}))
    if size > LARGEST:
        raise ctx.refuse(
            f"a command and settings of {size:,} bytes",
            component,
            reason=f"a step may have {LARGEST:,}",
            mend="put the code into the image, or data into an artifact",
        )
    return {**head, **found}, references


def outputs(ctx: Context, component: Component) -> Object:
    """What the step program leaves, as tools/step/README.md has it."""
    parameters = [{"name": name, "valueFrom": {"path": f"/kfp/outp/{name}"}} for name in component.outputs.parameters]
    artifacts: list[Object] = []
    for one in component.outputs.artifacts.values():
        if one.is_list:
            raise ctx.refuse(
                f"a list of artifacts as output {one.name}", component, mend="use a loop and dsl.Collected"
            )
        parameters.append({"name": f"sha-{one.name}", "valueFrom": {"path": f"/kfp/outp/.sha-{one.name}"}})
        if ctx.graph.located(component, one.name):
            parameters.append({"name": f"at-{one.name}", "valueFrom": {"path": f"/kfp/outp/.at-{one.name}"}})
        artifacts.append(_stored(one.name, f"/kfp/out/{one.name}"))
    artifacts.append(_stored("lineage", "/kfp/lineage.json"))
    return {**({"parameters": parameters} if parameters else {}), "artifacts": artifacts}


def _stored(name: str, path: str) -> Object:
    return {"name": name, "path": path, "archive": {"none": {}}, "optional": True}


def memoize(ctx: Context, component: Component, content: Any, inputs: list[str], own_key: str = "") -> Object:
    """Argo's cache: the same component with the same values and the same content gives what it gave before."""
    if own_key:
        key = f"c-{digest([ctx.pipeline.name, own_key])}"
    else:
        key = f"k-{digest(content)}"
        if inputs:
            listed = ", ".join(f"inputs.parameters[{values.quoted(name)}]" for name in sorted(inputs))
            key += "-{{=sprig.sha256sum(toJson([" + listed + "]))}}"
    name = f"{ctx.settings.namespace}.{_dns(ctx.pipeline.name)}.{_dns(component.name.removeprefix('comp-'))}"
    return {"key": key, "maxAge": ctx.settings.cache_age, "cache": {"configMap": {"name": name}}}


def _dns(name: str) -> str:
    """A part of a ConfigMap's name, which has 253 characters in all."""
    clean = "".join(c if c.isalnum() and c.isascii() else "-" for c in name.lower()).strip("-") or "x"
    return clean if len(clean) <= 80 else f"{clean[:67].rstrip('-')}-{digest(name)}"


def environment(
    ctx: Context, component: Component, parameters: dict[str, str], cache: bool, task: str = "{{tasks.name}}"
) -> list[Object]:
    """What the step program reads. `parameters`: code of each input's text, by name."""
    step = {
        "task": task,
        "component": component.name,
        "pipeline": ctx.pipeline.name,
        "cache": cache,
        "inputs": _interface(component.inputs),
        "outputs": _interface(component.outputs),
    }
    settings = ctx.settings
    pairs = ", ".join(f"{json.dumps(name)}: {{{{=toJson({code})}}}}" for name, code in parameters.items())
    facts = {
        "TRAINYARD_STEP": json.dumps(step, separators=(",", ":")),
        "TRAINYARD_PARAMS": "{" + pairs + "}" if pairs else "",
        "TRAINYARD_RUN": "{{workflow.name}}",
        "TRAINYARD_RUN_UID": "{{workflow.uid}}",
        "TRAINYARD_CREATED": "{{workflow.creationTimestamp.RFC3339}}",
        "TRAINYARD_NAMESPACE": settings.namespace,
        "TRAINYARD_TEAM": settings.team,
        "TRAINYARD_QUEUE": settings.queue,
        "TRAINYARD_PRIORITY": settings.priority,
        "TRAINYARD_BUCKET": settings.bucket,
        "TRAINYARD_EXPERIMENT": settings.experiment,
        "TRAINYARD_SYSTEM": settings.system,
        "HOME": "/tmp",
    }
    return [{"name": name, "value": value} for name, value in facts.items() if value]


def store_keys(settings: Settings) -> list[Object]:
    """The team's keys, for the parts of a step that are ours."""
    keys = {"ACCESS_KEY": ("access-key", False), "SECRET_KEY": ("secret-key", False), "CA": ("ca.crt", True)}
    found = []
    for name, (key, optional) in keys.items():
        reference = {"name": settings.secret, "key": key, **({"optional": True} if optional else {})}
        found.append({"name": f"TRAINYARD_S3_{name}", "valueFrom": {"secretKeyRef": reference}})
    return found


def _interface(interface: Any) -> Object:
    artifacts: Object = {}
    for one in interface.artifacts.values():
        flags = {"list": one.is_list, "optional": one.optional}
        artifacts[one.name] = {"type": one.type, **{name: True for name, on in flags.items() if on}}
    return {"parameters": {one.name: one.type for one in interface.parameters.values()}, "artifacts": artifacts}


def _container(ctx: Context, component: Component, executor: Executor, task: str, cache: bool) -> Object:
    command = [*executor.command, *executor.args]
    if not any(re.search(r"\{\{(?!\$)", word) for word in command):
        words, mode = command, "--"
    else:
        words, mode = [json.dumps(command, ensure_ascii=False).replace("{{", "{\\u007b")], "--json"
    own = {name: values.input_parameter(name).code for name in component.inputs.parameters}
    environment_ = environment(ctx, component, own, cache, task)
    for name, value in executor.env.items():
        if "{{" in value:
            raise ctx.refuse(f"{{{{ in the variable {name}", component, mend="set it inside the component")
        environment_ = [one for one in environment_ if one["name"] != name]
        environment_.append({"name": name, "value": value})
    return {
        "image": executor.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [PROGRAM, "run", mode],
        **({"args": words} if words else {}),
        "env": environment_,
        "securityContext": dict(CLOSED),
        "volumeMounts": [
            {"name": "kfp", "mountPath": "/kfp"},
            {"name": "kfp", "mountPath": "/s3", "subPath": "s3"},
        ],
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
        "command": [PROGRAM, "collect"],
        "env": [{"name": "TRAINYARD_LISTS", "value": "{" + pairs + "}"}, *store_keys(ctx.settings)],
        "securityContext": container["securityContext"],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "volumeMounts": [{"name": "kfp", "mountPath": "/kfp"}],
    }


def _refuse_unknown(ctx: Context, component: Component, executor: Executor) -> None:
    if executor.raw.get("lifecycle"):
        raise ctx.refuse("a lifecycle command before the cache is asked", component, mend="leave it out")
    if component.passthroughs or any(p.type == "TASK_CONFIG" for p in component.inputs.parameters.values()):
        raise ctx.refuse("dsl.TaskConfig", component, mend="give the component its settings as parameters")
    if not executor.image:
        raise ctx.refuse("no image", component, mend="give one with base_image")
    if "{{" in executor.image:
        raise ctx.refuse("an image that is a parameter", component, mend="write the image")
