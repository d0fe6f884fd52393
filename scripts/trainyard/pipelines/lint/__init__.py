"""Reports what would be refused or fail, before anything is sent.

    from trainyard import contract
    from trainyard.pipelines import lint

    site = lint.site(contract.find(), "vision")         # the rules to apply; the team is optional
    lint.file(Path("train.py"), site)                   # any file that lint supports
    lint.pipeline(ir_pipeline, site, queue="vision")    # a loaded kfp pipeline
    lint.manifest({"apiVersion": …}, site)              # an object, as Python has it

Each gives `Finding`s: code, severity, file, line, task, field, reason, hint. docs/lint.md has every code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainyard.pipelines.lint.files import check as file
from trainyard.policy.lint import manifest
from trainyard.policy.lint.finding import Finding, Severity
from trainyard.policy.lint.report import Site, site

if TYPE_CHECKING:
    from trainyard.pipelines.ir.model import Pipeline
    from trainyard.pipelines.lint.pipelines import Translated
    from trainyard.policy.fill import Filled

__all__ = ["Finding", "Severity", "Site", "file", "manifest", "pipeline", "site", "with_images"]


def pipeline(
    found: Pipeline, site: Site, *, queue: str = "", priority: str = "", translated: Translated | None = None
) -> list[Finding]:
    """All findings of a loaded kfp pipeline that is to run in this queue and with this priority class.

    Args:
        translated: returns the result of `with_images` for the workflow to be sent; by default, a workflow is made
            with a placeholder for each missing argument.
    """
    from trainyard.pipelines.lint import pipelines

    return pipelines.check(found, site, queue=queue, priority=priority, translated=translated)


def with_images(made: dict[str, Any], site: Site) -> Filled:
    """A translated workflow with this site's replacement images."""
    from trainyard.pipelines.lint import pipelines

    return pipelines.with_images(made, site)
