"""Attempts, verdicts and the page of `make attacks`, without an API server."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard.policy import rules
from trainyard_dev.apiserver import Answer
from trainyard_dev.attacks import attempts, page, results
from trainyard_dev.attacks.guards import ADMITTED, NOT_BEGUN, REFUSED, Verdict, all_refusers, refused_by, verdict
from trainyard_dev.policy.cases import Case, cases

DENIED = (
    "pods \"case\" is forbidden: ValidatingAdmissionPolicy 'trainyard-node-name' with binding 'trainyard-node-name' "
    "denied request: the pod names a node"
)
WARNED = "Validation failed for ValidatingAdmissionPolicy '{0}' with binding '{0}': no"
REFUSALS = {
    DENIED: ("node-name", "the pod names a node"),
    'secrets "s3" is forbidden: User "ada" cannot get resource "secrets" in API group ""': (
        "RBAC",
        'User "ada" cannot get resource "secrets" in API group ""',
    ),
    'pods "case" is forbidden: violates PodSecurity "restricted:latest": host namespaces': (
        "Pod Security",
        'violates PodSecurity "restricted:latest": host namespaces',
    ),
    'pods "case" is forbidden: exceeded quota: team, requested: pods=1': (
        "ResourceQuota",
        "exceeded quota: team, requested: pods=1",
    ),
    "maximum storage usage per PersistentVolumeClaim is 100Gi": (
        "LimitRange",
        "maximum storage usage per PersistentVolumeClaim is 100Gi",
    ),
    "spec.x:\u0001Invalid\n value": ("the API server", "spec.x: Invalid value"),
}


def refusal(message: str, status: int = 403, warnings: tuple[str, ...] = ()) -> Answer:
    return Answer(status, {"message": message}, warnings)


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_names_its_guard_and_its_words(message: str) -> None:
    assert refused_by(refusal(message)) == REFUSALS[message]


def test_what_is_not_there_has_passed_every_guard() -> None:
    for status in (404, 409, 503):
        assert verdict(refusal('pods "etcd" not found', status)).outcome == ADMITTED
    assert verdict(Answer(201)).outcome == ADMITTED
    assert verdict(refusal(DENIED)) == Verdict(REFUSED, "node-name", "the pod names a node")


def test_every_policy_that_warns_is_a_refuser() -> None:
    answer = Answer(
        201, {}, (WARNED.format("trainyard-node-name"), WARNED.format("trainyard-api-token"), "unknown field")
    )
    assert all_refusers("node-name", answer, "Pod") == ["api-token", "node-name"]


def test_pod_security_refuses_pods_and_only_warns_of_templates() -> None:
    answer = Answer(201, {}, ('would violate PodSecurity "restricted:latest": hostPath volumes',))
    assert all_refusers("Pod Security", answer, "Pod") == ["Pod Security"]
    assert all_refusers("volume-types", answer, "Deployment") == ["volume-types"]


def test_rights_that_were_lacking_count_although_they_were_given() -> None:
    assert all_refusers("RBAC", Answer(200), "") == ["RBAC"]
    assert all_refusers("", Answer(200), "") == []
    assert all_refusers("RBAC", Answer(201, {}, (WARNED.format("trainyard-operators"),)), "") == ["RBAC", "operators"]


def test_a_quota_refuses_beside_policies_that_warn() -> None:
    answer = refusal("x is forbidden: exceeded quota: team", warnings=(WARNED.format("trainyard-replicas"),))
    assert all_refusers("replicas", answer, "Job") == ["ResourceQuota", "replicas"]


def test_there_are_attempts_of_every_rule_and_every_one_says_who_tries_what() -> None:
    found = attempts.attempts()
    assert len(found) >= 90
    guards = {one.guard for one in found}
    assert {one.name for one in rules.rules() if not one.advice} <= guards, "advice refuses nothing"
    assert all(one.tried and one.who for one in found)


def test_of_cases_that_stand_for_many_kinds_one_is_tried() -> None:
    listed = [case for case in cases("node-name") if not case.allowed]
    kept = list(attempts.chosen(listed))
    assert len(kept) < len(listed)
    names = [name for _, name in kept]
    assert len(names) == len(set(names))
    assert [case.base for case, _ in kept if case.of == "templates"] == ["vcjob"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[{id: x, as: member, tried: t}]", "x is no attempt"),
        ("[{id: x, as: nobody, tried: t, of: claim}]", "x is no attempt"),
        ("[{id: x, as: member, tried: t, wins: w, of: claim}]", "x is no attempt"),
        (
            "[{id: x, as: member, tried: t, of: claim}, {id: x, as: member, tried: t, of: claim}]",
            "two",
        ),
    ],
)
def test_a_request_that_is_none_is_reported(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requests.yaml").write_text(text)
    monkeypatch.setattr(attempts, "ASSETS", tmp_path)
    with pytest.raises(TrainyardError, match=says):
        attempts.attempts()


def test_a_request_changes_a_base_as_a_case_does() -> None:
    [one] = [one for one in attempts.attempts() if one.id == "pod-security.host-network"]
    assert isinstance(one.what, Case)
    assert one.kind == "Pod" and one.what.change == {"/spec/hostNetwork": True}


def outcome(id: str, found: Verdict, *refusers: str) -> results.Outcome:
    return results.Outcome(id, "a member", "tries | it", found.guard or "node-name", "", found, list(refusers))


@pytest.fixture
def report() -> results.Report:
    """An attempt that one guard refuses, and one that two refuse."""
    one = outcome("a", Verdict(REFUSED, "node-name", "set it"), "node-name")
    both = outcome("b", Verdict(REFUSED, "RBAC", "cannot"), "RBAC", "node-name")
    return results.Report("2026-11-23", "0.3.0", "def", "1.34.2", ["node-name"], [one, both])


def test_nothing_is_wrong_with_attempts_that_their_guards_refuse(report: results.Report) -> None:
    assert results.problems(report) == []


@pytest.mark.parametrize("found", [Verdict(ADMITTED), Verdict(NOT_BEGUN, words="no room")])
def test_what_is_let_through_is_a_problem(report: results.Report, found: Verdict) -> None:
    through = dataclasses.replace(report, outcomes=[outcome("a", found), *report.outcomes])
    assert any(line.startswith(f"a is {found.outcome}") for line in results.problems(through))


def test_another_guard_and_other_words_are_problems(report: results.Report) -> None:
    first, second = report.outcomes
    other = [dataclasses.replace(first, guard="api-token"), dataclasses.replace(second, says="never said")]
    assert results.problems(dataclasses.replace(report, outcomes=other)) == [
        "a is refused by node-name, not by api-token: set it",
        "b is refused in other words: cannot",
    ]


def test_a_guard_that_nothing_shows_is_a_problem(report: results.Report) -> None:
    lacking = dataclasses.replace(report, guards=["node-name", "RBAC"])
    assert results.problems(lacking) == ["no attempt is refused by RBAC alone"]


def test_a_report_is_read_as_it_was_written(
    report: results.Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FILE", tmp_path / "attacks" / "results.json")
    with pytest.raises(TrainyardError, match=r"there are no results of attacks: .* run `make attacks`"):
        results.read()
    results.write(report)
    assert results.read() == report
    results.FILE.write_text(json.dumps({"day": "2026-11-23"}))
    with pytest.raises(TrainyardError, match=r"there are no results of attacks"):
        results.read()


def test_the_page_has_each_attempt_once_with_its_verdict(report: results.Report) -> None:
    text = page.render(report)
    assert "2 attempts, 0 let through." in text and "(commit def)" in text
    assert text.count("| `a`: tries \\| it | a member | `node-name`: set it |") == 1
    assert text.count("| `b`: tries \\| it | a member | RBAC: cannot |") == 1
    assert "| `node-name` | 2 | 1 | `a`: tries \\| it |" in text


def test_the_terminal_names_what_is_wrong_last(report: results.Report) -> None:
    assert list(page.terminal(report))[-1] == "2 attempts, 0 let through."
    lacking = dataclasses.replace(report, guards=["RBAC"])
    assert list(page.terminal(lacking))[-1] == "no attempt is refused by RBAC alone"
