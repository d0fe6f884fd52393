"""The policies evaluated offline agree with the API server: every case of the rules, both ways."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from policy_site import BARE, KEPT, SITE

from trainyard.policy import fill, offline, rules
from trainyard_dev.policy import cases


def request(case: Any) -> offline.Request:
    """The case as a request, with what the API server would fill in."""
    own = {"bare": BARE, "kept": KEPT, "default": None, cases.SYSTEM: None}
    team = own[case.namespace] if case.namespace in own else SITE.team(case.namespace)
    who = cases.WHO[case.who]
    member = case.who in ("member", "speech-member")
    requester = offline.Requester(
        who.user if who else "admin", SITE.team("vision").queues if member else (), who is None
    )
    base = copy.deepcopy(cases.bases()[case.base])
    base["metadata"]["namespace"] = case.namespace
    obj, old = cases.changed(base, case.change), None
    if case.update is not None:
        old = cases.changed(base, case.begin)
        obj = cases.changed(old, case.update)
        old = offline.defaulted(old, team)
    return offline.Request(offline.defaulted(obj, team), requester, team, old, case.sub)


ALL = [case for rule in cases.rules() for case in cases.cases(rule) if case.delete is None]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_case(case: Any) -> None:
    found = offline.violations(request(case), SITE)
    if case.allowed:
        assert not found
    else:
        assert case.rule in {one.rule for one in found}
        assert case.says in " / ".join(one.message for one in found if one.rule == case.rule)


@pytest.mark.parametrize("case", [case for case in ALL if case.update is None and not case.sub], ids=str)
def test_case_once_more_after_filling_in(case: Any) -> None:
    """Allowed objects stay unchanged, except the queue of a Workflow's steps; incomplete ones pass."""
    asked = request(case)
    if asked.team is None:
        return
    made = fill.filled(asked.obj, SITE, asked.team, asked.requester.user)
    if case.allowed:
        assert made.names == (("queue",) if case.base.endswith("workflow") and made.names else ())
    else:
        found = {one.rule for one in offline.violations(replace(asked, obj=made.obj), SITE)}
        advice = {one.name for one in rules.rules() if one.advice and one.name != case.rule}
        assert (found - advice == set()) == case.filled


def test_a_rule_that_is_off_says_nothing() -> None:
    case = next(case for case in cases.cases("node-name") if not case.allowed)
    off = replace(SITE, modes={**SITE.modes, "node-name": "off"})
    assert offline.violations(request(case), SITE) and not offline.violations(request(case), off)


def test_the_place_that_a_message_speaks_of() -> None:
    case = next(case for case in cases.cases("image-source") if case.name == "a PyTorchJob")
    (found,) = offline.violations(request(case), SITE)
    assert found.path is not None
    assert found.path[:4] == ("spec", "pytorchReplicaSpecs", "Worker", "template") and found.path[-1] == "image"
