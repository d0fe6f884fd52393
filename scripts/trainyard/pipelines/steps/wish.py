"""The object that a step is to make: its manifest with the step's values filled in, its name, and its owner."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kinds.spec import seconds
from trainyard.kinds.status import FAILED, SUCCEEDED, outcome
from trainyard.names import RUN, label
from trainyard.pipelines.steps import conditions
from trainyard.pipelines.steps.run import Run

Object = dict[str, Any]
CONTENT = "trainyard.io/step-content"  # annotation: by it a second attempt recognizes the first one's object
LONGEST = 63
HINT = "give one object, with apiVersion, kind and metadata"


@dataclass(frozen=True)
class ObjectRequest:
    """The object and the conditions to wait for: nothing if `success` and `failure` are empty and it is no job."""

    manifest: Object
    success: tuple[conditions.Part, ...]
    failure: tuple[conditions.Part, ...]
    timeout: int  # seconds
    output: str = ""  # path of the step's output value

    @classmethod
    def of(cls, given: Mapping[str, Any], run: Run) -> ObjectRequest:
        """A request from a component's arguments. Raises TrainyardError for invalid ones."""
        return cls(
            manifest=_manifest(given, run),
            success=conditions.parse(given.get("success_condition") or "", "success_condition"),
            failure=conditions.parse(given.get("failure_condition") or "", "failure_condition"),
            timeout=seconds(given.get("timeout") or "1d"),
            output=given.get("output") or "",
        )

    @property
    def title(self) -> str:
        """`Kind name`."""
        return f"{self.manifest['kind']} {self.manifest['metadata']['name']}"

    def waits(self, known: bool) -> bool:
        """Whether there is an end to wait for. `known`: the platform recognizes the end of this kind of object."""
        return bool(self.success or self.failure or known)

    def ended(self, obj: Object, known: bool) -> tuple[str, str]:
        """(succeeded | failed | "", why) of the object's current state; the step's own conditions take precedence."""
        if failed := next((one for one in self.failure if one.holds(obj)), None):
            return FAILED, failed.stands(obj)
        if self.success:
            return (SUCCEEDED, "") if all(one.holds(obj) for one in self.success) else ("", "")
        phase, why = outcome(obj) if known else ("", "")
        return (phase, why) if phase in (SUCCEEDED, FAILED) else ("", "")

    def waiting(self, obj: Object) -> str:
        """The unmet conditions, with the actual values."""
        missing = [one for one in self.success if not one.holds(obj)]
        return "; ".join(f"{one.stands(obj)}, wanted: {one}" for one in missing)


def _manifest(given: Mapping[str, Any], run: Run) -> Object:
    manifest = filled(whole(copy.deepcopy(given.get("manifest"))), given.get("settings") or {})
    if not isinstance(manifest, dict) or not all(isinstance(manifest.get(key), str) for key in ("apiVersion", "kind")):
        raise TrainyardError("manifest is not a Kubernetes object", hint=HINT)
    meta = manifest.setdefault("metadata", {})
    if not isinstance(meta, dict) or manifest["kind"].endswith("List"):
        raise TrainyardError(f"manifest is a {manifest['kind']} without metadata of its own", hint=HINT)
    if (own := meta.get("namespace") or run.namespace) != run.namespace:
        what = f"manifest names the namespace {own}, and the run is in {run.namespace}"
        raise TrainyardError(what, hint="leave out its metadata.namespace")
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True, default=str).encode()).hexdigest()[:16]
    if not meta.get("name"):
        base = str(meta.pop("generateName", "") or manifest["kind"].lower()).rstrip("-")
        # Equal for equal work of one step in one run, so that a second attempt finds the object of the first.
        of_step = hashlib.sha256(f"{run.uid} {run.task} {digest}".encode()).hexdigest()[:8]
        meta["name"] = f"{base[: LONGEST - 9].rstrip('-.')}-{of_step}"
    meta["namespace"] = run.namespace
    labels = {RUN: label(run.name), "trainyard.io/task": label(run.task)}
    meta["labels"] = {**labels, **(meta.get("labels") or {})}
    meta["annotations"] = {**(meta.get("annotations") or {}), CONTENT: digest}
    if not given.get("keep"):
        meta["ownerReferences"] = [run.owner]
    return manifest


def whole(value: Any) -> Any:
    """The value with whole numbers as integers: kfp passes all numbers of a map as fractions."""
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def filled(value: Any, settings: Mapping[str, Any]) -> Any:
    """The value with {name} of `settings` replaced in each text; a whole text {name:json} becomes a number, list, …."""
    if isinstance(value, dict):
        return {key: filled(one, settings) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, settings) for one in value]
    if not isinstance(value, str):
        return value
    for name, setting in settings.items():
        setting = whole(setting)
        if value == f"{{{name}:json}}":
            return _read(name, setting)
        value = value.replace(f"{{{name}}}", setting if isinstance(setting, str) else json.dumps(setting))
    return value


def _read(name: str, setting: Any) -> Any:
    """A text parsed as JSON: values of other steps arrive as texts."""
    try:
        return json.loads(setting) if isinstance(setting, str) else setting
    except ValueError:
        raise TrainyardError(f"settings: invalid JSON in {name}: {setting!r}", hint=f"write {{{name}}}") from None
