"""Runs entries of the catalog in parallel, as far as their locks and needs allow."""

from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from trainyard.errors import TrainyardError
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.entry import APART, Entry

AT_ONCE = 4  # on two cores: two that compute, and two that wait for upgrades, polls, pulls and pods
LOOK_S = 1.0  # the end of a claim lets others start


def run(entries: Sequence[Entry], context: Context, at_once: int = AT_ONCE) -> None:
    """Runs every entry once. An entry with a failed need is reported as skipped; conflicting entries run in order.

    Raises:
        Exception: an entry's error outside of its checks, raised after the other running entries have ended.
    """
    waiting, running = list(entries), dict[Future[None], Entry]()
    context.in_use = lambda lock: any(lock in one.locks | one.shares for one in list(running.values()))
    with ThreadPoolExecutor(at_once) as pool:
        while waiting or running:
            left = [entry for entry in waiting if not _skipped(entry, context)]
            for entry in _startable(left, list(running.values()), context, at_once):
                running[pool.submit(_run, entry, context)] = entry
            if not running and left and left == waiting:
                ids = ", ".join(one for entry in left for one in entry.ids[:1])
                raise TrainyardError(f"none of the requirements of {ids} is left to run", where="e2e/checks")
            waiting = [entry for entry in left if entry not in running.values()]
            if not running:
                continue
            for future in wait(running, LOOK_S, return_when=FIRST_COMPLETED).done:
                del running[future]
                future.result()


def _run(entry: Entry, context: Context) -> None:
    if entry.images:
        context.await_images(entry.images)
    try:
        entry.run(context.second() if context.second and entry.ids and APART in entry.locks else context)
    except TrainyardError as error:  # an error around its checks, such as a failed upgrade
        if not entry.ids:
            raise
        told = {check.id for check in context.recorder.checks}
        at = next((one for one in entry.ids if context.wants(one) and one not in told), entry.ids[-1])
        with context.recorder.check(at, at):
            raise error
    ended = {check.id for check in context.recorder.checks}
    for check_id in entry.ids:
        if check_id not in ended and context.wants(check_id):
            context.recorder.skip(check_id, check_id, f"{entry.ids[0]} ended before this check")


def _startable(waiting: list[Entry], running: list[Entry], context: Context, at_once: int) -> list[Entry]:
    """Entries that can start now: needs have passed, locks are unclaimed, and no earlier or running entry conflicts."""
    ready: list[Entry] = []
    for place, entry in enumerate(waiting):
        if len(running) + len(ready) >= at_once:
            break
        before = [*running, *ready, *(one for one in waiting[:place] if one not in ready)]
        free = not context.claims & (entry.locks | entry.shares) and not any(entry.conflicts(one) for one in before)
        if free and all(map(context.recorder.passed, entry.needs)):
            ready.append(entry)
    return ready


def _skipped(entry: Entry, context: Context) -> bool:
    """Whether a need of the entry has ended without passing: its checks are then reported as skipped."""
    ended = {check.id for check in context.recorder.checks}
    failed = [need for need in entry.needs if need in ended and not context.recorder.passed(need)]
    for check_id in entry.ids if failed else ():
        if context.wants(check_id):
            context.recorder.skip(check_id, check_id, f"it needs {failed[0]}, which did not pass")
    return bool(failed)
