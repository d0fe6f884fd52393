"""Fields of events, and events as readable sentences."""

import re
from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]
STATUS = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')  # inside an API error as printed by Go


def about(event: Object) -> Object:
    """The object that the event is about."""
    found: Object = event.get("involvedObject") or {}
    return found


def happened(event: Object) -> str:
    """Time of the event's last occurrence, as sortable text."""
    made = (event.get("metadata") or {}).get("creationTimestamp")
    return str(event.get("lastTimestamp") or event.get("eventTime") or made or "")


def text(event: Object) -> str:
    """The event's message on one line, without the words that programs wrap around an API error."""
    found = " ".join(str(event.get("message", "")).split()).removeprefix("(combined from similar events): ")
    inner = STATUS.search(found)
    return inner[1].replace('\\"', '"') if inner else found


def sentence(event: Object) -> str:
    """Reason and message of the event."""
    return f"{event.get('reason', '')}: {text(event)}"
