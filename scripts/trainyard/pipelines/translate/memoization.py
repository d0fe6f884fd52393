"""Steps with a cache: wraps each in a DAG that has the cache.

Argo 3.7.2 hangs if one template has both cache and retries: a step that is served from cache is then a retry without
attempts, to which the steps after it aren't linked, so that the run never ends. A DAG around the retry ends. And if
the cache is full (a ConfigMap holds a MiB), a step that can't be stored in it fails; a DAG continues.
"""

import json
from collections.abc import Iterable

from trainyard.pipelines.translate.context import Object
from trainyard.pipelines.translate.names import Unique

TASK = "{{tasks.name}}"
INSIDE = "run"  # the only task of such a DAG
NAMED = "trainyard-task"  # the input that tells the step the name of its task


def wrap(templates: Iterable[Object]) -> list[Object]:
    """The templates; two replace each one that has a cache."""
    found = list(templates)
    unique = Unique()
    for template in found:
        unique(template["name"])
    wrapped: list[Object] = []
    names: dict[str, str] = {}
    for template in found:
        name = template["name"]
        if "memoize" in template:
            names[name] = unique(f"{name}-cached")
            wrapped += _wrapped(template, names[name])
        else:
            wrapped.append(template)
    for template in found:
        for task in template.get("dag", {}).get("tasks", ()):
            if wrapper := names.get(task["template"]):
                task["template"] = wrapper
                arguments = task.setdefault("arguments", {})
                arguments["parameters"] = [{"name": NAMED, "value": task["name"]}, *arguments.get("parameters", ())]
    return wrapped


def _wrapped(template: Object, name: str) -> list[Object]:
    """The DAG, called `name`, that tasks run instead of the template, and the rest of the template."""
    inputs, outputs = template.get("inputs", {}), template.get("outputs", {})
    parameters = [{"name": NAMED}, *inputs.get("parameters", ())]
    handed: Object = {
        "parameters": [{"name": one["name"], "value": f"{{{{inputs.parameters.{one['name']}}}}}"} for one in parameters]
    }
    if taken := inputs.get("artifacts"):
        handed["artifacts"] = [
            {"name": one["name"], "from": f"{{{{inputs.artifacts.{one['name']}}}}}", **_optional(one)} for one in taken
        ]
    given: Object = {}
    if values := outputs.get("parameters"):
        given["parameters"] = [
            {"name": one["name"], "valueFrom": {"parameter": _made("parameters", one)}} for one in values
        ]
    if made := outputs.get("artifacts"):
        given["artifacts"] = [{"name": one["name"], "from": _made("artifacts", one), **_optional(one)} for one in made]
    wrapper: Object = {
        "name": name,
        "inputs": _without_paths({**inputs, "parameters": parameters}),
        "dag": {"tasks": [{"name": INSIDE, "template": template["name"], "arguments": handed}]},
        **({"outputs": given} if given else {}),
        "memoize": template["memoize"],
    }
    rest = {key: value for key, value in template.items() if key not in ("memoize", "inputs")}
    rest = json.loads(json.dumps(rest).replace(TASK, f"{{{{inputs.parameters.{NAMED}}}}}"))
    return [wrapper, {**rest, "inputs": {**inputs, "parameters": parameters}}]


def _without_paths(inputs: Object) -> Object:
    kept = dict(inputs)
    if "artifacts" in kept:
        kept["artifacts"] = [{key: one[key] for key in one if key != "path"} for one in kept["artifacts"]]
    return kept


def _made(kind: str, one: Object) -> str:
    return f"{{{{tasks.{INSIDE}.outputs.{kind}.{one['name']}}}}}"


def _optional(one: Object) -> Object:
    return {"optional": True} if one.get("optional") else {}
