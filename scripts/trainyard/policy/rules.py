"""The rules of policies/, as described in their files and completed with the parts that several rules share.

A file has the parts of a ValidatingAdmissionPolicy that are specific to its rule: notes, resource rules, conditions and
variables by name, validations. It may use `{kinds: training-operator, operations: [...]}` as a resource rule, name a
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

PREFIX = "trainyard-"  # prefix of the names of policies and bindings in a cluster
SHARED, MATCHING = "shared/variables.yaml", "shared/matching.yaml"
NOTES = ("id", "advice", "option", "about", "scope")  # annotations of the policy
NAMED, PARAMETER = re.compile(r"\bvariables\.(\w+)"), re.compile(r"\bvariables\.params\.(\w+)")
REPLICAS = "@REPLICAS@"


@dataclass(frozen=True)
class Rule:
    """One rule: `id` is its number, `about` one sentence. `advice`: whether it only warns by default.

    `option`: the component that it belongs to; the rule only exists with it, and its values contain the rule's mode.
    """

    name: str
    id: str
    about: str
    advice: bool = False
    option: str = ""


def policy_files() -> list[Path]:
    """The files of the admission policies, one for each rule."""
    return sorted(file for file in (ROOT / "policies").glob("*.yaml") if not file.name.endswith(".cases.yaml"))


def policy(file: Path) -> dict[str, Any]:
    """The complete ValidatingAdmissionPolicy of a rule. Raises TrainyardError for an undefined variable."""
    found = completed(file)
    refusals = [{"expression": "", "message": "", "reason": "Forbidden", **one} for one in found["spec"]["validations"]]
    return {**found, "spec": {"failurePolicy": "Fail", **found["spec"], "validations": refusals}}


def completed(file: Path) -> dict[str, Any]:
    """A file's content with the shared parts filled in. Raises TrainyardError for an undefined variable."""
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
    """Variables of a rule: its parameters, the shared variables that it uses, in their order, then its own."""
    listed: dict[str, str | None] = found.get("variables", {})
    known = shared() | {name: expression for name, expression in listed.items() if expression} | {"params": ""}
    used, waiting = set(), {*listed, *NAMED.findall(str(found["validations"]))}
    while waiting:
        name = waiting.pop()
        if name not in known:
            what = f"the variable {name} has no expression, and {SHARED} has no such variable"
            raise TrainyardError(what, where=str(file.relative_to(ROOT)))
        used.add(name)
        waiting |= {*NAMED.findall(known[name])} - used
    texts = [known[name] for name in used] + [str(found["validations"])]
    known["params"] = json.dumps(dict.fromkeys(sorted(PARAMETER.findall(" ".join(texts))), ""))
    ahead = [name for name in ("params", *shared()) if name in used and name not in listed]
    return [{"name": name, "expression": known[name]} for name in [*ahead, *listed]]


@functools.cache
def shared() -> dict[str, str]:
    """Expressions of the shared variables, by name."""
    listed = yaml.safe_load((ROOT / "policies" / SHARED).read_text())
    return {name: expression.replace(REPLICAS, _replicas()) for name, expression in listed.items()}


@functools.cache
def matching() -> dict[str, dict[str, Any]]:
    """Shared resource rules and match conditions, by name."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "policies" / MATCHING).read_text())
    return found


@functools.cache
def rules() -> tuple[Rule, ...]:
    """All rules, by number."""
    found = []
    for file in policy_files():
        said = yaml.safe_load(file.read_text())
        found.append(Rule(file.stem, said["id"], said["about"], "advice" in said, said.get("option", "")))
    return tuple(sorted(found, key=lambda rule: rule.id))


def advice() -> frozenset[str]:
    """Names of the rules that only warn by default, and protect nothing."""
    return frozenset(rule.name for rule in rules() if rule.advice)


def resource_rules(rule: dict[str, Any]) -> list[dict[str, Any]]:
    """Resource rules of a file as the API server expects them: a chart part's kinds are replaced by their groups."""
    if "kinds" not in rule:
        return [{**rule, "operations": list(rule["operations"])}]
    made = matching()["kinds"].get(rule["kinds"]) or registry.rules(registry.of_part(rule["kinds"]))
    return [ready for one in made for ready in resource_rules({**one, "operations": rule["operations"]})]


def _replicas() -> str:
    """The map of a job's roles, for any kind of job; {} if it has none."""
    keys = [kind.replicas for kind in registry.KINDS if kind.replicas]
    first, *others = [f"variables.spec.?{key}" for key in keys]
    return "\n  ".join([first, *(f".or({one})" for one in others), ".orValue({})"])
