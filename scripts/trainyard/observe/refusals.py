"""Rejected pods of a job: its controller retries forever, and only its events show why."""

import re
from collections.abc import Iterable
from typing import Any

from trainyard.observe.events import text as text_of

# Quotas are not included: when another job ends, a retry of the controller succeeds.
FOR_EVER = re.compile(
    r"violates PodSecurity|denied request|denied the request|admission webhook .* denied"
    r"|is forbidden: (?!exceeded quota|error looking up service account)"
    r"|is invalid: |namespace .* is being terminated"
)
PASSING = re.compile(r"exceeded quota|the object has been modified|already exists|timed? ?out|connection refused", re.I)


def refusal(events: Iterable[dict[str, Any]]) -> str:
    """Text of the first event on pods, or objects that they need, that are rejected for good; "" if there is none."""
    for event in events:
        text = text_of(event)
        if FOR_EVER.search(text) and not PASSING.search(text):
            return text
    return ""


def blocker(events: Iterable[dict[str, Any]]) -> str:
    """Text of the last event, such as a full quota, which explains why nothing starts yet; "" if there is none."""
    strings = [text_of(event) for event in events]
    return strings[-1] if strings else ""
