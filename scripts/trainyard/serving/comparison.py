"""Comparison of two versions: their origin, content and metrics."""

import json
from collections.abc import Sequence
from typing import Any

from trainyard.observe.listing import columns
from trainyard.serving.cards import SHOWN, Card
from trainyard.times import now, span

KEYS = ("framework", "file", "digest", "inputs", "outputs", "data", "code", "run")


def compared(first: Card, second: Card) -> list[dict[str, Any]]:
    """All keys of either card: name, both values, and whether they are equal."""
    rows = [(key, first.raw.get(key), second.raw.get(key)) for key in KEYS]
    rows[2] = ("digest", first.digest or None, second.digest or None)
    metrics = sorted({*first.metrics, *second.metrics})
    rows += [(f"metrics.{name}", first.metrics.get(name), second.metrics.get(name)) for name in metrics]
    return [
        {"key": key, first.title: one, second.title: other, "same": one == other}
        for key, one, other in rows
        if one is not None or other is not None
    ]


def table(first: Card, second: Card) -> str:
    """The comparison as text, with differences marked."""
    found = [["", "KEY", first.title, second.title]]
    for row in compared(first, second):
        key = row["key"]
        one, other = row[first.title], row[second.title]
        text = _text(other)
        if key.startswith("metrics.") and one is not None and other is not None:
            text += f" ({other - one:+.4g})"
        found.append(["" if row["same"] else "*", key, _text(one), text])
    return columns(found)


def listing(cards: Sequence[Card], served: dict[str, str]) -> str:
    """A table of versions. `served` maps names to the version in service."""
    at = now().timestamp()
    found = [["MODEL", "VERSION", "FRAMEWORK", "METRICS", "RUN", "AGE", "IN SERVICE"]]
    for card in cards:
        numbers = ", ".join(f"{key} {value:g}" for key, value in sorted(card.metrics.items())[:3])
        age = span(at - card.changed) if card.changed else ""
        version = card.version if len(card.version) <= SHOWN + 4 else f"{card.version[:SHOWN]}…"
        mark = "yes" if served.get(card.name) == card.version else ""
        found.append([card.name, version, card.framework or "-", numbers or "-", _text(card.run)[:40], age, mark])
    return columns(found)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:g}"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= 60 else f"{text[:59]}…"
