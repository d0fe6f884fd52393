"""The rules of policies/, as their files describe them, with what several of them share put in.

A file may say `{kinds: training-operator, operations: [...]}` in place of a rule on resources, and name a variable
without an expression: kinds come from the registry of kinds, expressions from `policies/shared/variables.yaml`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT

PREFIX = "trainyard-"  # of the names of policies and bindings in a cluster
SHARED = "shared/variables.yaml"
REPLICAS = "@REPLICAS@"


@dataclass(frozen=True)
class Rule:
    """One rule: `id` is its number, `about` one sentence. `advice`: by default it only warns.

    `option`: the component that brings what it is about; it is there with that one, and its mode among its values.
    """

    name: str
    id: str
    about: str
    advice: bool = False
    option: str = ""


def policy_files() -> list[Path]:
    """The admission policies, one rule a file."""
    return sorted(file for file in (ROOT / "policies").glob("*.yaml") if not file.name.endswith(".cases.yaml"))


def policy(file: Path) -> dict[str, Any]:
    """A file's ValidatingAdmissionPolicy, whole. Raises TrainyardError for a variable that nobody defines."""
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    spec = found["spec"]
    looks = spec["matchConstraints"]
    looks["resourceRules"] = [one for rule in looks["resourceRules"] for one in resource_rules(rule)]
    for variable in spec.get("variables") or []:
        if "expression" not in variable:
            if variable["name"] not in shared():
                what = f"the variable {variable['name']} has no expression, and {SHARED} has none of that name"
                raise TrainyardError(what, where=str(file.relative_to(ROOT)))
            variable["expression"] = shared()[variable["name"]]
    return found


@functools.cache
def shared() -> dict[str, str]:
    """Expressions of the variables that rules share, by name."""
    listed = yaml.safe_load((ROOT / "policies" / SHARED).read_text())
    return {one["name"]: one["expression"].replace(REPLICAS, _replicas()) for one in listed}


def rules() -> list[Rule]:
    """All rules, by their number."""
    found = []
    for file in policy_files():
        notes = yaml.safe_load(file.read_text())["metadata"]["annotations"]
        advice = "trainyard.io/advice" in notes
        option = notes.get("trainyard.io/option", "")
        found.append(Rule(file.stem, notes["trainyard.io/id"], notes["trainyard.io/about"], advice, option))
    return sorted(found, key=lambda rule: rule.id)


def advice() -> frozenset[str]:
    """Names of the rules that by default only warn, and guard nothing."""
    return frozenset(rule.name for rule in rules() if rule.advice)


def resource_rules(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """A file's rule on resources as the API server takes it: kinds of a part of the chart by their groups."""
    if "kinds" not in rule:
        return [rule]
    made = registry.rules(registry.of_part(rule["kinds"]))
    return [{**one, "operations": list(rule["operations"])} for one in made]


def _replicas() -> str:
    """The map of roles of whatever kind of job it is; {} for what has none."""
    keys = [kind.replicas for kind in registry.KINDS if kind.replicas]
    first, *others = [f"variables.spec.?{key}" for key in keys]
    return "\n  ".join([first, *(f".or({one})" for one in others), ".orValue({})"])
