"""kfp pipelines: their form, their consistency, and the pods that their translation would request."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.pipelines import adapt, source, translate
from trainyard.pipelines.ir import compile as compiling
from trainyard.pipelines.ir import installer, load
from trainyard.pipelines.ir.model import Constant, Executor, Pipeline
from trainyard.pipelines.lint import created, ir_rules, training, wheels
from trainyard.pipelines.lint.python_lines import PythonLines
from trainyard.pipelines.translate import claims
from trainyard.policy import cel, fill
from trainyard.policy.lint import arrival, network, objects, pod_rules, workflow
from trainyard.policy.lint.finding import Finding
from trainyard.policy.lint.pods import Pod
from trainyard.policy.lint.report import Report, Site
from trainyard.yaml_lines import Document, documents

STEP = "TRAINYARD_STEP"
OF_RESOURCES = ("TY401", "TY402", "TY408", "p08")  # findings on a task's resources, not on its component
PLACEHOLDERS: dict[str, Any] = {"NUMBER_INTEGER": 1, "NUMBER_DOUBLE": 1.0, "BOOLEAN": True, "LIST": [], "STRUCT": {}}
# Finds a line from: (line in the YAML, names in Python, whether a call is meant).
Where = Callable[[int, tuple[str, ...], bool], int]
Translated = Callable[[], fill.Filled]


def check_source(path: Path, site: Site) -> list[Finding]:
    """Compile and check a Python file or package; lines are those of the file."""
    report = Report(site, str(path))
    try:
        if source.kind(path) == source.HERA:
            return _hera(path, report)
        pipeline = compiling.pipeline(path)
    except UsageError as error:
        if not path.exists():
            raise
        report.error("TY103", error)
        return report.sorted()
    places = PythonLines(path)
    _check(pipeline, report, lambda line, names, call: places.line(*names, call=call))
    return report.sorted()


def check_text(content: str, file: str, site: Site) -> list[Finding]:
    """Check a compiled pipeline."""
    report = Report(site, file)
    try:
        pipeline = load.text(content, file)
    except UsageError as error:
        report.error("TY102", error)
        return report.sorted()
    _check(pipeline, report, lambda line, names, call: line)
    return report.sorted()


def check(
    pipeline: Pipeline, site: Site, *, queue: str = "", priority: str = "", translated: Translated | None = None
) -> list[Finding]:
    """Check a loaded pipeline that is to run in this queue and with this priority class.

    Args:
        translated: returns the workflow that will be sent, which is then checked; it is called at most once, and
            the errors that it raises about arguments are raised.
    """
    report = Report(site, pipeline.file)
    team = site.team()
    for code, own_queue, own_priority in (("TY501", queue, ""), ("TY502", "", priority)):
        try:
            team.check(own_queue, own_priority)
        except UsageError as error:
            report.add(code, 0, error.what, error.hint)
    where: Where = lambda line, names, call: line  # noqa: E731
    path = Path(pipeline.file)
    if path.suffix == ".py" and path.exists():
        places = PythonLines(path)
        where = lambda line, names, call: places.line(*names, call=call)  # noqa: E731
    _check(pipeline, report, where, translated)
    return report.sorted()


def _hera(path: Path, report: Report) -> list[Finding]:
    """Check a workflow written with hera, including what `trainyard submit` would add to it."""
    made = source.workflow(path)
    given = (made["spec"].get("arguments") or {}).get("parameters") or []
    missing = {one["name"]: "1" for one in given if not {"value", "valueFrom", "default"} & one.keys()}
    adapt.workflow(made, _settings(report.site), missing)
    objects.check(made, lambda place: 0, report)
    return report.sorted()


def _check(pipeline: Pipeline, report: Report, where: Where, translated: Translated | None = None) -> None:
    for rule in ir_rules.RULES:
        for said in rule(pipeline):
            line = where(said.line, said.names, bool(said.task))
            report.add(said.code, line, said.reason, said.hint, task=said.task, at=said.field)
    _importers(pipeline, report, where)
    _claims(pipeline, report, where)
    training.check(pipeline, report, where)
    created.check(pipeline, report, where)
    yaml = _document(pipeline)
    if any(one.code.startswith("TY2") and one.code != "TY210" for one in report.findings):
        _parts(pipeline, yaml, report, where)
        return
    try:
        filled = (
            translated()
            if translated
            else with_images(translate.workflow(pipeline, _arguments(pipeline), _settings(report.site)), report.site)
        )
    except translate.Unsupported as error:
        _refused(pipeline, error, report, where)
        _parts(pipeline, yaml, report, where)
        return
    except UsageError as error:
        large = "KiB" in error.what or "bytes" in error.what
        if translated and not large:
            raise
        report.add("TY213" if large else "TY215", 1, error.what, error.hint)
        return
    arrival.tell(filled, lambda at: 1, report, "")
    wheels.check(pipeline, report, where, dict(filled.images))
    _translated(pipeline, filled.obj, yaml, report, where)


def with_images(made: dict[str, Any], site: Site) -> fill.Filled:
    """A translated workflow with this site's replacement images, and the API server's defaults filled in."""
    team = site.team()
    return fill.filled(made, site.contract, team) if team.fills else fill.Filled(made)


def _refused(pipeline: Pipeline, error: translate.Unsupported, report: Report, where: Where) -> None:
    last = error.where.rpartition(":")[2]
    line = int(last) if last.isdigit() else 1
    names = [name for name in pipeline.components if name.removeprefix("comp-") in error.what]
    report.add("TY215", where(line, tuple(sorted(names, key=len, reverse=True)), False), error.what, error.hint)


def _arguments(pipeline: Pipeline) -> dict[str, Any]:
    """A placeholder for each input without a value, so that the rest can be checked."""
    found: dict[str, Any] = {
        one.name: one.literals[0] if one.literals else PLACEHOLDERS.get(one.type, "1")
        for one in pipeline.inputs.parameters.values()
        if one.required and one.name not in pipeline.arguments
    }
    bucket = "s3://any/thing"
    return found | {
        one.name: bucket
        for one in pipeline.inputs.artifacts.values()
        if not one.optional and one.name not in pipeline.arguments
    }


def _settings(site: Site) -> translate.Settings:
    contract, team = site.contract, site.team()
    usual = team.name not in contract.teams and contract.default_queue in team.queues
    return translate.Settings(contract, team, contract.default_queue if usual else "")


def _translated(pipeline: Pipeline, made: dict[str, Any], yaml: Document | None, report: Report, where: Where) -> None:
    """Check the translated workflow, and assign its findings to the executors that they come from."""
    inner = Report(report.site, report.file)
    components: dict[str | int, str] = {
        index: _component(one) for index, one in enumerate(made["spec"].get("templates") or [])
    }
    at: list[tuple[str | int, ...]] = []

    def lines(path: tuple[str | int, ...]) -> int:
        at.append(path)
        return len(at) - 1

    workflow.check(cel.place(made), lines, inner, "", report.site.team(), objects.check)
    for one in inner.findings:
        path = at[one.line]
        name = components.get(path[2], "") if path[:2] == ("spec", "templates") and len(path) > 2 else ""
        component = pipeline.components.get(name)
        executor = component.executor if component else None
        if component is None or executor is None:
            report.add(one.code, 1, one.reason, one.hint, severity=one.severity)
            continue
        field = _field(path[3:], made["spec"]["templates"][path[2]], executor)
        line = _line(yaml, executor.label, field) or executor.line
        tasks = [place.task.name for place in pipeline.tasks() if place.task.component == name]
        resource = "resources" in field or one.code in OF_RESOURCES
        report.add(
            one.code,
            where(line, (*(tasks if resource else ()), name, *tasks), resource),
            one.reason,
            one.hint,
            task=", ".join(dict.fromkeys(tasks[:3])),
            at=field,
            severity=one.severity,
        )


def _field(path: tuple[str | int, ...], template: dict[str, Any], executor: Executor) -> tuple[str | int, ...]:
    """The executor's field from which a field of its step was made."""
    if path[:2] == ("container", "args") and len(path) > 2:
        index, own = int(path[2]), len(executor.command)
        if len(template["container"]["args"]) < own + len(executor.args):  # the arguments are joined into one, as JSON
            return ("container", "command")
        return ("container", "command", index) if index < own else ("container", "args", index - own)
    if path[:2] == ("container", "env") and len(path) > 2:
        name = template["container"]["env"][int(path[2])]["name"]
        return ("container", "env", list(executor.env).index(name)) if name in executor.env else ("container", "env")
    return path or ("container",)


