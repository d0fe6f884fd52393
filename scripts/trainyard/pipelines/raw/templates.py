"""Templates of a raw workflow: closed security contexts, GPUs and their nodes, and a name for each template."""

import json
import re
from collections.abc import Iterator
from typing import Any

from trainyard.kinds.pods import CLOSED, hide_gpus, restricted
from trainyard.names import GPU
from trainyard.pipelines.translate.settings import Settings

Object = dict[str, Any]
MAIN = ("container", "script")
BESIDE = ("initContainers", "sidecars")  # Argo's controller closes the main containers only
# Values that the enclosing template replaces: a separate template would not have them.
OUTSIDE = re.compile(r"\{\{(?!\s*workflow\.)")


def complete(spec: Object, settings: Settings) -> None:
    """Fills gaps in the workflow's templates, in place."""
    spec["securityContext"] = {**restricted(), **(spec.get("securityContext") or {})}
    name_inline(spec)
    for template in _objects(spec.get("templates")):
        if template.get("securityContext"):  # it replaces the workflow's
            template["securityContext"] = {**restricted(), **template["securityContext"]}
        for one in closed_by_nobody(template):
            one["securityContext"] = {**CLOSED, **(one.get("securityContext") or {})}
        _gpus(template, settings)


def name_inline(spec: Object) -> None:
    """Turns inline templates of tasks into named ones, where that changes nothing: admission refuses inline ones."""
    templates = spec.get("templates") or []
    known = {one.get("name") for one in _objects(templates)}
    for template in _objects(templates):  # the list grows, and the loop visits added templates, too
        for task in tasks(template):
            inner = task.get("inline")
            if not isinstance(inner, dict) or OUTSIDE.search(json.dumps(inner)):
                continue
            base = name = f"{template.get('name')}-{task.get('name')}"
            count = 2
            while name in known:
                name, count = f"{base}-{count}", count + 1
            known.add(name)
            templates.append({**task.pop("inline"), "name": name})
            task["template"] = name


def tasks(template: Object) -> Iterator[Object]:
    """The tasks of a dag, or the steps of each group."""
    dag = template.get("dag")
    yield from _objects(dag.get("tasks") if isinstance(dag, dict) else None)
    for group in template.get("steps") or []:
        yield from _objects(group)


def containers(template: Object) -> Iterator[Object]:
    """Every container that the template's author wrote."""
    yield from _objects([template.get(key) for key in MAIN])
    yield from closed_by_nobody(template)


def closed_by_nobody(template: Object) -> Iterator[Object]:
    """Containers that get a security context only from the workflow; setting it on a set's containers does no harm."""
    group = template.get("containerSet")
    yield from _objects(group.get("containers") if isinstance(group, dict) else None)
    for key in BESIDE:
        yield from _objects(template.get(key))


def _gpus(template: Object, settings: Settings) -> None:
    """Sets GPUs in requests and limits alike, and the labels and tolerations of their nodes; hides GPUs from others."""
    resources = {pool.resource for pool in settings.team.pools if pool.resource} | {GPU}
    asked: list[str] = []
    for one in containers(template):
        given_amounts = one.get("resources")
        amounts: Object = given_amounts if isinstance(given_amounts, dict) else {}
        requests, limits = (
            amounts[key] if isinstance(amounts.get(key), dict) else {} for key in ("requests", "limits")
        )
        own = [name for name in sorted(resources) if name in requests or name in limits]
        for name in own:
            amounts["requests"] = {name: limits.get(name), **requests} if name in limits else requests
            amounts["limits"] = {name: requests.get(name), **limits} if name in requests else limits
        if own:
            asked += own
        elif isinstance(one.get("env", []), list):
            hide_gpus(one)
    for name in dict.fromkeys(asked):
        pool = settings.team.gpu_pool(name)
        free = not template.get("nodeSelector") and (settings.team.home or not template.get("affinity"))
        if pool is not None and pool.labels and free:
            template["nodeSelector"] = dict(pool.labels)
        given = template.get("tolerations") or []
        known = {one.get("key") for one in _objects(given)}
        more = [one for one in settings.tolerations(name) if one["key"] not in known]
        if more and not any(one.get("operator") == "Exists" and not one.get("key") for one in _objects(given)):
            template["tolerations"] = [*given, *more]


def _objects(values: Any) -> Iterator[Object]:
    """The objects of a list; lint reports its other values."""
    if isinstance(values, list):
        for one in values:
            if isinstance(one, dict):
                yield one
