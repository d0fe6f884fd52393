"""Linter that predicts which Kubernetes objects would be rejected or fail. Pipelines have their own rules."""

from typing import Any

from trainyard.policy.lint import objects
from trainyard.policy.lint.finding import Finding, Severity
from trainyard.policy.lint.report import Lines, Report, Site, site

__all__ = ["Finding", "Lines", "Severity", "Site", "manifest", "site"]


def manifest(obj: dict[str, Any], site: Site, file: str = "manifest", lines: Lines | None = None) -> list[Finding]:
    """Findings about one Kubernetes object.

    Args:
        lines: maps a path of the object to its line in the file; if omitted, findings have no line.
    """
    report = Report(site, file, one_line=lines is None)
    objects.check(obj, lines or (lambda path: 0), report)
    return report.sorted()
