"""Prepares the Workflow from a file: compiled, checked, translated. Nothing is sent."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard.contract import Contract, Team
from trainyard.errors import UsageError
from trainyard.pipelines import adapt, source
from trainyard.pipelines.ir.arguments import split
from trainyard.pipelines.translate.settings import Settings
from trainyard.pipelines.translate.size import LARGEST

if TYPE_CHECKING:
    from trainyard.pipelines.ir.model import Pipeline
    from trainyard.pipelines.lint import Finding, Site
    from trainyard.policy.fill import Filled


@dataclass(frozen=True)
class Wanted:
    """The command line's options for a run; empty texts mean the team's default."""

    file: Path
    name: str = ""  # which pipeline of the file
    given: Sequence[str] = ()
    queue: str = ""
    priority: str = ""
    experiment: str = "default"
    cache: bool = True


@dataclass(frozen=True)
class Prepared:
    """The Workflow, and lint's warnings."""

    workflow: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)


def workflow(wanted: Wanted, contract: Contract, team: str, say: Callable[[str], None]) -> Prepared:
    """The Workflow of a file. Raises UsageError for the first error; all of lint's errors come in one."""
    settings = _settings(wanted, contract, team)
    if source.kind(wanted.file) == source.KFP:
        made, findings = _of_kfp(wanted, contract, settings)
    else:
        raw = source.read(wanted.file, wanted.name)
        if raw.note:
            say(raw.note)
        _well_formed(wanted.file, raw, _site(contract, settings))
        made = adapt.workflow(raw.workflow, settings, split(wanted.given), queue=wanted.queue, say=say)
        findings = _linted_workflow(wanted.file, raw, _site(contract, settings))
    size = len(json.dumps(made))
    if size > LARGEST:
        raise UsageError(
            f"the workflow has {size / 1024:.0f} KiB, but the API server accepts at most {LARGEST / 1024:.0f}",
            where=str(wanted.file),
            hint="split the pipeline, or pass large values as artifacts",
        )
    return Prepared(made, findings)


def _settings(wanted: Wanted, contract: Contract, team: str) -> Settings:
    own: dict[str, Any] = {"queue": wanted.queue, "priority": wanted.priority, "experiment": wanted.experiment}
    own["cache"] = wanted.cache
    if team not in contract.teams and not contract.teams:
        # The chart's own defaults name no team; the cluster will check it.
        return Settings(contract, Team(team, (team,)), **own)
    return Settings.of(contract, team, **own)


def _of_kfp(wanted: Wanted, contract: Contract, settings: Settings) -> tuple[dict[str, Any], list[Finding]]:
    from trainyard.pipelines.ir import compile as compiling

    pipeline = compiling.pipeline(wanted.file, wanted.name or None)
    made = of_pipeline(pipeline, split(wanted.given), contract, settings, queue=wanted.queue, priority=wanted.priority)
    return made.workflow, made.findings


def of_pipeline(
    pipeline: Pipeline, arguments: Mapping[str, Any], contract: Contract, settings: Settings, *,
    queue: str = "", priority: str = "",
) -> Prepared:  # fmt: skip
    """The Workflow of a compiled pipeline. Raises UsageError; all of lint's errors come in one.

    Args:
        arguments: values as text or as Python values.
        queue, priority: as the caller named them, if so.
    """
    from trainyard.pipelines import lint, translate

    site = _site(contract, settings)

    @functools.cache
    def translated() -> Filled:
        return lint.with_images(translate.workflow(pipeline, dict(arguments), settings), site)

    found = lint.pipeline(pipeline, site, queue=queue, priority=priority, translated=translated)
    findings, made = refuse(found, Path(pipeline.file)), translated().obj
    made["spec"].setdefault("activeDeadlineSeconds", settings.deadline)
    return Prepared(made, findings)


def _site(contract: Contract, settings: Settings) -> Site:
    from trainyard.pipelines import lint

    return lint.site(contract, settings.team.name if settings.team.name in contract.teams else "")


def _well_formed(file: Path, raw: source.RawWorkflow, site: Site) -> None:
    """Raises UsageError with all parts of invalid form; later steps rely on valid ones."""
    from trainyard.policy.lint import shapes
    from trainyard.policy.lint.report import Report

    report = Report(site, str(file))
    for path, what, hint in shapes.validation_errors(raw.workflow):
        report.add("TY105", raw.line(path), what, hint, at=path)
    refuse(report.sorted(), file)


def _linted_workflow(file: Path, raw: source.RawWorkflow, site: Site) -> list[Finding]:
    """Lint's findings about the workflow as it will be sent, at the lines of the file."""
    from trainyard.policy.lint import objects
    from trainyard.policy.lint.report import Report

    report = Report(site, str(file))
    objects.check(raw.workflow, raw.line, report)
    return refuse(report.sorted(), file)


def refuse(findings: Sequence[Finding], file: Path) -> list[Finding]:
    """The warnings among the findings. Raises UsageError with all errors."""
    from trainyard.policy.lint.finding import Severity

    errors = [one for one in findings if one.severity >= Severity.ERROR]
    if errors:
        listed = "\n".join(f"  {line(one)}" for one in errors)
        count = f"{len(errors)} error{'s' * (len(errors) != 1)}"
        raise UsageError(f"lint found {count}; nothing was sent:\n{listed}", where=str(file))
    return list(findings)


def line(one: Finding) -> str:
    """A finding as one line."""
    return f"{one.line_of_text}: {one.hint}" if one.hint else one.line_of_text
