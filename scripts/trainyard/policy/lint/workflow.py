"""Argo workflows: whether templates fit together, and the pods that Argo's controller would make of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.policy import cel
from trainyard.policy.lint import admission, graph, pod_rules
from trainyard.policy.lint.pods import Pod
from trainyard.policy.lint.report import Lines, Path, Report, near
from trainyard.policy.offline import Request, Requester, quantities

Object = dict[str, Any]
PRODUCER = re.compile(r"\{\{=?\s*(?:tasks|steps)(?:\.([A-Za-z0-9_-]+)|\['([^']+)'\])\.")
WORD = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z]+)?")
OF_POD = ("nodeSelector", "tolerations", "affinity", "securityContext", "schedulerName", "hostNetwork")
MAIN = "main"
# A team's controller but for the team's name, where an older contract says nothing: what the rules then go by.
CONTROLLER = "system:serviceaccount:trainyard-system:trainyard-workflow-controller-"
# What the controller's configuration gives to pods that say nothing, see charts/argo.
POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
MAIN_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def check(obj: Object, lines: Lines, report: Report, task: str, team: Team, broken: Sequence[Path] = ()) -> None:
    """Notes everything about a Workflow, WorkflowTemplate or CronWorkflow whose parts know their places.

    Args:
        broken: fields that are known to be of the wrong shape; nothing more is said about them.
    """
    spec = obj["spec"]["workflowSpec"] if obj.get("kind") == "CronWorkflow" else obj["spec"]
    templates = {one["name"]: one for one in spec.get("templates") or []}
    for path, what, hint in _graph(spec, templates):
        report.add("TY214", lines(path), what, hint, task=task, at=path)
    contract = report.site.contract
    requester = Requester(contract.parameters.get("teamWorkflowController", CONTROLLER) + team.name)
    # What a step's account may do is reported where the workflow names it.
    own = spec.get("serviceAccountName") == contract.parameters["pipelineServiceAccount"]
    for name, template in templates.items():
        for made in _pods(spec, template, team, contract):
            label = f"{task} {name}"
            pod = Pod(made["spec"], (), made["metadata"])
            said = []
            for one in admission.violations(Request(made, requester, team), contract, [pod]):
                said.append(one.path)
                if one.rule == "api-token" and not own:
                    continue
                if not one.message.startswith("the rule can't be asked") and not near(one.path or (), broken):
                    report.rule(one.rule, lines(one.path or ()), one.message, task=label, at=one.path or ())
            for rule in pod_rules.RULES:
                for code, path, what, hint in rule(pod, contract, team):
                    severity = report.installing(team) if code == "TY302" else None
                    if not near(path, broken) and not (code == "TY301" and path in said):
                        report.add(code, lines(path), what, hint, task=label, at=path, severity=severity)
    for claim in spec.get("volumeClaimTemplates") or []:
        _claim(claim, lines, report, task, team, contract)


def _claim(claim: Object, lines: Lines, report: Report, task: str, team: Team, contract: Contract) -> None:
    made = cel.at({"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}, cel.path(claim))
    for one in admission.violations(Request(made, admission.member(team), team), contract, []):
        report.rule(one.rule, lines(one.path or ()), one.message, task=task, at=one.path or ())


def _pods(spec: Object, template: Object, team: Team, contract: Contract) -> Iterator[Object]:
    """The pod of a template that runs something, with what the workflow gives to all pods."""
    main = template.get("container") or template.get("script")
    closed = {"securityContext": {**MAIN_SECURITY, **((main or {}).get("securityContext") or {})}}
    containers = (
        [cel.at({"name": cel.at(MAIN, (*(cel.path(main) or ()), "name")), **main, **closed}, cel.path(main))]
        if main
        else []
    )
    containers += (template.get("containerSet") or {}).get("containers") or []
    if not containers:
        return
    containers += template.get("sidecars") or []
    pod: Object = {key: spec[key] for key in OF_POD if key in spec} | {
        key: template[key] for key in OF_POD if key in template
    }
    pod |= {"containers": containers, "initContainers": template.get("initContainers") or []}
    pod["volumes"] = [*(spec.get("volumes") or []), *(template.get("volumes") or [])]
    pod.setdefault("schedulerName", contract.scheduler)
    pod.setdefault("securityContext", POD_SECURITY)
    if priority := template.get("priorityClassName") or spec.get("podPriorityClassName"):
        pod["priorityClassName"] = priority
    if account := template.get("serviceAccountName") or spec.get("serviceAccountName"):
        pod["serviceAccountName"] = account
    deadline = template.get("activeDeadlineSeconds")
    if deadline is None and not (spec.get("onExit") == template["name"] and "activeDeadlineSeconds" in spec):
        # What the workflow has left of its own; one without gets the site's longest when it is sent.
        deadline = spec.get("activeDeadlineSeconds", contract.parameters["maxDeadlineSeconds"])
    if str(deadline).isdigit():
        pod["activeDeadlineSeconds"] = int(str(deadline))
    if (token := template.get("automountServiceAccountToken", spec.get("automountServiceAccountToken"))) is not None:
        pod["automountServiceAccountToken"] = token
    for container in containers:
        quantities(container, team.limits)
    given = [one.get(key) or {} for one, key in ((spec, "podMetadata"), (template, "metadata"))]
    meta: Object = {
        key: {**(given[0].get(key) or {}), **(given[1].get(key) or {})} for key in ("labels", "annotations")
    }
    meta = cel.at(meta, (*(cel.path(spec) or ()), "podMetadata"))
    for key in ("labels", "annotations"):
        meta[key] = cel.at(meta[key], (*(cel.path(meta) or ()), key))
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": cel.at(pod, cel.path(template))}
    yield cel.at(made, cel.path(template))


def _graph(spec: Object, templates: Mapping[str, Object]) -> Iterator[tuple[Path, str, str]]:
    known = ", ".join(templates) or "none"
    refers = bool(spec.get("workflowTemplateRef"))
    root = cel.path(spec) or ()
    entry = spec.get("entrypoint")
    if not entry and not refers:
        yield (*root, "entrypoint"), "the workflow has no entrypoint", f"name one of its templates: {known}"
    for key in ("entrypoint", "onExit"):
        if spec.get(key) and spec[key] not in templates and not refers:
            yield (*root, key), f"{key} names the template {spec[key]}, which is not there", f"templates: {known}"
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
                yield (
                    at,
                    f"task {task['name']} waits for {need}, which is not there",
                    f"tasks: {', '.join(sorted(names))}",
                )
        edges[task["name"]] = {need for need, _ in needs if need in names}
    if circle := graph.circle(edges):
        first = next(task for task in tasks if task["name"] == circle[0])
        yield (
            cel.path(first) or (),
            f"tasks wait for each other: {' → '.join(circle)}",
            "remove one of these dependencies",
        )


def _runs(task: Object, templates: Mapping[str, Object], known: str) -> Iterator[tuple[Path, str, str]]:
    """The template that a task or step runs, and whether it gets what it needs."""
    name, path = task.get("template"), cel.path(task) or ()
    if not name:
        if not any(key in task for key in ("templateRef", "inline", "hooks")):
            yield path, f"{task['name']} runs nothing", f"name a template: {known}"
        return
    if name not in templates:
        yield (*path, "template"), f"{task['name']} runs the template {name}, which is not there", f"templates: {known}"
        return
    given = {one["name"] for one in (task.get("arguments") or {}).get("parameters") or []}
    for one in (templates[name].get("inputs") or {}).get("parameters") or []:
        if not {"value", "default", "valueFrom"} & one.keys() and one["name"] not in given:
            yield path, f"{task['name']} gives no {one['name']}, which template {name} needs", "add it to its arguments"
