"""Checks of trainyard.yaml: its schema, and the job that it describes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import JobSpec, TeamConfig, imports, manifest, requirements, saved
from trainyard.kinds import check as schema
from trainyard.kinds.fit import fit
from trainyard.policy.lint import objects
from trainyard.policy.lint.finding import Severity
from trainyard.policy.lint.report import ANY, Report
from trainyard.policy.lint.report import Path as Place
from trainyard.yaml_lines import Document

# The setting from which each field of the job's manifest is made; the last part of the path decides.
MADE_FROM = {
    "image": "image",
    "queue": "queue",
    "priorityClass": "priority",
    "priorityClassName": "priority",
    "nodeSelector": "pool",
    "tolerations": "pool",
    "activeDeadlineSeconds": "deadline",
    "ttlSecondsAfterFinished": "keep",
    "command": "command",
    "args": "command",
    "env": "env",
    "resources": "memory",
    "volumes": "mounts",
    "pytorchReplicaSpecs": "gpus",
    "tfReplicaSpecs": "gpus",
    "mpiReplicaSpecs": "gpus",
    "tasks": "gpus",
}
# Errors about a job's settings, by a word of the message: the code, and the setting.
REFUSED = {
    "computes on CPUs": ("TY409", "image"),
    "GPUs over all nodes": ("p08", "gpus"),
    "queue": ("TY501", "queue"),
    "priority class": ("TY502", "priority"),
    "pool": ("TY408", "pool"),
}


def check(document: Document, report: Report) -> None:
    """Reports all findings about the settings of one job."""
    broken = list(schema.found(document))
    for path, what, hint in broken:
        report.add("TY104", document.line(*path), what, hint, at=path)
    if broken:
        return
    data = document.data
    _code(data, document, report)
    judge(data, lambda setting: document.line(*([setting] if setting in data else [])), report)


def _code(settings: Mapping[str, Any], document: Document, report: Report) -> None:
    """Reports imports of the code next to the settings that the image lacks."""
    folder, command = Path(report.file).parent, list(settings.get("command") or ())
    team = report.site.team(str(settings.get("team") or ""))
    if team.name == ANY or not command or "framework" not in settings or not Path(report.file).is_file():
        return
    team_config, image = TeamConfig.of(report.site.contract, team.name), str(settings.get("image") or "")
    framework = str(settings["framework"])
    try:
        listed = requirements.of_folder(folder, settings.get("requirements")).names
    except UsageError as error:
        line = document.line(*(["requirements"] if "requirements" in settings else []))
        report.add("TY104", line, f"{error.where}: {error.what}", error.hint, at="requirements")
        return
    try:
        pool = team_config.team.pool(str(settings.get("pool") or ""), gpus=True) if settings.get("gpus") else None
        reference = team_config.image(image, framework, pool)
    except UsageError:
        return  # reported by `judge`
    found = imports.of_folder(folder, command, imports.environment(settings.get("env") or {}))
    seen = fit(found, framework, reference, team_config, asked=bool(image), listed=listed)
    for missing, severity in [(one, None) for one in seen.refused] + [(one, Severity.WARNING) for one in seen.doubtful]:
        line = document.line("image" if image else "command")
        report.add("TY304", line, f"{missing.where} {missing.what}", missing.hint, at="command", severity=severity)
    results = str(settings.get("results", JobSpec.results))
    mounts = [str(one["path"]) for one in settings.get("mounts") or ()]
    for one in saved.lost(folder, command, [results, str(settings.get("checkpoints") or "")], mounts):
        what, hint = one.advice(results)
        report.add("TY305", document.line("command"), what, hint, at="command")


def judge(settings: Mapping[str, Any], line: Callable[[str], int], report: Report, task: str = "") -> None:
    """Reports violations by a job with these settings, which are well-formed.

    Args:
        line: returns the line of a setting, or the first line for a missing one.
    """
    values = {"name": "job", "command": ["true"], **settings}
    team = report.site.team(str(values.get("team") or ""))
    if team.name not in report.site.contract.teams:
        return  # this job's queues and classes are unknown
    try:
        spec = JobSpec.of(values)
        made = manifest(spec, TeamConfig.of(report.site.contract, team.name))
    except UsageError as error:
        matched = next((word for word in REFUSED if word in error.what), "")
        code, setting = REFUSED.get(matched, ("TY104", ""))
        report.add(code, line(setting), error.what, error.hint, task=task, at=setting)
        return

    def lines(path: Place) -> int:
        for part in reversed(path):
            if (setting := MADE_FROM.get(str(part), "")) in settings:
                return line(setting)
        return line("")

    objects.check(made, lines, report, task or f"job {spec.name}")
