"""Times as Kubernetes writes them, and readable durations."""

from datetime import UTC, datetime


def moment(text: str | None) -> float | None:
    """An RFC 3339 time as Unix seconds; None if it is empty or invalid."""
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def span(seconds: float | None) -> str:
    """A readable duration: 8s, 3m20s, 2h05m, 4d06h."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def when(text: str | None) -> datetime | None:
    """A time as Kubernetes writes it, as a datetime; None if it is empty."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def now() -> datetime:
    """The current time, comparable with Kubernetes' times."""
    return datetime.now(UTC)


def stamp(at: datetime | None) -> str:
    """RFC 3339 text as Kubernetes writes it; "" for None."""
    return at.isoformat().replace("+00:00", "Z") if at else ""
