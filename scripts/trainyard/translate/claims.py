"""CreatePVC and DeletePVC of kfp-kubernetes: steps that make and remove a claim."""

from __future__ import annotations

import json

from trainyard.ir.model import MISSING, Component, Executor
from trainyard.translate import dags, values
from trainyard.translate.context import Context, Object

CREATE, DELETE = "argostub/createpvc", "argostub/deletepvc"
IMAGES = (CREATE, DELETE)


def body(ctx: Context, component: Component, executor: Executor) -> Object:
    """A template by which Argo makes or removes the claim, as the pipelines' account."""
    inputs = dags.inputs(component, ctx.graph.used(component))
    for one in inputs.get("parameters", ()):
        declared = component.inputs.parameters[one["name"]]
        if declared.default is MISSING and declared.optional:
            one["default"] = values.ABSENT
    manifest = _deleted() if executor.image == DELETE else _created()
    action = "delete" if executor.image == DELETE else "create"
    found: Object = {"inputs": inputs, "resource": {"action": action, "manifest": manifest}}
    if executor.image == CREATE:
        found["outputs"] = {"parameters": [{"name": "name", "valueFrom": {"jsonPath": "{.metadata.name}"}}]}
    else:
        found["resource"]["flags"] = ["--ignore-not-found"]
    return found


def _parameter(name: str) -> str:
    return f"inputs.parameters[{values.quoted(name)}]"


def _deleted() -> str:
    metadata = {"name": "{{inputs.parameters.pvc_name}}"}
    return json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata})


def _created() -> str:
    """The manifest. What nobody gave stays out of it: kfp's rules of name and storage class, written as expressions."""
    absent = values.quoted(values.ABSENT)
    empty = f'[{absent}, "", "null"]'
    name = _parameter("pvc_name")
    suffix = f"workflow.name + {_parameter('pvc_name_suffix')}"
    fields = [
        f'"accessModes": fromJSON({_parameter("access_modes")})',
        f'"resources": {{"requests": {{"storage": {_parameter("size")} }} }}',
    ]
    optional = [
        (_parameter("storage_class_name"), "storageClassName", absent, "{0}"),
        (_parameter("volume_name"), "volumeName", "", "{0}"),
        (_parameter("data_source"), "dataSource", "", "fromJSON({0})"),
    ]
    pairs = ", ".join(fields)
    spec = f"{{{pairs} }}"
    for code, field, _, form in optional:
        given = f'{code} in [{absent}, "null"]' if field == "storageClassName" else f"{code} in {empty}"
        spec = f"({given} ? {spec} : sprig.merge({{{values.quoted(field)}: {form.format(code)} }}, {spec}))"
    annotations = f"({_parameter('annotations')} in {empty} ? {{}} : fromJSON({_parameter('annotations')}))"
    whole = (
        '{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": '
        f'({name} in {empty} ? {suffix} : {name}), "annotations": {annotations} }}, "spec": {spec} }}'
    )
    return values.calculated(f"toJson({whole})").text
