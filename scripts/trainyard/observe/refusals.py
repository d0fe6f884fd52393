"""Pods that a job may never have: its controller tries again forever, and only its events say so."""

import re
from collections.abc import Iterable
from typing import Any

from trainyard.observe.events import text as text_of

# Not for quotas: room comes when another job ends, and the controller then tries again.
FOR_EVER = re.compile(
    r"violates PodSecurity|denied request|denied the request|admission webhook .* denied"
    r"|is forbidden: (?!exceeded quota|error looking up service account)"
    r"|is invalid: |namespace .* is being terminated"
)
PASSING = re.compile(r"exceeded quota|the object has been modified|already exists|timed? ?out|connection refused", re.I)


def refusal(events: Iterable[dict[str, Any]]) -> str:
    """The first event's text that says pods (or what they need) are refused for good; "" when there is none."""
    for event in events:
        text = text_of(event)
        if FOR_EVER.search(text) and not PASSING.search(text):
            return text
    return ""


def blocker(events: Iterable[dict[str, Any]]) -> str:
    """The last event's text that says why nothing starts yet, such as a full quota; "" when there is none."""
    strings = [text_of(event) for event in events]
    return strings[-1] if strings else ""
