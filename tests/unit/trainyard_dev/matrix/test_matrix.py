"""Tests run on each Kubernetes, ends of support, and the page and the charts derived from them."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.errors import TrainyardError
from trainyard_dev.audit import cli
from trainyard_dev.matrix import page, results, run, support
from trainyard_dev.matrix.results import FAILED, NOT_RUN, PASSED, Result
from trainyard_dev.sync import charts, pages
from trainyard_dev.sync.tree import Difference, Tree

RAW: dict[str, Any] = {
    "components": {"kubernetes": "1.34.2", "argo": "3.7.2"},
    "tools": {
        "kubernetes": {"module": "k8s.io/kubernetes", "version": "v1.34.2"},
        "kubernetes-1.36": {"module": "k8s.io/kubernetes", "version": "v1.36.4", "family": "kubernetes"},
        "argo": {"module": "argo", "version": "v3.7.2"},
        "argo-cli": {"module": "argo", "version": "v3.7.2", "of": "argo"},
        "helm": {"module": "helm", "version": "v3.19.2"},
        "pause": {"module": "trainyard.io/tools/pause", "version": "v3.10.1"},
    },
    "pull": {
        "base-image": "docker.io/library/debian:bookworm-20250520-slim",
        "older-base-image": "docker.io/library/debian:buster-20240612-slim",
    },
}
SUPPORT = """
gone-through: 2026-11-23
kubernetes:
  rule: fourteen months
  source: https://k8s
  minors:
    '1.34': {ends: 2026-10-27, past: still common}
    '1.36': {ends: 2027-06-28}
lines:
  argo: {line: '3.7', ends: over, newest: 4.1.2, rule: two minors, source: 'https://argo', past: no other can be had}
  debian: {line: bookworm, ends: 2027-07-11, rule: three years, source: 'https://debian'}
  debian-older: {line: buster, ends: 2022-09-10, rule: three years, source: 'https://debian', past: a reason}
  helm: {line: '3.19', ends: open, rule: none written, source: 'https://helm'}
fixes: [{kind: a hole, within: 7 days, how: a patch release}]
"""


def result(version: str, result: str = PASSED, **further: Any) -> Result:
    return Result(version, result, "2026-11-23", "abc", **further)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with a chart, support.yaml and results of one minor."""
    monkeypatch.setattr(pages, "read", lambda root: RAW)
    (tmp_path / "charts/one").mkdir(parents=True)
    (tmp_path / "charts/one/Chart.yaml").write_text('name: one\nversion: 1.0.0\nkubeVersion: ">=1.32.0-0"\n')
    (tmp_path / support.FILE).write_text(SUPPORT)
    results.write(tmp_path, {"1.34": {"policies": result("1.34.2", passed=7)}})
    (tmp_path / page.PAGE).write_text(page.render(tmp_path, RAW))
    charts.ceiling(one := Tree(tmp_path))
    one.save()
    return tmp_path


def found(tree: Path) -> list[str]:
    """The findings of `verify` about support: the file's own differences, the page, the charts' newest Kubernetes."""
    pages.write(made := Tree(tree, dry=True))
    charts.ceiling(made)
    return [str(one) for one in [*(Difference(*one) for one in support.differences(tree, RAW)), *made.differences()]]


def change(tree: Path, old: str, new: str) -> None:
    file = tree / support.FILE
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def test_a_tree_that_agrees(tree: Path) -> None:
    assert found(tree) == []


@pytest.mark.parametrize(("old", "new", "message"), [
    ("3.7", "3.6", "argo is 3.7.2, which is not in line 3.6"),
    ("helm:", "other:", "helm v3.19.2 has no entry"),
    ("helm:", "other:", "other has no pin"),
    ("'1.36'", "'1.35'", "Kubernetes 1.36 has no entry"),
    ("2027-06-28", "2026-11-23", "kubernetes 1.36 is no longer supported. upgrade it, or state the reason in `past`"),
    (", past: no other can be had", "", "argo 3.7 is no longer supported"),
    ("2026-10-27", "2026-12-27", "kubernetes 1.34 is supported. remove `past`"),
    ("2027-06-28", "soon", "the file can't be read"),
    ("rule: fourteen months", "", "`rule` is missing"),
])  # fmt: skip
def test_what_is_said_of_support_is_held_against_the_pins(tree: Path, old: str, new: str, message: str) -> None:
    change(tree, old, new)
    assert any(message in line for line in found(tree)), found(tree)


def test_the_page_follows_the_results(tree: Path) -> None:
    results.write(tree, {"1.34": {"policies": result("1.34.2", passed=8)}})
    assert found(tree) == ["docs/support.md: it is not up to date (made again). run `bin/trainyard versions sync`."]


def test_the_page_says_what_ran_what_failed_and_what_did_not_run(tree: Path) -> None:
    results.write(tree, {
        "1.34": {"policies": result("1.34.2", passed=7)},
        "1.36": {"policies": result("1.36.4", FAILED, passed=6, failed=1, failures=["tests.a::b"]),
                 "charts": result("1.36.4", NOT_RUN, why="it can't be built")},
    })  # fmt: skip
    text = page.render(tree, RAW)
    assert "| **1.34**, the test cluster's | 1.34.2 | **2026-10-27** | passed, 7 tests | not run |" in text
    assert "| 1.36 | 1.36.4 | 2027-06-28 | **1 of 7 failed** | not run |" in text
    assert "- policies on 1.36 failed: `tests.a::b`" in text
    assert "- charts on 1.36 did not run: it can't be built" in text
    assert "| argo 3.7.2 | no other can be had |" in text
    assert "below 1.35" in text


