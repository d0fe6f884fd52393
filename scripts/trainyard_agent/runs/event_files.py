"""Sidecar of TensorBoard: brings the event files of runs from the store, and whatever is appended to them later.

Event files only grow, and TensorBoard keeps them open: new bytes are appended, and a file is never replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard_agent import rounds
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import connect, objects
from trainyard_agent.store.cache import listing

if TYPE_CHECKING:
    from minio import Minio

MARK = "tfevents"  # in the name of every event file, whatever library wrote it
FOUND = "event files:"  # in the line that says how many there are


class Mirror:
    """Event files of several places, each below its own folder."""

    def __init__(self, client: Minio, places: Sequence[str], into: Path) -> None:
        self.client, self.into = client, into
        self.places = [(place, folder) for pair in places for place, _, folder in (pair.partition("="),)]
        self.files: set[Path] = set()

    def round(self) -> int:
        """Copy new data; returns how many bytes. Raises PlatformError."""
        count = 0
        for place, folder in self.places:
            bucket, _, prefix = place.partition("/")
            with objects.store_errors(f"s3://{place}"):
                entries = [entry for entry in listing(self.client, bucket, prefix) if MARK in entry.key]
            for entry in entries:
                target = self.into / folder / entry.key
                count += self._append(bucket, f"{prefix.rstrip('/')}/{entry.key}", target, entry.size)
                self.files.add(target)
        return count

    def _append(self, bucket: str, key: str, target: Path, size: int) -> int:
        """Append the bytes that the object has beyond the file."""
        have = target.stat().st_size if target.exists() else 0
        if size <= have:
            return 0
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            objects.store_errors(f"s3://{bucket}/{key}"),
            connect.opened(self.client, bucket, key, have, size - have) as answer,
            open(target, "ab") as file,
        ):
            for block in answer.stream(objects.BLOCK):
                file.write(block)
        return size - have


def run(places: Sequence[str], into: str, every: float) -> int:
    """Copies every `every` seconds until told to stop. `places` are `bucket/prefix=folder`."""
    stop = rounds.told_to_stop()
    mirror, said = Mirror(connect.client(connect.access()), places, Path(into)), ""
    while True:
        try:
            mirror.round()
            text = f"{FOUND} {len(mirror.files)}"
        except PlatformError as error:
            text = str(error)
        if text != said:
            say(text)
            said = text
        if stop.wait(every):
            return 0
