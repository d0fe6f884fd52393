"""Checks by group in the report, and the table of attacks tried and refused."""

import re
from html import unescape

import pytest
from report_runs import run_of

from trainyard_dev.report import Check, console, groups, html
from trainyard_dev.report.sample import sample

REFUSED = Check(
    "attack.priority", "A class of others", "passed", "", 0.2,
    {"who": "member of speech", "tried": "a pod of high class", "refused_by": "quota", "message": "exceeded <it>"},
)  # fmt: skip
THEFT = Check("attack.secret", "Another team's Secret", "failed", "the Secret could be read", 0.1, {"who": "viewer"})


def rows(page: str, check: str) -> list[str]:
    """Texts of the cells of a check's row, every one of them: a row twice on the page is a mistake."""
    (row,) = re.findall(rf'<tr role="row" id="{check}">(.*?)</tr>', page, re.S)
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
    return [unescape(re.sub(r"<[^>]+>", "", cell)) for cell in cells]


def test_an_attack_is_reported_by_who_what_and_by_whom_it_was_refused() -> None:
    page = html.render(run_of(REFUSED))
    assert "Attacks tried and refused" in page
    assert rows(page, "attack.priority") == [
        "priority", "\u2713 refused", "member of speech", "a pod of high class", "quota", "exceeded <it>",
    ]  # fmt: skip


def test_an_attack_that_was_not_refused_does_not_look_refused() -> None:
    page = html.render(run_of(THEFT))
    assert rows(page, "attack.secret") == [
        "secret", "\u2717 not refused", "viewer", "Another team's Secret", "", "the Secret could be read",
    ]  # fmt: skip
    assert "0 of 1 refused" in page
    claimed = Check("attack.x", "t", "failed", "it was let through", 0, {"refused_by": "quota", "message": "no"})
    assert groups.refusal(claimed)["refused_by"] == ""
    assert groups.refusal(claimed)["message"] == "it was let through"


def test_a_run_without_attacks_has_no_table_of_them() -> None:
    page = html.render(run_of(Check("a.b", "t", "passed")))
    assert "Attacks" not in page


def test_groups_have_titles_and_counts_on_page_and_console() -> None:
    run = sample(failing=True)
    page, text = html.render(run), console.render(run, width=100)
    for group, checks in groups.grouped(run.checks).items():
        assert f"{groups.title(group)} ({groups.passed_of(checks)})" in text
        assert groups.title(group) in page
        assert groups.passed_of(checks) in page
    assert "Training (4 of 5 passed)" in text
    assert "refused by admission policy" in text
    assert "forbidden" not in text, "the whole message is for the page"


@pytest.mark.parametrize("group", ["upgrade", "uninstall", "airgap", "teams", "policies", "attack"])
def test_the_platforms_promises_have_titles_of_their_own(group: str) -> None:
    assert group in groups.TITLES


def test_groups_keep_the_order_of_the_run_and_an_unknown_one_its_name() -> None:
    checks = [Check(name, "t", "passed") for name in ("teams.a", "odd-thing.x", "teams.b")]
    assert [*groups.grouped(checks)] == ["teams", "odd-thing"]
    assert groups.title("odd-thing") == "Odd thing"
