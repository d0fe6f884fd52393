"""Every check of an end-to-end run, as `@check` declares it in a module of `checks/`, in the order of the run.

Checks run in parallel as far as their locks and needs allow, in this order if they conflict. How to add one:
docs/contributing/add-a-check.md.
"""

import os
import pkgutil
from importlib import import_module

from trainyard_dev.e2e import checks
from trainyard_dev.e2e.entry import REGISTERED, Entry


def found() -> tuple[Entry, ...]:
    """The checks of every module, sorted by rank, then by module, then by position."""
    for module in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}."):
        import_module(module.name)
    entries = [entry for entry in REGISTERED if not entry.asked or os.environ.get(entry.asked)]
    reports = {check_id: entry for entry in entries for check_id in entry.ids}

    def rank(entry: Entry) -> int:
        before = [reports[one] for one in (*entry.needs, *entry.after) if one in reports]
        return max([entry.rank, *(rank(one) + 1 for one in before)])

    return tuple(sorted(entries, key=lambda entry: (rank(entry), entry.run.__module__)))


_ALL = found()
FIRST, ENTRIES = (tuple(entry for entry in _ALL if entry.start is start) for start in (True, False))
# Reported before the entries: the cluster and the installation.
START = ("cluster.up", "install.helm", *(check_id for entry in FIRST for check_id in entry.ids))


def all_ids() -> list[str]:
    """Every id that a full run reports, in the order of the catalog."""
    return [*START, *(check_id for entry in ENTRIES for check_id in entry.ids)]
