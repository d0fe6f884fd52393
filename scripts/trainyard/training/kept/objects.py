"""Reads objects with logs: OTLP JSON, compressed or not, as the platform's or the site's collector writes it.

A collector sends a line again if it can't tell whether the line arrived: after a crash, or if the store answers too
late. Such duplicates have the same file offset and time, unlike different lines with equal text.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainyard.errors import TrainyardError

GZIP = b"\x1f\x8b"
POD, UID, CONTAINER = "k8s.pod.name", "k8s.pod.uid", "k8s.container.name"
RESTART, OFFSET, STREAM = "k8s.container.restart_count", "log.file.record_offset", "log.iostream"


@dataclass(frozen=True, order=True)
class Line:
    """A line of a log; sorts in the order of writing.

    Args:
        restart: number of restarts of the container before the line.
        time: time from the container runtime, in nanoseconds since 1970.
        offset: position of the line in its file, in bytes; -1 if the collector omits it.
        number: position in the input, which orders and distinguishes lines without an offset.
    """

    restart: int
    time: int
    offset: int
    number: int
    text: str
    stream: str = "stdout"
    container: str = ""
    uid: str = ""
    pod: str = ""


def lines(content: bytes, place: str) -> Iterator[Line]:
    """The lines of one object. Raises TrainyardError if the object isn't a log."""
    try:
        if content.startswith(GZIP):
            content = gzip.decompress(content)
        # A collector may write several batches into one object, one after another.
        for batch in content.splitlines():
            if batch.strip():
                yield from _batch(json.loads(batch))
    except (OSError, EOFError, zlib.error, ValueError, TypeError, AttributeError, KeyError) as error:
        what = f"the object is not a log: {type(error).__name__}: {str(error)[:120]}"
        hint = "see charts/logs/README.md for what a site's own collector must write"
        raise TrainyardError(what, where=f"s3://{place}", hint=hint) from None


def whole(found: Iterable[Line]) -> list[Line]:
    """All lines in order, without duplicates."""
    seen, kept = set(), []
    for line in sorted(found):
        key = (line.uid, line.container, line.restart, line.time, line.stream, line.offset)
        if line.offset >= 0:
            if key in seen:
                continue
            seen.add(key)
        kept.append(line)
    return kept


def _batch(data: dict[str, Any]) -> Iterator[Line]:
    for resource in data.get("resourceLogs") or []:
        of = _attributes((resource.get("resource") or {}).get("attributes"))
        restart = int(of.get(RESTART) or 0)
        for scope in resource.get("scopeLogs") or []:
            for number, record in enumerate(scope.get("logRecords") or []):
                about = _attributes(record.get("attributes"))
                offset = about.get(OFFSET)
                yield Line(
                    restart=int(about.get(RESTART) or restart),
                    time=int(record.get("timeUnixNano") or record.get("observedTimeUnixNano") or 0),
                    offset=-1 if offset is None else int(offset),
                    number=number,
                    text=str(_value(record.get("body") or {}) or ""),
                    stream=str(about.get(STREAM) or "stdout"),
                    container=str(of.get(CONTAINER) or ""),
                    uid=str(of.get(UID) or ""),
                    pod=str(of.get(POD) or ""),
                )


def _attributes(listed: list[dict[str, Any]] | None) -> dict[str, Any]:
    return {one["key"]: _value(one.get("value") or {}) for one in listed or []}


def _value(wrapped: dict[str, Any]) -> Any:
    """Unwraps an OTLP value, whose key is its type; 64-bit integers are strings."""
    return next(iter(wrapped.values()), None)
