"""Says what would be refused or fail of Kubernetes objects, before anything is sent. Pipelines have their own rules."""

from typing import Any

from trainyard.policy.lint import objects
from trainyard.policy.lint.finding import Finding, Severity
from trainyard.policy.lint.report import Lines, Report, Site, site

__all__ = ["Finding", "Lines", "Severity", "Site", "manifest", "site"]


def manifest(obj: dict[str, Any], site: Site, file: str = "manifest", lines: Lines | None = None) -> list[Finding]:
    """What is wrong with one Kubernetes object.

    Args:
        lines: the line of a path in the file that the object comes from; left out, no line is told.
    """
    report = Report(site, file, one_line=lines is None)
    objects.check(obj, lines or (lambda path: 0), report)
    return report.sorted()
