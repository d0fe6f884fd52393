"""Records a run's results: checks with their figures, and spans of time for the timeline."""

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from trainyard.errors import TrainyardError
from trainyard_dev.report.model import Check, Span

POLL_S = 2.0
T = TypeVar("T")
Figures = dict[str, Any]


class CheckError(TrainyardError):
    """A check failed; the sentence has the actual and the expected result."""


class ImpossibleError(Exception):
    """A check can't run here; the sentence has the reason."""


def possible(condition: object, why: str) -> None:
    """Skips the running check with the sentence `why` unless the condition holds."""
    if not condition:
        raise ImpossibleError(why)


def require(condition: object, what: str) -> None:
    """Fails the running check with the sentence `what` unless the condition holds."""
    if not condition:
        raise CheckError(what)


def had(found: T | None, what: str) -> T:
    """The value, if there is one. Otherwise fails the running check with the sentence `what`."""
    require(found, what)
    assert found
    return found


def patience(seconds: float, every: float = POLL_S) -> Callable[[str], None]:
    """A function that waits a little on each call; after so many seconds it fails the running check with its text."""
    end = time.monotonic() + seconds

    def wait(what: str) -> None:
        require(time.monotonic() < end, what)
        time.sleep(every)

    return wait


def until(holds: Callable[[], object], seconds: float, otherwise: str, every: float = POLL_S) -> None:
    """Waits until `holds` is true. After so many seconds, fails the running check with the sentence `otherwise`."""
    wait = patience(seconds, every)
    while not holds():
        wait(f"{otherwise} within {seconds:.0f} s")


class Recorder:
    """Checks in the order they ended, and spans."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.spans: list[Span] = []

    @contextmanager
    def check(self, check_id: str, title: str) -> Iterator[Figures]:
        """Runs one check; the body fills the yielded figures. Any error fails the check, but not the run."""
        figures: Figures = {}
        began = time.monotonic()

        def done(status: str, reason: str = "") -> None:
            seconds = time.monotonic() - began
            self.checks.append(Check(check_id, title, status, reason, seconds, figures))  # type: ignore[arg-type]
            print(f"  {status.upper():8}{check_id:26}{seconds:6.1f} s  {reason or title}", flush=True)

        try:
            yield figures
        except ImpossibleError as error:
            done("skipped", str(error))
        except TrainyardError as error:
            done("failed", str(error))
        except (KeyError, IndexError, ValueError) as error:  # an answer of unexpected form
            done("failed", f"unexpected answer: {type(error).__name__}: {error}")
        except Exception as error:  # a report with this sentence is worth more than an aborted run
            last = traceback.extract_tb(error.__traceback__)[-1]
            done("failed", f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}: {error}")
        else:
            done("passed")

    def skip(self, check_id: str, title: str, reason: str) -> None:
        """Records a check that can't run here."""
        self.checks.append(Check(check_id, title, "skipped", reason))
        print(f"  SKIPPED {check_id:26}          {reason}", flush=True)

    def skip_all(self, titles: Mapping[str, str], reason: str) -> None:
        """Records checks, by id, that can't run here."""
        for check_id, title in titles.items():
            self.skip(check_id, title, reason)

    @contextmanager
    def span(self, lane: str, phase: str, label: str = "") -> Iterator[None]:
        """Times the body as one span of the timeline."""
        start = time.time()
        try:
            yield
        finally:
            self.spans.append(Span(lane, phase, start, time.time(), label))

    def passed(self, check_id: str) -> bool:
        """Whether a check of that id has passed."""
        return any(check.id == check_id and check.status == "passed" for check in self.checks)

    def failed(self, check_id: str) -> bool:
        """Whether a check of that id has failed."""
        return any(check.id == check_id and check.status == "failed" for check in self.checks)
