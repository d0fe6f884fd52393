"""Checks of one Kubernetes object: its shape, the admission rules, and problems that these can't see."""

import re
from dataclasses import replace
from typing import Any

from trainyard.contract import Team
from trainyard.policy import cel
from trainyard.policy.lint import admission, arrival, job_rules, operator_rules, rights, shapes, volcano_rules, workflow
from trainyard.policy.lint.pods import distinct, mapping, pods, repeated
from trainyard.policy.lint.report import LATER, Lines, Path, Report, near
from trainyard.policy.offline import Request, Requester, defaulted

Object = dict[str, Any]
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LONGEST = 63
WORKFLOWS = ("Workflow", "WorkflowTemplate", "CronWorkflow")


def check(obj: Object, lines: Lines, report: Report, task: str = "", who: rights.Account | None = None) -> None:
    """Reports all findings about one object. `lines` maps a path of the object to its line.

    Args:
        who: account that would create it; default: a member of the team.
    """
    label, who = task or named(obj), who or rights.member(bool(report.site.contract.raw.get("serving")))
    if not _allowed(obj, lines, report, label, who):
        return
    broken = [one for one in shapes.validation_errors(obj) if not _filled_later(obj, one[0])]
    for path, what, hint in broken:
        report.add("TY105", lines(path), what, hint, task=label, at=path)
    _name(obj, lines, report, label)
    if any(len(path) <= 2 for path, _, _ in broken):
        return  # without its main parts nothing else can be checked
    obj, wrong = shapes.fixed(obj, broken)
    team = report.site.team(_namespace(obj))
    made = arrival.arriving(obj, report, team, _requester(who, report, team).user)
    if not who.pipeline:
        arrival.tell(made, lines, report, label)
    try:
        _rules(obj, made.obj, lines, report, label, team, wrong, who)
    except (AttributeError, KeyError, TypeError, ValueError):
        if not broken:  # no schema covers this shape, and no rule could read it
            what = "its spec can't be read"
            report.add("TY105", lines(("spec",)), what, "see manifests/jobs for examples", task=label, at=("spec",))


def _allowed(obj: Object, lines: Lines, report: Report, task: str, who: rights.Account) -> bool:
    """Reports an object of an unsuitable kind or namespace. False: its kind can't be checked further."""
    if said := rights.missing(obj, who):
        report.add("TY106", lines(("kind",)), *said, task=task, at="kind")
        return False
    if said := rights.refused(obj, who):
        report.add("TY110", lines(("kind",)), *said, task=task, at="kind")
    if said := report.site.strange(_namespace(obj)):
        report.add("TY505", lines(("metadata", "namespace")), *said, task=task, at="metadata.namespace")
    return shapes.kind(obj) in shapes.known()


def _namespace(obj: Object) -> str:
    meta = obj.get("metadata")
    return str(meta.get("namespace") or "") if isinstance(meta, dict) else ""


def _filled_later(obj: Object, path: Path) -> bool:
    """Whether Argo fills in the field's value before it creates the object."""
    value: Any = obj
    for part in path:
        value = value[int(part)] if isinstance(value, list) else mapping(value).get(str(part))
    return isinstance(value, str) and LATER in value


def named(obj: Object) -> str:
    """`Kind/name`."""
    meta = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    return f"{obj.get('kind')}/{meta.get('name') or meta.get('generateName') or '?'}"  # type: ignore[union-attr]


def _requester(who: rights.Account, report: Report, team: Team) -> Requester:
    if not who.pipeline:
        return admission.member(team)
    account = report.site.contract.parameters["pipelineServiceAccount"]
    return Requester(f"system:serviceaccount:{team.name}:{account}", team.queues)


def _rules(
    written: Object,
    obj: Object,
    lines: Lines,
    report: Report,
    task: str,
    team: Team,
    broken: list[Path],
    who: rights.Account,
) -> None:
    """Applies the rules to an object as the API server would see it; YAML aliases are only visible in `written`."""
    contract, shared = report.site.contract, repeated(written)
    ready = cel.place(defaulted(obj, team))
    found = [replace(pod, repeated=pod.path in shared) for pod in pods(ready)]
    requester = _requester(who, report, team)
    said: list[Path] = []
    for one in admission.violations(Request(ready, requester, team), contract, found):
        path = one.path or ()
        if one.message.startswith("the rule can't be evaluated") or near(path, broken):
            continue
        said.append(path)
        report.rule(one.rule, lines(path), one.message, task=task, at=path)
    for pod in distinct(found):
        workflow.of_pod(pod, lines, report, f"{task} {pod.role}".strip(), team, broken, said)
    for rule in (*job_rules.RULES, *operator_rules.RULES, *volcano_rules.RULES):
        for code, path, what, hint in rule(ready, found, contract, team):
            if path not in said and not near(path, broken):
                report.add(code, lines(path), what, hint, task=task, at=path)
    if obj.get("kind") in WORKFLOWS:
        workflow.check(ready, lines, report, task, team, check, broken)


def _name(obj: Object, lines: Lines, report: Report, task: str) -> None:
    meta = obj.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or (name is None and meta.get("generateName") is None):
        report.add("TY108", lines(("metadata",)), "the object has no name", "add metadata.name", task=task)
    elif isinstance(name, str) and LATER not in name and (not NAME.fullmatch(name) or len(name) > LONGEST):
        hint = f"use up to {LONGEST} lower-case letters, digits and hyphens"
        report.add("TY108", lines(("metadata", "name")), f"invalid name: {name!r}", hint, task=task, at="metadata.name")
