"""Downloads results of a finished job from the store."""

import json
import sys
import time
from pathlib import Path

import click

from trainyard.errors import TrainyardError
from trainyard.kinds.team_config import BUCKET
from trainyard.training.transfer import Store, is_retryable
from trainyard_agent.runs.run_files import INDEX

WAIT_S = 90.0
POLL_INTERVAL_S = 1.5


def fetch(store: Store, output: str, folder: str, target: Path) -> list[str]:
    """Waits until rank 0's pod has uploaded everything, then downloads the folder; returns the names of the files.

    Raises:
        TrainyardError: the download differs from what was uploaded.
    """
    index = _index(store, f"{BUCKET}/{output}/{INDEX}")
    files = (index or {}).get("files", {})
    wanted = {name.removeprefix(f"{folder}/"): entry for name, entry in files.items() if name.startswith(f"{folder}/")}
    if not wanted:
        return []
    total = sum(entry["size"] for entry in wanted.values())
    label, errors = f"fetching {len(wanted)} files", sys.stderr
    with click.progressbar(length=total, label=label, file=errors) as bar:
        names = store.tree(f"{BUCKET}/{output}/{folder}", target, progress=bar.update)
    missing = sorted(set(wanted) - set(names))
    if missing:
        raise TrainyardError(f"{missing[0]} is not in the store any longer", where=f"s3://{BUCKET}/{output}")
    return names


def _index(store: Store, place: str) -> dict | None:
    """The index of uploaded files; the last known index if the upload doesn't end in time.

    Retries while the store doesn't answer. Raises TrainyardError if it still doesn't in the end, or refuses.
    """
    end, found, unavailable = time.monotonic() + WAIT_S, None, None
    while time.monotonic() < end:
        try:
            unavailable = None
            if store.stat(place):
                found = json.loads(store.read(place))
                if found.get("complete"):
                    return found
        except TrainyardError as error:
            if not is_retryable(error):
                raise
            unavailable = error
        time.sleep(POLL_INTERVAL_S)
    if unavailable and not found:
        raise unavailable
    return found
