"""All codes of findings: lint's own, from codes.yaml, and the admission rules by their numbers."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.policy.lint.finding import Severity
from trainyard.policy.offline import policies

FILE = Path(__file__).with_name("codes.yaml")
# Admission rules that depend on the site that the contract describes.
SITE_RULES = frozenset(
    ("image-source", "pod-queue", "podgroup-queue", "vcjob-queue", "job-queue", "priority-class", "job-gpus")
)


@dataclass(frozen=True)
class Code:
    """One code of a finding.

    `site`: compares with the site, so it only warns if no contract was given. `run`: the object is admitted, but
    fails or never starts.
    """

    id: str
    severity: Severity
    title: str
    why: str
    site: bool = False
    policy: str = ""
    run: bool = False


@functools.cache
def registry() -> dict[str, Code]:
    """All codes by their id."""
    own = {id: _own(id, one) for id, one in yaml.safe_load(FILE.read_text()).items()}
    rules = {
        one.id: Code(
            one.id,
            Severity.WARNING if one.advice else Severity.ERROR,
            one.about,
            f"The admission rule [`{one.name}`](../policies/{one.name}.yaml).",
            one.name in SITE_RULES,
            one.name,
        )
        for one in sorted(policies(), key=lambda one: one.id)
    }
    return own | rules


def _own(id: str, raw: dict[str, Any]) -> Code:
    severity = Severity[raw["severity"].upper()]
    return Code(id, severity, raw["title"], raw["why"], raw.get("site", False), run=raw.get("run", False))


@functools.cache
def rule_codes() -> dict[str, str]:
    """Codes of the admission rules, by name of the rule."""
    return {code.policy: code.id for code in registry().values() if code.policy}
