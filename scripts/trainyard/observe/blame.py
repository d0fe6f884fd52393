"""Chooses the failed rank that caused a job's failure, and the words of its error."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.kinds.pods import FETCH
from trainyard.observe import pods, words
from trainyard.observe.pods import Failure

TAIL = 200  # lines of a failed rank's log to search for its error
LOOKED_AT = 4  # failed containers to examine
Tail = Callable[[str, str, int], Sequence[str]]  # (pod, container, count): the last lines of a log; empty without one
Reading = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Blame:
    """The failure that caused the others, the end of its log, and the words of its error."""

    failure: Failure
    log: tuple[str, ...]
    words: str

    @property
    def sentence(self) -> str:
        """`digits-worker-0 ended with code 7: ValueError: loss is NaN`; without words it ends after the code."""
        said = f"{self.failure.pod} ended with code {self.failure.code}"
        return f"{said}: {self.words}" if self.words else said

    @property
    def end_of_log(self) -> list[str]:
        """Lines of the log that lead to the error."""
        return words.leading_to(self.log, self.words)


def blamed(found: Iterable[Mapping[str, Any]], tail: Tail, read: Reading = words.last_words) -> Blame | None:
    """The first failure that isn't a consequence of another; None if no pod failed."""
    candidates = [_blame(failure, tail, read) for failure in pods.failures(found)[:LOOKED_AT]]
    return min(candidates, key=lambda one: words.follows(one.words), default=None)


def _blame(failure: Failure, tail: Tail, read: Reading) -> Blame:
    if failure.message:
        return Blame(failure, (), f"its command can't be started: {failure.message}")
    if failure.thrown_off:
        return Blame(failure, (), failure.why)
    log = tuple(tail(failure.pod, failure.container, TAIL) or tail(failure.pod, FETCH, TAIL))
    return Blame(failure, log, read(log))
