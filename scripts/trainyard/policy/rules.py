"""The rules of policies/, as their files describe them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from trainyard.paths import ROOT

PREFIX = "trainyard-"  # of the names of policies and bindings in a cluster


@dataclass(frozen=True)
class Rule:
    """One rule: `id` is its number among the platform's rules, `about` one sentence."""

    name: str
    id: str
    about: str


def policy_files() -> list[Path]:
    """The admission policies, one rule a file."""
    return sorted(file for file in (ROOT / "policies").glob("*.yaml") if not file.name.endswith(".cases.yaml"))


def rules() -> list[Rule]:
    """All rules, by their number."""
    found = []
    for file in policy_files():
        notes = yaml.safe_load(file.read_text())["metadata"]["annotations"]
        found.append(Rule(file.stem, notes["trainyard.io/id"], notes["trainyard.io/about"]))
    return sorted(found, key=lambda rule: rule.id)
