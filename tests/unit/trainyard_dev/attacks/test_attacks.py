"""Attempts, verdicts and results of `make attacks`, without an API server."""

import dataclasses
import json
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard.policy import rules
from trainyard_dev.apiserver import Answer
from trainyard_dev.attacks import attempts, results
from trainyard_dev.attacks.guards import ADMITTED, NOT_BEGUN, REFUSED, Verdict, refused_by, verdict
from trainyard_dev.policy.cases import Case

DENIED = (
    "pods \"case\" is forbidden: ValidatingAdmissionPolicy 'trainyard-node-name' with binding 'trainyard-node-name' "
    "denied request: the pod names a node"
)
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


def refusal(message: str, status: int = 403) -> Answer:
    return Answer(status, {"message": message})


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_names_its_guard_and_its_words(message: str) -> None:
    assert refused_by(refusal(message)) == REFUSALS[message]


def test_what_is_not_there_has_passed_every_guard() -> None:
    for status in (404, 409, 503):
        assert verdict(refusal('pods "etcd" not found', status)).outcome == ADMITTED
    assert verdict(Answer(201)).outcome == ADMITTED
    assert verdict(refusal(DENIED)) == Verdict(REFUSED, "node-name", "the pod names a node")


def test_there_are_attempts_of_every_rule_and_for_each_kind() -> None:
    found = attempts.attempts()
    assert len(found) > 780
    assert {one.name for one in rules.rules() if not one.advice} <= {one.guard for one in found}, (
        "advice refuses nothing"
    )
    assert all(one.tried and one.who for one in found)
    kinds = {one.what.base for one in found if isinstance(one.what, Case) and one.guard == "node-name"}
    assert {"vcjob", "pytorchjob", "job"} <= kinds


def test_what_no_rule_refuses_says_by_which_words_but_for_rbac() -> None:
    found = [one for one in attempts.attempts() if not isinstance(one.what, Case) or not one.what.rule]
    assert len(found) == 146 and [one.id for one in found if not one.says and one.guard != "RBAC"] == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{RBAC: {member: {x: {of: claim}}}}", "x is not an attempt"),
        ("{RBAC: {nobody: {x: {tried: t}}}}", "x is not an attempt"),
        ("{RBAC: {member: {x: {tried: t, of: claim, request: GET /}}}}", "x is not an attempt"),
        ("{RBAC: {member: {x: {tried: t}}, viewer: {x: {tried: t}}}}", "two attempts have the name x"),
    ],
)
def test_an_attempt_that_is_none_is_reported(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "guards.cases.yaml"
    file.write_text(text)
    with pytest.raises(TrainyardError, match=says):
        attempts.attempts(file)


def test_an_attempt_changes_a_base_as_a_case_does() -> None:
    [one] = [one for one in attempts.attempts() if one.id == "pod-security.host-network"]
    assert isinstance(one.what, Case)
    assert (one.what.base, one.what.change) == ("cpu-pod", {"/spec/hostNetwork": True})


def outcome(id: str, now: Verdict) -> results.Outcome:
    return results.Outcome(id, "member", "tries | it", now.guard or "node-name", "", now)


@pytest.fixture
def report() -> results.Report:
    """Two borders that stood."""
    one = outcome("a", Verdict(REFUSED, "node-name", "set it"))
    two = outcome("b", Verdict(REFUSED, "RBAC", "cannot"))
    return results.Report("abc", "1.34.2", 7, ["node-name", "RBAC"], [one, two])


def test_nothing_is_wrong_with_borders_that_stood(report: results.Report) -> None:
    assert results.problems(report) == []
    assert results.counts(report) == "2 attempts on 2 guards in 7 s, 0 let through"


@pytest.mark.parametrize("now", [Verdict(ADMITTED), Verdict(NOT_BEGUN, words="no room")])
def test_what_is_let_through_is_a_problem(report: results.Report, now: Verdict) -> None:
    open_ = dataclasses.replace(report, outcomes=[outcome("a", now), *report.outcomes])
    assert any(line.startswith(f"a is {now.outcome}") for line in results.problems(open_))
    assert results.counts(open_).endswith("1 let through")


def test_another_guard_and_other_words_are_problems(report: results.Report) -> None:
    first, second = report.outcomes
    other = [dataclasses.replace(first, guard="api-token"), dataclasses.replace(second, says="never said")]
    assert results.problems(dataclasses.replace(report, guards=[], outcomes=other)) == [
        "a is refused by node-name, not by api-token: set it",
        "b is refused with another message: cannot",
    ]
    anybody = dataclasses.replace(report, outcomes=[dataclasses.replace(first, guard=attempts.ANY), second], guards=[])
    assert results.problems(anybody) == []


def test_a_guard_that_nothing_shows_is_a_problem(report: results.Report) -> None:
    lacking = dataclasses.replace(report, guards=["node-name", "Pod Security"])
    assert results.problems(lacking) == ["no attempt tests Pod Security"]


def test_a_report_is_read_as_it_was_written(report: results.Report, tmp_path: Path) -> None:
    results.write(tmp_path, report)
    assert results.read(tmp_path) == report


def test_a_file_that_is_no_report_is_named(tmp_path: Path) -> None:
    (tmp_path / results.FILE).parent.mkdir(parents=True)
    (tmp_path / results.FILE).write_text(json.dumps({"commit": "abc"}))
    with pytest.raises(TrainyardError, match=r"results\.json: the file can't be read"):
        results.read(tmp_path)


def test_the_page_has_each_attempt_once(report: results.Report) -> None:
    text = results.page(report)
    assert "2 attempts on 2 guards in 7 s, 0 let through." in text and "commit abc" in text
    assert text.count("| `a`: tries \\| it | member | set it |") == 1
    assert text.index("## node-name") < text.index("`a`") < text.index("## RBAC") < text.index("`b`")
