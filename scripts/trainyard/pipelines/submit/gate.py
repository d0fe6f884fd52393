"""Gating at submission: a job of a queue is submitted only when the previous one has started.

The scheduler then never has two jobs of a queue and priority at once, so none can overtake another, whatever it
does with jobs that don't fit. It needs a single submitter for all jobs of the queue, which must run as long as jobs
wait; a job submitted by other means is not held back. Nothing here accesses a cluster: the caller has the facts.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Turn:
    """One job in line. A higher `priority` goes first."""

    name: str
    queue: str
    priority: int = 0


def next_turns(line: Sequence[Turn], submitted: Collection[Turn]) -> list[Turn]:
    """Jobs that may be submitted now, at most one for each queue.

    It is the oldest of the queue's highest priority, and only if every job of the queue that was submitted and
    hasn't started yet has a lower priority: a job of a higher class doesn't wait for one of a lower class to start.

    Args:
        line: jobs that are not submitted yet, in order of arrival.
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
