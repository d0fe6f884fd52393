"""One Kubernetes object: its shape, the admission rules, and what they can't see."""

from __future__ import annotations

import re
from typing import Any

from trainyard.contract import Team
from trainyard.policy import cel
from trainyard.policy.lint import admission, job_rules, operator_rules, pod_rules, shapes, workflow
from trainyard.policy.lint.pods import Pod, distinct, pods
from trainyard.policy.lint.report import Lines, Path, Report, near
from trainyard.policy.offline import Request, defaulted

Object = dict[str, Any]
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST = 63
WORKFLOWS = ("Workflow", "WorkflowTemplate", "CronWorkflow")


def check(obj: Object, lines: Lines, report: Report, task: str = "") -> None:
    """Notes everything about one object. `lines` tells the line of a path in it."""
    label = task or named(obj)
    if shapes.kind(obj) not in shapes.known():
        kind = obj.get("kind")
        report.add(
            "TY106", lines(()), f"{kind} is a kind that lint doesn't know", "nothing of it was checked", task=label
        )
        return
    broken = list(shapes.validation_errors(obj))
    for path, what, hint in broken:
        report.add("TY105", lines(path), what, hint, task=label, at=path)
    _name(obj, lines, report, label)
    if any(len(path) <= 2 for path, _, _ in broken):
        return  # without its main parts nothing more can be said
    team = report.site.team(str((obj.get("metadata") or {}).get("namespace") or ""))
    try:
        _rules(obj, lines, report, label, team, [path for path, _, _ in broken])
    except (AttributeError, KeyError, TypeError, ValueError):
        if not broken:  # a shape that no schema here describes, and that no rule could read
            what = "its spec can't be read"
            report.add("TY105", lines(("spec",)), what, "see manifests/jobs for examples", task=label, at=("spec",))


def named(obj: Object) -> str:
    """`Kind/name`."""
    meta = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    return f"{obj.get('kind')}/{meta.get('name') or meta.get('generateName') or '?'}"  # type: ignore[union-attr]


def _rules(obj: Object, lines: Lines, report: Report, task: str, team: Team, broken: list[Path]) -> None:
    contract = report.site.contract
    ready = cel.place(defaulted(obj, team))
    found = pods(ready)
    requester = admission.member(team)
    said: list[Path] = []
    for one in admission.violations(Request(ready, requester, team), contract, found):
        path = one.path or ()
        if one.message.startswith("the rule can't be asked") or near(path, broken):
            continue
        said.append(path)
        report.rule(one.rule, lines(path), one.message, task=task, at=path)
    for pod in distinct(found):
        own = f"{task} {pod.role}".strip()
        _of_pod(pod, lines, report, own, team, broken, said)
    for rule in (*job_rules.RULES, *operator_rules.RULES):
        for code, path, what, hint in rule(ready, found, contract, team):
            if path not in said and not near(path, broken):
                report.add(code, lines(path), what, hint, task=task, at=path)
    if obj.get("kind") in WORKFLOWS:
        workflow.check(ready, lines, report, task, team, broken)


def _of_pod(
    pod: Pod, lines: Lines, report: Report, task: str, team: Team, broken: list[Path], said: list[Path]
) -> None:
    for rule in pod_rules.RULES:
        for code, path, what, hint in rule(pod, report.site.contract, team):
            if not near(path, broken) and not (code == "TY301" and path in said):
                severity = report.installing(team) if code == "TY302" else None
                report.add(code, lines(path), what, hint, task=task, at=path, severity=severity)


def _name(obj: Object, lines: Lines, report: Report, task: str) -> None:
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or (name is None and meta.get("generateName") is None):
        report.add("TY108", lines(("metadata",)), "the object has no name", "add metadata.name", task=task)
    elif isinstance(name, str) and (not NAME.fullmatch(name) or len(name) > LONGEST):
        hint = f"take up to {LONGEST} small letters, digits and hyphens"
        report.add(
            "TY108", lines(("metadata", "name")), f"{name!r} can't be a name", hint, task=task, at="metadata.name"
        )
