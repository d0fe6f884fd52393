"""Inputs and outputs of a template: parameters, artifacts, their digests and places."""

from collections.abc import Container
from typing import Any

from trainyard.pipelines.ir.model import Component
from trainyard.pipelines.translate import sources, values
from trainyard.pipelines.translate.context import Context, Object, carried
from trainyard.pipelines.translate.values import ABSENT


def inputs(component: Component, used: Container[str]) -> Object:
    """A template's inputs: values, artifacts, and for each artifact its digest; for a list, their places."""
    parameters = [default_of(one) for one in component.inputs.parameters.values() if one.name in used]
    artifacts: list[Object] = []
    for one in component.inputs.artifacts.values():
        if one.name not in used:
            continue
        if one.is_list:
            parameters += [{"name": f"at-{one.name}", "default": "[]"}, {"name": f"sha-{one.name}", "default": "[]"}]
            continue
        parameters.append({"name": f"sha-{one.name}", **({"default": ""} if one.optional else {})})
        artifacts.append({"name": one.name, **({"optional": True} if one.optional else {})})
    return carried(parameters, artifacts)


def default_of(one: Any) -> Object:
    """An input parameter with its default value."""
    if one.required:
        return {"name": one.name}
    return {"name": one.name, "default": ABSENT if sources.may_be_absent(one) else values.to_text(one.default)}


def outputs(ctx: Context, component: Component) -> Object:
    """A step's outputs, as tools/step/README.md describes them."""
    parameters = [{"name": name, "valueFrom": {"path": f"/kfp/outp/{name}"}} for name in component.outputs.parameters]
    artifacts: list[Object] = []
    for one in component.outputs.artifacts.values():
        if one.is_list:
            raise ctx.refuse(
                f"a list of artifacts as output {one.name}", component, hint="use a loop and dsl.Collected"
            )
        parameters.append({"name": f"sha-{one.name}", "valueFrom": {"path": f"/kfp/outp/.sha-{one.name}"}})
        if ctx.graph.located(component, one.name):
            parameters.append({"name": f"at-{one.name}", "valueFrom": {"path": f"/kfp/outp/.at-{one.name}"}})
        artifacts.append(_stored(one.name, f"/kfp/out/{one.name}"))
    artifacts.append(_stored("lineage", "/kfp/lineage.json"))
    return {**({"parameters": parameters} if parameters else {}), "artifacts": artifacts}


def _stored(name: str, path: str) -> Object:
    return {"name": name, "path": path, "archive": {"none": {}}, "optional": True}
