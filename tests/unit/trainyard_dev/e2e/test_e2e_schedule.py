"""Parallel checks: conflicting ones in order, needs before their dependents, no result lost when one fails."""

import threading
from typing import Any, cast

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.e2e import schedule
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.entry import ALONE, APART, Entry, check
from trainyard_dev.e2e.recorder import Figures, Recorder, possible, require


class Run:
    """Stands for a context: keeps when entries began and ended, as `+id` and `-id`."""

    def __init__(self) -> None:
        self.recorder, self.order, self.images = Recorder(), list[str](), list[str]()
        self.pair = threading.Barrier(2, timeout=10)
        self.claims, self.in_use = set[str](), lambda lock: False
        self.second: Any = None

    claim = Context.claim

    def wants(self, check_id: str) -> bool:
        return True

    def await_images(self, names: tuple[str, ...]) -> None:
        self.images += names


def entry(name: str, *, meets: bool = False, fails: bool = False, **more: Any) -> Entry:
    """An entry of one check; with `meets` it waits until another such entry runs at the same time."""

    def run(context: Any) -> None:
        context.order.append(f"+{name}")
        with context.recorder.check(name, name):
            if meets:
                context.pair.wait()
            require(not fails, "seen something else")
        context.order.append(f"-{name}")

    return Entry((name,), run, **more)


def go(entries: list[Entry], at_once: int = 3) -> Run:
    run: Any = Run()
    schedule.run(entries, run, at_once)
    return run


def test_entries_without_a_conflict_run_at_the_same_time() -> None:
    seen = go([entry("a", meets=True), entry("b", meets=True)])
    assert {check.status for check in seen.recorder.checks} == {"passed"}


def test_a_lock_excludes_who_shares_and_keeps_the_order() -> None:
    gpus = frozenset({"gpus"})
    seen = go([entry("a", shares=gpus), entry("b", locks=gpus), entry("c", shares=gpus)])
    assert seen.order == ["+a", "-a", "+b", "-b", "+c", "-c"]


def test_alone_is_a_barrier() -> None:
    seen = go([entry("a"), entry("b", locks=frozenset({ALONE})), entry("c")])
    assert seen.order == ["+a", "-a", "+b", "-b", "+c", "-c"]


def test_what_has_a_second_cluster_waits_for_none_of_the_first() -> None:
    other, run = Run(), Run()
    other.pair, other.recorder, run.second = run.pair, run.recorder, lambda: other
    apart = frozenset({ALONE, APART})
    a, b = (entry(name, meets=True, locks=locks) for name, locks in (("a", frozenset({ALONE})), ("b", apart)))
    schedule.run([a, b, entry("c", locks=apart)], cast(Any, run), 3)
    assert (run.order, other.order) == (["+a", "-a"], ["+b", "-b", "+c", "-c"])
    assert {check.status for check in run.recorder.checks} == {"passed"}


def test_one_overtakes_another_that_it_does_not_disturb() -> None:
    store = frozenset({"store"})
    seen = go([entry("a", meets=True, locks=store), entry("b", locks=store), entry("c", meets=True)])
    assert seen.order.index("+c") < seen.order.index("+b")


def test_a_need_comes_first() -> None:
    seen = go([entry("late", needs=("early",)), entry("early")])
    assert seen.order == ["+early", "-early", "+late", "-late"]


def test_what_needs_a_failed_check_is_skipped_with_the_reason() -> None:
    seen = go([entry("a", fails=True), entry("b", needs=("a",)), entry("c", needs=("b",))])
    said = {check.id: (check.status, check.reason) for check in seen.recorder.checks}
    assert said["b"] == ("skipped", "it needs a, which did not pass")
    assert said["c"] == ("skipped", "it needs b, which did not pass")


def test_what_an_entry_never_came_to_is_skipped_and_so_is_what_needs_it() -> None:
    first = entry("a", fails=True)
    seen = go([Entry(("a", "rest"), first.run), entry("b", needs=("rest",))])
    said = {check.id: (check.status, check.reason) for check in seen.recorder.checks}
    assert said["rest"] == ("skipped", "a ended before this check")
    assert said["b"] == ("skipped", "it needs rest, which did not pass")


def test_a_need_that_nobody_reports_is_reported() -> None:
    with pytest.raises(TrainyardError, match=r"none of the requirements of a is left to run"):
        go([entry("a", needs=("nowhere",))])


def test_an_error_outside_of_checks_ends_the_run() -> None:
    def broken(context: Any) -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        go([Entry(("a",), broken), entry("b", locks=frozenset({ALONE}))])


def test_an_error_around_checks_fails_the_first_that_has_not_ended() -> None:
    def broken(context: Any) -> None:
        with context.recorder.check("a", "a"):
            pass
        raise TrainyardError("helm upgrade failed")

    seen = go([Entry(("a", "b", "c"), broken), entry("d")])
    said = {check.id: (check.status, check.reason) for check in seen.recorder.checks}
    assert said == {
        "a": ("passed", ""),
        "b": ("failed", "helm upgrade failed."),
        "c": ("skipped", "a ended before this check"),
        "d": ("passed", ""),
    }


def test_a_claim_waits_for_who_shares_the_lock_and_keeps_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "LOOK_S", 0.05)
    gpus = frozenset({"gpus"})

    def claims(context: Any) -> None:
        context.pair.wait()
        with context.claim("gpus"), context.recorder.check("b", "b"):
            context.order.append("+b")
        context.order.append("-b")

    seen = go([entry("a", meets=True, shares=gpus), Entry(("b",), claims), entry("c", needs=("a",), shares=gpus)])
    assert seen.order == ["+a", "-a", "+b", "-b", "+c", "-c"]


@pytest.mark.parametrize(("fits", "status", "reason"), [(True, "passed", ""), (False, "skipped", "it needs more")])
def test_a_check_with_a_title_is_reported_with_what_it_found(
    fits: bool, status: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Entry] = []
    monkeypatch.setattr("trainyard_dev.e2e.entry.REGISTERED", made)

    @check("a", title="A", main=True, locks={"gpus"})
    def run(context: Any, figures: Figures) -> None:
        figures["seen"] = 1
        possible(fits, "it needs more")

    [found] = go(made).recorder.checks
    assert (found.id, found.title, found.status, found.reason) == ("a", "A", status, reason)
    assert found.figures == {"seen": 1} and made[0].main == ("a",) and made[0].locks == {"gpus"}


def test_images_are_waited_for() -> None:
    assert go([entry("a", images=("trainer-torch",))]).images == ["trainer-torch"]
