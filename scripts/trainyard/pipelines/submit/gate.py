"""Gating at submission: the next job of a queue is submitted only when the one before has started.

The scheduler then never sees two jobs of a queue and priority at once, so none can pass another, whatever the scheduler
does with jobs that don't fit. It needs one submitter for all jobs of the queue, which must go on running while jobs
wait; a job that somebody submits past it is not held. Nothing here talks to a cluster: the caller says what happened.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """One job in line. A greater `priority` goes first."""

    name: str
    queue: str
    priority: int = 0


def next_turns(line: Sequence[Turn], submitted: Collection[Turn]) -> list[Turn]:
    """Which jobs may be submitted now, at most one for each queue.

    It is the oldest of the queue's highest priority, and only if each of the queue's jobs that were submitted and
    haven't started yet has a lower priority: a job of a higher class doesn't wait until one of a lower has started.

    Args:
        line: jobs that are not submitted yet, in the order in which they came.
        submitted: jobs that are submitted and have not started.
    """
    found: dict[str, Turn] = {}
    for turn in line:
        if turn.queue not in found or turn.priority > found[turn.queue].priority:
            found[turn.queue] = turn
    return [
        turn
        for turn in found.values()
        if all(other.priority < turn.priority for other in submitted if other.queue == turn.queue)
    ]
