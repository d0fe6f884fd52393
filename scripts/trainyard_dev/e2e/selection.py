"""The checks of a run: the main job, everything, or the named ones with their needs."""

from collections.abc import Iterable, Sequence

from trainyard.errors import UsageError
from trainyard.observe.listing import columns
from trainyard_dev.changes import touch
from trainyard_dev.e2e.catalog import ENTRIES, START, all_ids
from trainyard_dev.e2e.entry import APART, Entry
from trainyard_dev.versions import load


def chosen(only: Sequence[str], *, full: bool) -> frozenset[str]:
    """Ids of the checks to run.

    Args:
        only: ids, or groups of ids (`gang`, `train`); empty: the main job, or everything with `full`.

    Raises:
        UsageError: a word names no check.
    """
    if not only:
        return frozenset(all_ids() if full else [*START, *(i for entry in ENTRIES for i in entry.main)])
    return with_needs({check_id for word in only for check_id in matching(word)})


def matching(word: str) -> list[str]:
    """Ids that a word selects: the id itself, or all of a group. Raises UsageError if there is none."""
    found = [i for i in all_ids() if i == word or i.startswith((f"{word}.", f"{word}-"))]
    if not found:
        groups = ", ".join(dict.fromkeys(i.partition(".")[0] for i in all_ids()))
        raise UsageError(f"unknown check: `{word}`", hint=f"use an id of `make e2e LIST=1` or a group: {groups}")
    return found


def with_needs(ids: Iterable[str]) -> frozenset[str]:
    """The ids and all that must have passed before them; an entry without parts is included whole."""
    wanted = set(ids)
    while True:
        more = {need for entry in entries(wanted) for need in entry.needs}
        more |= {
            i for entry in entries(wanted) for part in entry.parts or (entry.ids,) if wanted & set(part) for i in part
        }
        if more <= wanted:
            return frozenset(wanted)
        wanted |= more


def entries(ids: Iterable[str]) -> list[Entry]:
    """The entries that report one of these ids, in the catalog's order."""
    wanted = set(ids)
    return [entry for entry in ENTRIES if wanted & set(entry.ids)]


def images(ids: Iterable[str], *, cuda: bool = False) -> set[str]:
    """Images that these checks need in addition to the cluster's and the installation's; `cuda`: GPUs compute."""
    named = {image for entry in entries(ids) for image in entry.images}
    return named | ({f"{image}-cuda" for image in named} & load().images.keys() if cuda else set())


def login(ids: Iterable[str]) -> bool:
    """Whether one of these checks needs an API server that accepts an issuer's tokens."""
    return any(entry.login for entry in entries(ids))


def apart(ids: Iterable[str]) -> bool:
    """Whether a full run puts all these checks on its second cluster."""
    return set(ids) <= {i for entry in ENTRIES if APART in entry.locks for i in entry.ids}


def changed(paths: Sequence[str]) -> frozenset[str]:
    """Ids of the checks beyond the main job whose inputs are among the changed paths, with their needs."""
    return with_needs(i for entry in ENTRIES if touch(paths, entry.inputs) for i in entry.ids)


def long(ids: Iterable[str]) -> frozenset[str]:
    """Ids of entries that take minutes while nothing else runs, and that none of the others needs."""
    wanted = frozenset(ids)
    slow = {i for entry in entries(wanted) if entry.long for i in entry.ids} & wanted
    return frozenset(slow - with_needs(wanted - slow))


def table() -> str:
    """All checks as a table: their tier, needs and locks."""
    rows = [("CHECK", "TIER", "NEEDS", "ALONE WITH")]
    rows += [(check_id, "main", "", "") for check_id in START]
    for entry in ENTRIES:
        held = "everything" if "*" in entry.locks else ", ".join(sorted(entry.locks))
        for check_id in entry.ids:
            tier = "main" if check_id in entry.main else "full"
            rows.append((check_id, tier, ", ".join(entry.needs), held))
    return columns(rows)