def _component(template: dict[str, Any]) -> str:
    """The kfp component from which a template was made."""
    for one in (template.get("container") or {}).get("env") or []:
        if one.get("name") == STEP:
            return str(json.loads(one["value"]).get("component", ""))
    return ""


def _parts(pipeline: Pipeline, yaml: Document | None, report: Report, where: Where) -> None:
    """Check executors one by one if the pipeline as a whole can't be translated."""
    team = report.site.team()
    for executor in pipeline.executors.values():
        asked, own = installer.split([*executor.command, *executor.args])
        words = {"command": own} if asked else {"command": list(executor.command), "args": list(executor.args)}
        container: dict[str, Any] = {"name": "main", "image": executor.image, **words}
        container["env"] = [{"name": name, "value": value} for name, value in executor.env.items()]
        pod = Pod({"containers": [container]}, ())
        for rule in (pod_rules.images, network.installs, pod_rules.buckets):
            for code, path, what, hint in rule(pod, report.site.contract, team):
                line = where(
                    _line(yaml, executor.label, ("container", *path[3:])) or executor.line, (executor.label,), False
                )
                severity = report.reaching(team) if code in network.CODES else None
                report.add(
                    code, line, what, hint, task=executor.label.removeprefix("exec-"), at=path[3:], severity=severity
                )


def _importers(pipeline: Pipeline, report: Report, where: Where) -> None:
    """Check the addresses of importers."""
    for executor in pipeline.executors.values():
        if executor.kind != "importer":
            continue
        for name in pod_rules.BUCKET.findall(json.dumps(executor.raw)):
            if said := pod_rules.bucket(name, report.site.contract):
                report.add(
                    "TY504", where(executor.line, (executor.label,), True), *said, task=executor.label, at="artifactUri"
                )


def _claims(pipeline: Pipeline, report: Report, where: Where) -> None:
    """Check the storage classes of claims that kfp's CreatePVC makes."""
    site, team = report.site.contract, report.site.team()
    for place in pipeline.tasks():
        component = pipeline.component(place.task)
        given = place.task.parameters.get("storage_class_name")
        if component is None or component.executor is None or component.executor.image != claims.CREATE:
            continue
        if isinstance(given, Constant) and (said := pod_rules.storage_class(str(given.value), site, team)):
            line = where(given.line, (place.task.name, "CreatePVC"), True)
            report.add("TY503", line, *said, task=place.task.name, at="storage_class_name")


def _document(pipeline: Pipeline) -> Document | None:
    try:
        found = documents(pipeline.text, pipeline.file)
    except UsageError:
        return None
    return next((one for one in found if isinstance(one.data, dict) and "deploymentSpec" in one.data), None)


def _line(yaml: Document | None, label: str, field: tuple[str | int, ...]) -> int:
    """The line of an executor's field in YAML; 0 if it is missing."""
    return yaml.line("deploymentSpec", "executors", label, *field) if yaml else 0
