"""What members leave open: filled in by a real API server with the mutating policies, and by `trainyard adopt` alike.

The rules' own cases run without these policies (test_policies.py); here they are asked again with them.
"""

import copy
from typing import Any

import pytest
from filled_in import NEEDS_MUTATING, create, plain, titled, told

from trainyard.contract import Contract
from trainyard.policy import fill
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.policy.cases import ask, cases, rules
from trainyard_dev.policy.child_objects import child_objects

pytestmark = NEEDS_MUTATING

OWN = ("uid", "creationTimestamp", "managedFields", "generation", "resourceVersion", "selfLink", "name")
NOTES = (fill.TOLD, "kubernetes.io/limit-ranger")
PLAIN = pytest.mark.parametrize("manifest", plain(), ids=titled)


def same(body: dict[str, Any]) -> dict[str, Any]:
    """An object without what is each object's own, and without the order of tolerations."""
    done: dict[str, Any] = copy.deepcopy(body)
    done["metadata"] = {key: value for key, value in done["metadata"].items() if key not in OWN}
    notes = done["metadata"].pop("annotations", {})
    done["metadata"]["annotations"] = {key: value for key, value in notes.items() if key not in NOTES}
    tolerations = done.get("spec", {}).get("tolerations") if done["kind"] == "Pod" else None
    if tolerations:
        tolerations.sort(key=lambda one: one["key"])
    for volume in done.get("spec", {}).get("volumes", []) if done["kind"] == "Pod" else []:
        volume["name"] = volume["name"].split("kube-api-access")[0] or "token"
    if done["kind"] == "Job":  # what its controller finds its pods by
        done["metadata"].pop("labels", None)
        done["spec"].pop("selector", None)
        done["spec"].get("template", {}).get("metadata", {}).pop("labels", None)
    return done


@PLAIN
def test_a_plain_manifest_is_taken_and_says_what_was_filled_in(filling: ApiServer, manifest: dict[str, Any]) -> None:
    answer = create(filling, manifest)
    assert answer.ok, answer.message
    assert told(answer)


@PLAIN
def test_without_the_mutating_policies_it_is_refused(server: ApiServer, manifest: dict[str, Any]) -> None:
    """So that the test above can't pass for manifests that need nothing."""
    assert not create(server, manifest).ok


@PLAIN
def test_adopt_does_the_same(filling: ApiServer, server: ApiServer, site: Contract, manifest: dict[str, Any]) -> None:
    """One manifest, sent as it is and sent after `adopt`, is one and the same object; adopted, it lacks nothing."""
    sent = create(filling, manifest)
    adopted = fill.filled(manifest, site, site.team("vision"))
    again, elsewhere = create(filling, adopted.obj), create(server, adopted.obj)
    assert again.ok and elsewhere.ok, again.message or elsewhere.message
    assert told(again) == told(elsewhere) == list(adopted.names), "adopt has noted it, and nothing is left"
    assert same(sent.body) == same(again.body) == same(elsewhere.body)
    by_limits = ["resources"] if manifest["kind"] == "Pod" else []  # the team's LimitRange was there first
    assert [one for one in adopted.names if one in told(sent) or one not in by_limits] == told(sent)


@PLAIN
def test_what_controllers_make_of_it_is_taken(filling: ApiServer, site: Contract, manifest: dict[str, Any]) -> None:
    made = create(filling, manifest).body
    for child, maker in child_objects(made, site):
        answer = filling.create(child, identity=maker, dry_run=True)
        assert answer.ok, answer.message
        assert told(answer) == [], "the job's template had it all"


@pytest.mark.parametrize("rule", rules())
def test_what_the_rules_take_is_left_alone_and_what_they_refuse_stays_refused(filling: ApiServer, rule: str) -> None:
    """Of the cases of a rule only those that say `filled` are taken now: what was missing there was filled in."""
    wrong = []
    for case in cases(rule):
        if case.update is not None or case.delete is not None:
            continue
        answer = ask(filling, case)
        if case.allowed:
            # A Workflow without a queue is taken, and its steps would not be.
            due = (["queue"], []) if case.base.endswith("workflow") else ([],)
            if not answer.ok or told(answer) not in due:
                wrong.append(f"{case}: {answer.message or told(answer)}")
        elif answer.ok != case.filled:
            wrong.append(f"{case}: {'taken, with ' + ', '.join(told(answer)) if answer.ok else answer.message}")
    assert "\n".join(wrong) == ""


def test_nothing_is_filled_in_outside_of_teams(filling: ApiServer) -> None:
    pod = next(one for one in plain() if titled(one) == "Pod-cpu-pod")
    answer = create(filling, pod, "admin", "default")
    assert answer.ok and not told(answer)


def test_no_policy_has_type_warnings_at_creation(filling: ApiServer) -> None:
    """Each is there and compiles: a policy that doesn't would silently fill in nothing."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    names = {one["metadata"]["name"] for one in filling.call("GET", path).body["items"]}
    assert names == {f"{fill.PREFIX}{group.name}" for group in fill.groups()}
