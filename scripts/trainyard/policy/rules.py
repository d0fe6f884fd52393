"""The rules of policies/, as their files describe them, with what several of them share put in.

A file has what is its rule's own of a ValidatingAdmissionPolicy: notes, rules on resources, conditions and variables by
name, validations. It may say `{kinds: training-operator, operations: [...]}` in place of a rule on resources, name a
condition without an expression, and use a variable that others use, too: these come from the registry of kinds and from
`policies/shared/`. The variable `params` has the parameters that its expressions name; the chart gives their values.
"""

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT

PREFIX = "trainyard-"  # of the names of policies and bindings in a cluster
SHARED, MATCHING = "shared/variables.yaml", "shared/matching.yaml"
NOTES = ("id", "advice", "option", "about", "scope")  # annotations of the policy
NAMED, PARAMETER = re.compile(r"\bvariables\.(\w+)"), re.compile(r"\bvariables\.params\.(\w+)")
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
    """A rule's ValidatingAdmissionPolicy, whole. Raises TrainyardError for a variable that nobody defines."""
    found = completed(file)
    refusals = [{"expression": "", "message": "", "reason": "Forbidden", **one} for one in found["spec"]["validations"]]
    return {**found, "spec": {"failurePolicy": "Fail", **found["spec"], "validations": refusals}}


def completed(file: Path) -> dict[str, Any]:
    """What a file says, with what rules share put in. Raises TrainyardError for a variable that nobody defines."""
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    conditions = {name: own or matching()["conditions"][name] for name, own in found.get("matchConditions", {}).items()}
    spec = {
        "failurePolicy": found.get("failurePolicy"),
        "matchConstraints": {"resourceRules": [one for rule in found["resourceRules"] for one in resource_rules(rule)]},
        "matchConditions": [{"name": name, "expression": text} for name, text in conditions.items()],
        "variables": _variables(found, file),
        "validations": found["validations"],
    }
    notes = {f"trainyard.io/{note}": found[note] for note in NOTES if note in found}
    name = "-".join(file.relative_to(ROOT / "policies").with_suffix("").parts)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": PREFIX + name, "annotations": notes},
        "spec": {key: value for key, value in spec.items() if value},
    }


def _variables(found: dict[str, Any], file: Path) -> list[dict[str, str]]:
    """Those that a rule lists; behind its parameters those that it uses of what rules share, in the order of there."""
    listed: dict[str, str | None] = found.get("variables", {})
    known = shared() | {name: expression for name, expression in listed.items() if expression} | {"params": ""}
    used, waiting = set(), {*listed, *NAMED.findall(str(found["validations"]))}
    while waiting:
        name = waiting.pop()
        if name not in known:
            what = f"the variable {name} has no expression, and {SHARED} has none of that name"
            raise TrainyardError(what, where=str(file.relative_to(ROOT)))
        used.add(name)
        waiting |= {*NAMED.findall(known[name])} - used
    texts = [known[name] for name in used] + [str(found["validations"])]
    known["params"] = json.dumps(dict.fromkeys(sorted(PARAMETER.findall(" ".join(texts))), ""))
    ahead = [name for name in ("params", *shared()) if name in used and name not in listed]
    return [{"name": name, "expression": known[name]} for name in [*ahead, *listed]]


@functools.cache
def shared() -> dict[str, str]:
    """Expressions of the variables that rules share, by name."""
    listed = yaml.safe_load((ROOT / "policies" / SHARED).read_text())
    return {name: expression.replace(REPLICAS, _replicas()) for name, expression in listed.items()}


@functools.cache
def matching() -> dict[str, dict[str, Any]]:
    """What several rules look at, and when, by name."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "policies" / MATCHING).read_text())
    return found


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All rules, by their number."""
    found = []
    for file in policy_files():
        said = yaml.safe_load(file.read_text())
        found.append(Rule(file.stem, said["id"], said["about"], "advice" in said, said.get("option", "")))
    return tuple(sorted(found, key=lambda rule: rule.id))


def advice() -> frozenset[str]:
    """Names of the rules that by default only warn, and guard nothing."""
    return frozenset(rule.name for rule in rules() if rule.advice)


def resource_rules(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """A file's rule on resources as the API server takes it: kinds of a part of the chart by their groups."""
    if "kinds" not in rule:
        return [{**rule, "operations": list(rule["operations"])}]
    made = matching()["kinds"].get(rule["kinds"]) or registry.rules(registry.of_part(rule["kinds"]))
    return [ready for one in made for ready in resource_rules({**one, "operations": rule["operations"]})]


def _replicas() -> str:
    """The map of roles of whatever kind of job it is; {} for what has none."""
    keys = [kind.replicas for kind in registry.KINDS if kind.replicas]
    first, *others = [f"variables.spec.?{key}" for key in keys]
    return "\n  ".join([first, *(f".or({one})" for one in others), ".orValue({})"])
