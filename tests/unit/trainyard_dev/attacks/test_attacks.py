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
from trainyard_dev.sync import pages
from trainyard_dev.sync.tree import Tree

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


def test_there_are_attempts_of_every_rule_and_every_one_says_what_it_wins() -> None:
    found = attempts.attempts()
    assert len(found) >= 90
    guards = {one.guard for one in found}
    assert {one.name for one in rules.rules() if not one.advice} <= guards, "advice refuses nothing"
    assert all(one.wins and one.tried and one.who for one in found)


def test_of_cases_that_stand_for_many_kinds_one_is_tried() -> None:
    listed = [case for case in cases("node-name") if not case.allowed]
    kept = list(attempts.chosen(listed))
    assert len(kept) < len(listed)
    names = [name for _, name in kept]
    assert len(names) == len(set(names))
    assert [case.base for case, _ in kept if case.of == "templates"] == ["vcjob"]


def test_a_finding_that_names_no_case_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (attempts.ASSETS / "findings.yaml").read_text()
    (tmp_path / "findings.yaml").write_text(text.replace("- a pod for the control plane", "- a pod for the moon"))
    (tmp_path / "requests.yaml").write_text("[]")
    monkeypatch.setattr(attempts, "ASSETS", tmp_path)
    with pytest.raises(TrainyardError, match=r"no case is gpu-toleration: a pod for the moon"):
        attempts.attempts()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[{id: x, as: member, tried: t, wins: w}]", "x is no attempt"),
        ("[{id: x, as: nobody, tried: t, wins: w, of: claim}]", "x is no attempt"),
        ("[{id: x, as: member, tried: t, of: claim}]", "x wins nothing"),
        (
            "[{id: x, as: member, tried: t, wins: w, of: claim}, {id: x, as: member, tried: t, wins: w, of: claim}]",
            "two",
        ),
    ],
)
def test_a_request_that_is_none_is_reported(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "findings.yaml").write_text((attempts.ASSETS / "findings.yaml").read_text())
    (tmp_path / "requests.yaml").write_text(text)
    monkeypatch.setattr(attempts, "ASSETS", tmp_path)
    with pytest.raises(TrainyardError, match=says):
        attempts.attempts()


def test_a_request_changes_a_base_as_a_case_does() -> None:
    [one] = [one for one in attempts.attempts() if one.id == "pod-security.host-network"]
    assert isinstance(one.what, Case)
    assert one.kind == "Pod" and one.what.change == {"/spec/hostNetwork": True}


def outcome(id: str, before: str, now: Verdict, finding: str = "", refusers: tuple[str, ...] = ()) -> results.Outcome:
    return results.Outcome(id, "a member", "tries | it", "much", finding, now.guard or "node-name", "", Verdict(before),
                           now, list(refusers))  # fmt: skip


@pytest.fixture
def report() -> results.Report:
    """One hole that is shut by one guard, one border that two hold."""
    shut = outcome("a", ADMITTED, Verdict(REFUSED, "node-name", "set it"), "F1", ("node-name",))
    both = outcome("b", REFUSED, Verdict(REFUSED, "RBAC", "cannot"), "", ("RBAC", "node-name"))
    versions = results.Version("0.2.0", "abc"), results.Version("0.3.0", "def")
    return results.Report("2026-11-23", *versions, "1.34.2", ["F1"], ["node-name"], [shut, both])


def test_nothing_is_wrong_with_a_hole_that_one_guard_shuts(report: results.Report) -> None:
    assert results.problems(report) == []


@pytest.mark.parametrize("now", [Verdict(ADMITTED), Verdict(NOT_BEGUN, words="no room")])
def test_what_is_let_through_is_a_problem(report: results.Report, now: Verdict) -> None:
    open_ = dataclasses.replace(report, outcomes=[outcome("a", ADMITTED, now, "F1"), *report.outcomes])
    assert any(line.startswith(f"a is {now.outcome} now") for line in results.problems(open_))


def test_another_guard_and_other_words_are_problems(report: results.Report) -> None:
    first, second = report.outcomes
    other = [dataclasses.replace(first, guard="api-token"), dataclasses.replace(second, says="never said")]
    assert results.problems(dataclasses.replace(report, outcomes=other)) == [
        "a is refused by node-name, not by api-token: set it",
        "b is refused in other words: cannot",
    ]


def test_a_hole_and_a_guard_that_nothing_shows_are_problems(report: results.Report) -> None:
    lacking = dataclasses.replace(report, findings=["F1", "F2"], guards=["node-name", "RBAC"])
    assert results.problems(lacking) == ["no attempt shows that F2 is shut", "no attempt is refused by RBAC alone"]


def test_a_report_is_read_as_it_was_written(report: results.Report, tmp_path: Path) -> None:
    results.write(tmp_path, report)
    assert results.read(tmp_path) == report


def test_a_file_that_is_no_report_is_named(tmp_path: Path) -> None:
    (tmp_path / results.FILE).parent.mkdir(parents=True)
    (tmp_path / results.FILE).write_text(json.dumps({"day": "2026-11-23"}))
    with pytest.raises(TrainyardError, match=r"results\.json: the file can't be read"):
        results.read(tmp_path)


def test_the_page_has_each_attempt_once_with_both_verdicts(report: results.Report) -> None:
    text = page.render(report)
    assert "2 attempts: 0.2.0 let 1 through, this version 0. 1 that succeeded there are refused here." in text
    assert text.count("| `a`: tries \\| it | a member | **admitted** | `node-name`: set it |") == 1
    assert text.count("| `b`: tries \\| it | a member | much | ") == 1
    assert "| `node-name` | 2 | 1 | `a`: tries \\| it |" in text


def test_the_terminal_names_what_is_wrong_last(report: results.Report) -> None:
    assert list(page.terminal(report))[-1].startswith("2 attempts")
    lacking = dataclasses.replace(report, findings=["F2"])
    assert list(page.terminal(lacking))[-1] == "no attempt shows that F2 is shut"


def test_verify_finds_a_page_that_is_not_of_the_results(report: results.Report, tmp_path: Path) -> None:
    def said() -> list[str]:
        pages.write(tree := Tree(tmp_path, dry=True))
        return [f"{one.file}: {one.what}" for one in tree.differences()]

    assert said() == []
    results.write(tmp_path, report)
    assert said() == [f"{page.PAGE}: it is not up to date (made again)"]
    (tmp_path / page.PAGE).write_text(page.page(tmp_path))
    assert said() == []
    (tmp_path / results.FILE).write_text("{}")
    [broken] = said()
    assert broken.startswith(page.PAGE) and "can't be read" in broken
