"""CreatePVC and DeletePVC of kfp-kubernetes: steps that make and remove a claim."""

import json
from collections.abc import Container

from trainyard.pipelines.ir.model import MISSING, Component, Executor
from trainyard.pipelines.translate import interfaces, values
from trainyard.pipelines.translate.context import Context, Object

CREATE, DELETE = "argostub/createpvc", "argostub/deletepvc"
IMAGES = (CREATE, DELETE)


def body(ctx: Context, component: Component, executor: Executor) -> Object:
    """A template with which Argo makes or removes the claim, using the pipelines' account."""
    inputs = interfaces.inputs(component, ctx.graph.used(component))
    for one in inputs.get("parameters", ()):
        declared = component.inputs.parameters[one["name"]]
        if declared.default is MISSING and declared.optional:
            one["default"] = values.ABSENT
    manifest = _deleted() if executor.image == DELETE else _created(component.inputs.parameters)
    action = "delete" if executor.image == DELETE else "create"
    found: Object = {"inputs": inputs, "resource": {"action": action, "manifest": manifest}}
    if executor.image == CREATE:
        found["outputs"] = {"parameters": [{"name": "name", "valueFrom": {"jsonPath": "{.metadata.name}"}}]}
    else:
        # The claim goes with the last pod that uses it; waiting for that would mean waiting for the end of this run.
        found["resource"]["flags"] = ["--ignore-not-found", "--wait=false"]
    return found


def _parameter(name: str) -> str:
    return f"inputs.parameters[{values.quoted(name)}]"


def _deleted() -> str:
    metadata = {"name": "{{inputs.parameters.pvc_name}}"}
    return json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata})


def _created(declared: Container[str]) -> str:
    """The manifest as an expression: kfp's rules for name and storage class, without missing values."""
    absent = f'["{values.ABSENT}", "", "null"]'
    name, suffix = _parameter("pvc_name"), f"workflow.name + {_parameter('pvc_name_suffix')}"
    if "pvc_name" not in declared:
        named = suffix
    elif "pvc_name_suffix" not in declared:
        named = name
    else:
        named = f"({name} in {absent} ? {suffix} : {name})"
    spec = (
        f'{{"accessModes": fromJSON({_parameter("access_modes")}), '
        f'"resources": {{"requests": {{"storage": {_parameter("size")} }} }} }}'
    )
    # An empty class is a valid one, for an existing volume.
    for parameter, field, form, skipped in (
        ("storage_class_name", "storageClassName", "{}", f'["{values.ABSENT}", "null"]'),
        ("volume_name", "volumeName", "{}", absent),
        ("data_source", "dataSource", "fromJSON({})", absent),
    ):
        if parameter in declared:
            code = _parameter(parameter)
            spec = f'({code} in {skipped} ? {spec} : sprig.merge({{"{field}": {form.format(code)} }}, {spec}))'
    metadata = f'"name": {named}'
    if "annotations" in declared:
        annotations = _parameter("annotations")
        metadata += f', "annotations": ({annotations} in {absent} ? {{}} : fromJSON({annotations}))'
    whole = f'{{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {{{metadata} }}, "spec": {spec} }}'
    return values.calculated(f"toJson({whole})").text
