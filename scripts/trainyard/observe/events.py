"""What events say, as a sentence for people."""

import re
from collections.abc import Mapping
from typing import Any

Object = Mapping[str, Any]
STATUS = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')  # inside what Go prints of an error of the API


def about(event: Object) -> Object:
    """What it is about."""
    found: Object = event.get("involvedObject") or {}
    return found


def happened(event: Object) -> str:
    """When it happened last, as text that sorts."""
    made = (event.get("metadata") or {}).get("creationTimestamp")
    return str(event.get("lastTimestamp") or event.get("eventTime") or made or "")


def text(event: Object) -> str:
    """Its message on one line, without what programs wrap around the API's own words."""
    found = " ".join(str(event.get("message", "")).split()).removeprefix("(combined from similar events): ")
    inner = STATUS.search(found)
    return inner[1].replace('\\"', '"') if inner else found


def sentence(event: Object) -> str:
    """Reason and message."""
    return f"{event.get('reason', '')}: {text(event)}"
