"""Lint refuses what admission would refuse: each case of the rules, of a kind that users submit."""

import copy
from dataclasses import replace
from typing import Any

import policy_site
import pytest
from policy_site import BARE, KEPT

from trainyard.pipelines import lint
from trainyard.policy.lint import shapes
from trainyard.policy.lint.codes import registry, rule_codes
from trainyard_dev.policy import cases

SITE = replace(policy_site.SITE, teams={**policy_site.SITE.teams, "bare": BARE, "kept": KEPT})
NAMED = ("notebook-hub", "notebook-names")
PEOPLE = ("member", "speech-member", "editor")


def _submitted(case: Any) -> bool:
    """A request that people make: no change, no work of a controller, no kind of an administrator."""
    kind = shapes.kind(cases.bases()[case.base])
    alone = case.update is None and case.delete is None and not case.sub and case.who in PEOPLE
    alone = alone and case.namespace in SITE.teams  # elsewhere lint asks no rule
    alone = alone and case.rule not in NAMED  # which ask who sends, and a file says nothing of that
    return alone and kind in shapes.known() and "may not use queue" not in case.says


def _object(case: Any) -> dict[str, Any]:
    base = copy.deepcopy(cases.bases()[case.base])
    base["metadata"]["namespace"] = case.namespace
    return cases.changed(base, case.change)


ALL = [case for rule in cases.rules() for case in cases.cases(rule) if _submitted(case)]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_case(case: Any) -> None:
    found = lint.manifest(_object(case), lint.site(SITE))
    errors = [one for one in found if one.severity is lint.Severity.ERROR]
    if case.allowed:
        # The pods of a workflow need a queue, too, which `trainyard submit` writes; the cases are about the workflow.
        # What operators ask for is no rule's business: the cases call every container pytorch. Nor are rights: the
        # editor of the cases may create what members may not.
        # Nor are nodes: the contract of the cases has not all the pools that the namespace `kept` names.
        others = ("TY109", "TY110", "TY408", *(["p03"] if case.base == "workflow" else []))
        assert not [one for one in errors if one.code not in others]
        return
    mine = [one for one in errors if one.policy == case.rule and one.code == rule_codes()[case.rule]]
    reported = " / ".join(f"{one.reason}: {one.hint} / {one.reason}. {one.hint}" for one in mine)
    shape = [one for one in errors if one.code in ("TY105", "TY601")]  # told as what it is before a rule is asked
    assert case.says.rstrip(".") in reported or (not mine and shape), errors
    assert all(one.field and one.reason and one.hint for one in errors)


def test_every_rule_about_what_users_submit_has_a_case_here() -> None:
    asked = {case.rule for case in ALL if not case.allowed}
    others = {"cluster-admin", "namespace-guard", "volume-source"}  # of administrators
    others |= {"class-namespace"}  # outside of teams
    others |= {*NAMED, "server-endpoint"}  # of people, and of kinds that lint doesn't know
    assert asked == set(cases.rules()) - others
    assert {code.policy for code in registry().values() if code.policy} == set(cases.rules())


def test_a_rule_that_only_warns_is_a_warning() -> None:
    case = next(case for case in ALL if case.rule == "node-name" and not case.allowed)
    quiet = replace(SITE, modes={**SITE.modes, "node-name": "warn"})
    (found,) = [one for one in lint.manifest(_object(case), lint.site(quiet)) if one.policy == "node-name"]
    assert found.severity is lint.Severity.WARNING