@pytest.mark.parametrize(("ended", "ceiling"), [(PASSED, "1.37"), (FAILED, "1.35"), (NOT_RUN, "1.35")])
def test_the_newest_kubernetes_is_the_newest_that_took_the_chart(tree: Path, ended: str, ceiling: str) -> None:
    results.write(tree, {"1.34": {"policies": result("1.34.2")}, "1.36": {"policies": result("1.36.4", ended)}})
    assert results.ceiling(results.read(tree)) == ceiling
    wanted = f">=1.32.0-0 <{ceiling}.0-0"
    stale = [line for line in found(tree) if line.startswith("charts/one/Chart.yaml")]
    assert stale == ([] if ceiling == "1.35" else
                     [f"charts/one/Chart.yaml: it is not up to date (kubeVersion {wanted}). "
                      "run `bin/trainyard versions sync`."])  # fmt: skip
    charts.ceiling(written := Tree(tree))
    written.save()
    assert yaml.safe_load((tree / "charts/one/Chart.yaml").read_text())["kubeVersion"] == wanted


def test_nothing_that_ran_leaves_the_chart_without_a_ceiling() -> None:
    assert results.ceiling({"1.36": {"charts": result("1.36.4")}}) == ""


def test_results_that_are_broken_are_refused(tree: Path) -> None:
    (tree / results.FILE).write_text('{"1.34": {"policies": {"version": 1}}}')
    with pytest.raises(TrainyardError, match="make matrix"):
        results.read(tree)


CASES = '<testsuite><testcase classname="a" name="x"/><testcase classname="a" name="y">{}</testcase></testsuite>'


@pytest.mark.parametrize(("inner", "code", "ended", "counts"), [
    ("", 0, PASSED, (2, 0, 0)),
    ("<skipped/>", 0, PASSED, (1, 0, 1)),
    ("<failure/>", 1, FAILED, (1, 1, 0)),
    ("<error/>", 1, FAILED, (1, 1, 0)),
    ("", 2, FAILED, (2, 0, 0)),
])  # fmt: skip
def test_a_group_passes_when_all_that_ran_passed(inner: str, code: int, ended: str, counts: tuple[int, ...]) -> None:
    one = run.counted(CASES.format(inner), code, "1.36.4", 3)
    assert (one.result, (one.passed, one.failed, one.skipped)) == (ended, counts)
    assert one.failures == (["a::y"] if counts[1] else [])


def test_a_group_in_which_nothing_ran_has_not_passed() -> None:
    assert run.counted("<testsuite/>", 0, "1.36.4", 0).result == FAILED


def test_what_can_not_be_built_takes_no_result_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(name: str, version: str = "") -> Path:
        raise TrainyardError("the module can't be had")

    monkeypatch.setattr(run.tools, "binary", refused)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    before = result("1.36.3", passed=9)
    matrix = {"1.36": {"policies": before}}
    seen = list(run.groups(matrix, {"1.36": "1.36.4"}, ["policies", "charts"]))
    assert [one.result for _, _, one in seen] == [NOT_RUN, NOT_RUN]
    assert matrix["1.36"]["policies"] == before
    assert results.read(tmp_path)["1.36"]["charts"].why == "the module can't be had."


SUMMARY = {
    "versions": {"kubernetes": "1.36.4"}, "ended": 1795436851.3, "seconds": 1641.2,
    "checks": [{"id": "cluster.up", "status": "passed"}, {"id": "train.cpu", "status": "passed"},
               {"id": "upgrade.diff", "status": "failed"}],
}  # fmt: skip


@pytest.mark.parametrize(("status", "ended", "failures"), [
    ("passed", PASSED, []), ("failed", FAILED, ["train.cpu"]), ("skipped", FAILED, ["train.cpu"]),
])  # fmt: skip
def test_the_main_job_is_taken_from_a_finished_run(
    tmp_path: Path, status: str, ended: str, failures: list[str]
) -> None:
    file = tmp_path / "summary.json"
    file.write_text(
        json.dumps(SUMMARY).replace('"train.cpu", "status": "passed"', f'"train.cpu", "status": "{status}"')
    )
    minor, one = run.main_job(file, {"cluster.up", "train.cpu"})
    assert (minor, one.version, one.result, one.failures, one.seconds) == ("1.36", "1.36.4", ended, failures, 1641)
    assert one.day == datetime.date.fromtimestamp(1795436851).isoformat()


def test_a_run_of_some_checks_is_no_main_job(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    file.write_text(json.dumps(SUMMARY))
    with pytest.raises(TrainyardError, match=r"the run left out gang\.refused\. run `make e2e` without ONLY"):
        run.main_job(file, {"cluster.up", "gang.refused"})


def test_an_unknown_minor_is_refused(trainyard: Callable[..., Any]) -> None:
    done = trainyard("matrix", "run", "--kubernetes", "1.2")
    assert done.code == 2
    assert "no tool set builds Kubernetes 1.2" in done.error()


def test_what_leaves_its_support_later_is_a_finding_of_the_audit(tree: Path) -> None:
    raw = RAW | {"debian": {"packages": "2027-07-01"}}

    def ended(day: str) -> list[str]:
        return [line.split()[0] for line in cli.past_support(tree, raw, datetime.date.fromisoformat(day))]

    assert ended("2026-11-24") == []
    assert ended("2027-06-28") == ["kubernetes"]
    assert ended("2027-07-11") == ["debian", "kubernetes"]
