"""Objects that steps of kfp pipelines make: checked by the guard's rules, as far as the manifest is known."""

import json
import re
from collections.abc import Mapping
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.pipelines.ir.model import Pipeline, Task
from trainyard.pipelines.lint.training import Where, value_of
from trainyard.pipelines.steps.run import Run
from trainyard.pipelines.steps.wish import ObjectRequest, filled, whole
from trainyard.policy.lint import objects, resources, rights
from trainyard.policy.lint.report import LATER, Report, Site

Object = dict[str, Any]
STARTS = re.compile(r"\bsteps\.create_object\(")
NAMED = re.compile(r"\{([A-Za-z_]\w*)(?::json)?\}")  # placeholders in the manifest's texts that `settings` fill
# Arguments of the step that an error's text may name; any other error is about the manifest.
ARGUMENTS = ("success_condition", "failure_condition", "timeout", "settings")


def check(pipeline: Pipeline, report: Report, where: Where) -> None:
    """Report what the guard would reject in each object that a step would make."""
    for place in pipeline.tasks():
        task, component = place.task, pipeline.component(place.task)
        if component is None or component.executor is None:
            continue
        if not STARTS.search("\n".join((*component.executor.command, *component.executor.args))):
            continue
        declared = component.inputs.parameters
        known = {
            name: value_of(pipeline, place.owner, task.parameters.get(name), one) for name, one in declared.items()
        }
        _step(task, known, report, where)


def _step(task: Task, known: Mapping[str, Any], report: Report, where: Where) -> None:
    def line(argument: str) -> int:
        source = task.parameters.get(argument)
        return where(source.line if source else task.line, (task.name, task.component), True)

    manifest = known.get("manifest")
    if not isinstance(manifest, dict):
        return  # its value comes from another step, or from the run's arguments
    wanted = _filled(whole(manifest), known, has_settings="settings" in task.parameters)
    texts = {
        name: str(known.get(name) or "") for name in ("success_condition", "failure_condition", "timeout", "output")
    }
    given = {name: "" if "{{" in text else text for name, text in texts.items()}
    try:
        wish = ObjectRequest.of(
            {**given, "manifest": wanted, "keep": known.get("keep")}, _run(wanted, task, report.site)
        )
    except TrainyardError as error:
        unnamed = "timeout" if "duration" in error.what else "manifest"
        at = next((name for name in ARGUMENTS if name in error.what), unnamed)
        report.add("TY104", line(at), error.what, error.hint, task=task.name, at=at)
        return
    inner = Report(report.site, report.file, one_line=True)
    if LATER not in wish.manifest["kind"] + wish.manifest["apiVersion"]:
        objects.check(wish.manifest, lambda path: 1, inner, "", rights.pipeline(report.site.contract))
    for one in inner.findings:
        if LATER not in one.reason + one.hint:
            field = f"manifest.{one.field}".rstrip(".")
            report.add(
                one.code, line("manifest"), one.reason, one.hint, task=task.name, at=field, severity=one.severity
            )


def _filled(manifest: Object, known: Mapping[str, Any], *, has_settings: bool) -> Any:
    """The manifest with the known settings filled in; values that only the run has are LATER."""
    settings = known.get("settings")
    settings = settings if isinstance(settings, dict) else {}
    unknown = {name for name, value in settings.items() if "{{" in json.dumps(value)}

    def text(found: str) -> str:
        if "{{" in found:
            found = resources.FILLED_IN.sub(LATER, found)
        if not has_settings:
            return found
        return NAMED.sub(lambda one: LATER if one[1] in unknown or not settings else one[0], found)

    def walked(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walked(one) for key, one in value.items()}
        if isinstance(value, list):
            return [walked(one) for one in value]
        return text(value) if isinstance(value, str) else value

    return filled(walked(manifest), {name: value for name, value in settings.items() if name not in unknown})


def _run(manifest: Any, task: Task, site: Site) -> Run:
    """The run that the object would belong to, in the namespace that the object names: the rules judge that."""
    team = site.team().name
    meta = manifest.get("metadata") if isinstance(manifest, dict) else None
    own = meta.get("namespace") if isinstance(meta, dict) else None
    return Run("run", "0", team, own if isinstance(own, str) and own else team, "", "", "runs", task.name, local=False)
