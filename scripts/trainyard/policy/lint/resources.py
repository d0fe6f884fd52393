"""Manifests in a workflow's resource templates, judged for the account that creates them."""

import re
from collections.abc import Callable
from typing import Any

from trainyard.errors import UsageError
from trainyard.policy import cel
from trainyard.policy.lint import rights
from trainyard.policy.lint.pods import mapping
from trainyard.policy.lint.report import LATER, Lines, Report, dotted
from trainyard.yaml_lines import Document, documents

Object = dict[str, Any]
Judge = Callable[[Object, Lines, Report, str, rights.Account], None]
FILLED_IN = re.compile(r"\{\{.*?\}\}", re.DOTALL)
CREATES = "create"
ACTIONS = (CREATES, "get", "delete")  # allowed for the pipelines' account; apply and patch need more permissions


def check(template: Object, lines: Lines, report: Report, task: str, judge: Judge) -> None:
    """Reports all findings about the manifest of a resource template, whose parts know their places.

    Args:
        judge: reports all findings about an object, given the line of a path, a label, and the creating account.
    """
    resource = mapping(template.get("resource"))
    base = (*(cel.path(template) or ()), "resource")
    action, text = str(resource.get("action") or ""), resource.get("manifest")
    if action not in ACTIONS and "{{" not in action:
        what = f"the step may not {action or 'act'}: its account may create, read and delete"
        report.add("TY216", lines((*base, "action")), what, "write action: create", task=task, at=(*base, "action"))
    if not isinstance(text, str) or not text.strip():
        return
    base = (*base, "manifest")
    first = lines(base)
    try:
        found = documents(FILLED_IN.sub(LATER, text), report.file)
    except UsageError as error:
        if "{{" not in text:  # values that Argo fills in may be needed to make it valid YAML
            report.add("TY101", first, f"the manifest is invalid YAML: {error.what}", "correct it", task=task, at=base)
        return
    for one in found:
        if isinstance(one.data, dict) and isinstance(one.data.get("kind"), str) and LATER not in one.data["kind"]:
            _object(one, action, first, "\n" in text, report, task, dotted(base), judge)


def _object(
    one: Document, action: str, first: int, block: bool, report: Report, task: str, field: str, judge: Judge
) -> None:
    inner = Report(report.site, report.file, one_line=report.one_line)
    steps = rights.pipeline(report.site.contract)
    if action == CREATES:
        judge(one.data, lambda path: one.line(*path), inner, "", steps)
    elif said := rights.missing(one.data, steps):
        inner.add("TY106", one.line("kind"), *said, at="kind")
    elif action == "delete" and (said := rights.refused(one.data, steps)):
        inner.add("TY110", one.line("kind"), said[0].replace("create", action), "remove the step", at="kind")
    for said_inside in inner.findings:
        if LATER in said_inside.reason + said_inside.hint:
            continue
        line = first + said_inside.line if block and first else first
        report.add(
            said_inside.code,
            line,
            said_inside.reason,
            said_inside.hint,
            task=f"{task} {said_inside.task}".strip(),
            at=f"{field}.{said_inside.field}".rstrip("."),
            severity=said_inside.severity,
        )
