"""What Argo could have written of a Workflow: a member may write anything there, and that must break no list."""

from typing import Any

from trainyard.times import when

Object = dict[str, Any]
TIME, ANY = "time", "*"  # a form: a time's text; the key of a form of all values
# Forms: a type; [form] of each item; {key: form} of known keys, of which those in NEEDED must be there.
NAMED = {"name": str}
ARTIFACT = {"name": str, "s3": {"key": str, "bucket": str}}
ENDS = {"parameters": [NAMED], "artifacts": [ARTIFACT]}
NODE = {
    "id": str, "name": str, "type": str, "displayName": str, "phase": str, "boundaryID": str, "templateName": str,
    "message": str, "startedAt": TIME, "finishedAt": TIME, "children": [str], "memoizationStatus": dict,
    "inputs": ENDS, "outputs": ENDS,
}  # fmt: skip
TASK = {"name": str, "depends": str, "dependencies": [str]}
SPEC = {
    "shutdown": str, "entrypoint": str, "onExit": str, "serviceAccountName": str, "podPriorityClassName": str,
    "arguments": {"parameters": [NAMED]}, "podMetadata": {"annotations": dict},
    "templates": [{"name": str, "dag": {"tasks": [TASK]}, "steps": [[NAMED]], "container": dict, "script": dict}],
}  # fmt: skip
STATUS = {
    "phase": str, "message": str, "startedAt": TIME, "finishedAt": TIME, "nodes": {ANY: NODE},
    "compressedNodes": str, "storedWorkflowTemplateSpec": SPEC,
    "artifactRepositoryRef": {"artifactRepository": {"s3": {"bucket": str}}},
}  # fmt: skip
NEEDED = {"id", "name", "type"}


def workflow(found: Object) -> Object:
    """The Workflow without the parts that Argo writes otherwise."""
    parts = {key: _fit(found[key], form) for key, form in (("spec", SPEC), ("status", STATUS)) if key in found}
    return {**found, **{key: part or {} for key, part in parts.items()}}


def nodes(found: Any) -> dict[str, Object]:
    """The nodes in what was unpacked; {} for anything else."""
    return _fit(found, {ANY: NODE}) or {}


def _fit(value: Any, form: Any) -> Any:
    """The value as far as it has the form; None if it hasn't."""
    if form is TIME:
        try:
            return value if (at := when(value)) and at.tzinfo else None
        except (ValueError, TypeError, AttributeError):
            return None
    if isinstance(form, list):
        return [one for each in value if (one := _fit(each, form[0])) is not None] if isinstance(value, list) else None
    if not isinstance(form, dict):
        return value if isinstance(value, form) else None
    if not isinstance(value, dict):
        return None
    made = {}
    for key, own in value.items():
        at = form.get(key) or form.get(ANY)
        if (kept := _fit(own, at) if at else own) is not None:
            made[key] = kept
    return made if NEEDED & {*form} <= {*made} else None
