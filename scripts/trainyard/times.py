"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(text: str | None) -> float | None:
    """An RFC 3339 time as Unix seconds; None for an empty or unreadable one."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
