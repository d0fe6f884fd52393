"""Checks the references between the templates of an Argo workflow, and templates that this platform can't run."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.contract import Contract
from trainyard.policy import cel
from trainyard.policy.lint import graph, network, pod_rules
from trainyard.policy.lint.pods import mapping
from trainyard.policy.lint.report import Issue, Path

Object = dict[str, Any]
PRODUCER = re.compile(r"\{\{=?\s*(?:tasks|steps)(?:\.([A-Za-z0-9_-]+)|\['([^']+)'\])\.")
WORD = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z]+)?")
AGENTS = ("http", "plugin")  # run by an agent of Argo, for which the pipelines' account has no permissions
ELSEWHERE = {"git": "repo", "http": "url", "gcs": "", "oss": "endpoint", "hdfs": "", "azure": "endpoint"}


def fitting(spec: Object, templates: Mapping[str, Object], library: bool) -> Iterator[tuple[Path, str, str]]:
    """Missing templates, steps and dependencies, and cycles.

    Args:
        library: whether it may exist only for its templates, without an entrypoint.
    """
    known = ", ".join(templates) or "none"
    refers = bool(spec.get("workflowTemplateRef"))
    root = cel.path(spec) or ()
    entry = spec.get("entrypoint")
    if not entry and not refers and not library:
        yield (*root, "entrypoint"), "the workflow has no entrypoint", f"use one of its templates: {known}"
    for key in ("entrypoint", "onExit"):
        if spec.get(key) and spec[key] not in templates and not refers:
            yield (*root, key), f"{key} names the template {spec[key]}, which does not exist", f"templates: {known}"
    for template in templates.values():
        if tasks := (template.get("dag") or {}).get("tasks"):
            yield from _dag(tasks, templates, known)
        for group in template.get("steps") or []:
            for step in group:
                yield from _runs(step, templates, known)


def _dag(tasks: list[Object], templates: Mapping[str, Object], known: str) -> Iterator[tuple[Path, str, str]]:
    names = {task["name"] for task in tasks}
    edges: dict[str, set[str]] = {}
    for task in tasks:
        path = cel.path(task) or ()
        yield from _runs(task, templates, known)
        needs = [(str(one), (*path, "dependencies")) for one in task.get("dependencies") or []]
        for word in WORD.findall(task.get("depends") or ""):
            needs.append((word.partition(".")[0], (*path, "depends")))
        for given in (task.get("arguments") or {}).values():
            for one in given or []:
                for match in PRODUCER.findall(str(one.get("value", "")) + str(one.get("from", ""))):
                    needs.append((match[0] or match[1], cel.path(one) or path))
        for need, at in dict.fromkeys(needs):
            if need not in names:
                what = f"task {task['name']} waits for {need}, which does not exist"
                yield at, what, f"tasks: {', '.join(sorted(names))}"
        edges[task["name"]] = {need for need, _ in needs if need in names}
    if circle := graph.circle(edges):
        first = next(task for task in tasks if task["name"] == circle[0])
        what = f"tasks wait for each other: {' → '.join(circle)}"
        yield cel.path(first) or (), what, "remove one of these dependencies"


def _runs(task: Object, templates: Mapping[str, Object], known: str) -> Iterator[tuple[Path, str, str]]:
    """Checks that the template of a task or step exists and gets its required inputs."""
    name, path = task.get("template"), cel.path(task) or ()
    if not name:
        if not any(key in task for key in ("templateRef", "inline", "hooks")):
            yield path, f"{task['name']} runs nothing", f"use a template: {known}"
        return
    if name not in templates:
        yield (*path, "template"), f"{task['name']} runs the unknown template {name}", f"templates: {known}"
        return
    given = {one["name"] for one in (task.get("arguments") or {}).get("parameters") or []}
    for one in (templates[name].get("inputs") or {}).get("parameters") or []:
        if not {"value", "default", "valueFrom"} & one.keys() and one["name"] not in given:
            yield path, f"{task['name']} lacks {one['name']}, which template {name} needs", "add it to its arguments"


def strange(spec: Object, templates: Mapping[str, Object], contract: Contract) -> Iterator[Issue]:
    """References outside the workflow, and features that the platform lacks."""
    root = cel.path(spec) or ()
    yield from _referred(spec.get("workflowTemplateRef"), (*root, "workflowTemplateRef"))
    yield from _artifacts(mapping(spec.get("arguments")).get("artifacts"), contract)
    for template in templates.values():
        path = cel.path(template) or ()
        for key in AGENTS:
            if key in template:
                what = f"template {template['name']} is of the kind {key}, which this platform does not run"
                yield "TY216", (*path, key), what, "use a container template instead"
        for side in ("inputs", "outputs"):
            yield from _artifacts(mapping(template.get(side)).get("artifacts"), contract)
        for task in _tasks(template):
            yield from _referred(task.get("templateRef"), (*(cel.path(task) or path), "templateRef"))
            yield from _artifacts(mapping(task.get("arguments")).get("artifacts"), contract)


def _tasks(template: Object) -> Iterator[Object]:
    yield from mapping(template.get("dag")).get("tasks") or []
    for group in template.get("steps") or []:
        yield from group


def _referred(given: Any, path: Path) -> Iterator[Issue]:
    name = mapping(given).get("name")
    if not name:
        return
    if mapping(given).get("clusterScope") in (True, "true"):
        what = f"ClusterWorkflowTemplate {name} does not exist: the platform has none"
        yield "TY216", path, what, "copy its templates into this workflow"
    else:
        what = f"it runs only where the team's namespace has a WorkflowTemplate {name}, which members may not create"
        yield "TY217", path, what, "copy its templates into this workflow, or ask the platform engineer to create it"


def _artifacts(given: Any, contract: Contract) -> Iterator[Issue]:
    for one in given if isinstance(given, list) else []:
        path = cel.path(one) or ()
        for kind, key in ELSEWHERE.items():
            if kind not in mapping(one):
                continue
            address = str(mapping(one[kind]).get(key) or "") if key else ""
            host = address.partition("://")[2].partition("/")[0].partition(":")[0]
            if not host or network.outside(host, contract):
                what = f"artifact {one.get('name', '?')} is at {host or kind}, which the network of teams can't reach"
                yield "TY303", (*path, kind), what, "copy it to a bucket of the team, and refer to it by s3.key"
        name = mapping(mapping(one).get("s3")).get("bucket")
        if isinstance(name, str) and "{" not in name and (said := pod_rules.bucket(name, contract)):
            yield "TY504", (*path, "s3", "bucket"), *said
