"""Gating at submission: who may be submitted when."""

from __future__ import annotations

from trainyard.submit.gate import Turn, next_turns

FIRST, SECOND, OTHER = Turn("first", "q"), Turn("second", "q"), Turn("other", "p")
HIGH = Turn("high", "q", 10)


def test_the_first_of_each_queue_goes() -> None:
    assert next_turns([FIRST, SECOND, OTHER], []) == [FIRST, OTHER]


def test_the_next_waits_until_the_one_before_has_started() -> None:
    assert next_turns([SECOND], [FIRST]) == []
    assert next_turns([SECOND], []) == [SECOND]


def test_other_queues_are_not_waited_for() -> None:
    assert next_turns([SECOND], [OTHER]) == [SECOND]


def test_a_higher_priority_goes_first_and_is_not_kept_by_a_lower_one_that_waits() -> None:
    assert next_turns([FIRST, HIGH], []) == [HIGH]
    assert next_turns([SECOND, HIGH], [FIRST]) == [HIGH]


def test_a_lower_priority_waits_for_a_higher_one() -> None:
    assert next_turns([FIRST], [HIGH]) == []


def test_nobody_in_line() -> None:
    assert next_turns([], [FIRST]) == []
