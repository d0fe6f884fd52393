"""Says what would be refused or fail of Kubernetes objects, before anything is sent. Pipelines have their own rules."""

from __future__ import annotations

from typing import Any

from trainyard.policy.lint import objects
from trainyard.policy.lint.finding import Finding, Severity
from trainyard.policy.lint.report import Report, Site, site

__all__ = ["Finding", "Severity", "Site", "manifest", "site"]


def manifest(obj: dict[str, Any], site: Site, file: str = "manifest") -> list[Finding]:
    """What is wrong with one Kubernetes object; all lines are 1."""
    report = Report(site, file)
    objects.check(obj, lambda path: 1, report)
    return report.sorted()
