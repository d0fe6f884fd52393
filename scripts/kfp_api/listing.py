"""Filter, order and pages of lists, as KFP's clients ask for them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any
from urllib.parse import unquote

from kfp_api.errors import invalid
from trainyard.times import when

Item = dict[str, Any]
PAGE, MOST = 20, 200  # of a list: default and largest page
LONGEST = 10_000  # characters of a filter
PREDICATES = 20
OPERATIONS = {1: "EQUALS", 2: "NOT_EQUALS", 3: "GREATER_THAN", 5: "GREATER_THAN_EQUALS", 6: "LESS_THAN",
              7: "LESS_THAN_EQUALS", 8: "IN", 9: "IS_SUBSTRING"}  # fmt: skip
VALUES = ("string_value", "int_value", "long_value", "timestamp_value", "string_values", "int_values", "long_values")


def page(items: Sequence[Item], query: Mapping[str, str], fields: Sequence[str]) -> tuple[list[Item], int, str]:
    """The items of the page that is asked for, how many all pages have, and the token of the next one.

    Args:
        items: everything, with the values of `fields`; the first field makes the order complete.
        query: page_size, page_token, sort_by and filter.
        fields: what may be filtered and sorted by.

    Raises RefusalError, which names the part that is wrong.
    """
    found = [item for item in items if all(_holds(item, one) for one in _predicates(query.get("filter", ""), fields))]
    by, descending = _order(query.get("sort_by", ""), fields)
    found.sort(key=lambda item: _key(item, by, fields), reverse=descending)
    size = _size(query.get("page_size", ""))
    asked = hashlib.sha256(json.dumps([query.get("filter", ""), by, descending]).encode()).hexdigest()[:12]
    start = 0
    if token := query.get("page_token", ""):
        last = _token(token, asked)
        after = [number for number, item in enumerate(found) if _beyond(_key(item, by, fields), last, descending)]
        start = after[0] if after else len(found)
    shown = found[start : start + size]
    more = start + size < len(found)
    return shown, len(found), _next(_key(shown[-1], by, fields), asked) if more else ""


def _key(item: Item, by: str, fields: Sequence[str]) -> tuple[str, str]:
    return str(item.get(by) or ""), str(item.get(fields[0]))


def _beyond(key: tuple[str, str], last: tuple[str, str], descending: bool) -> bool:
    return key < last if descending else key > last


def _next(key: tuple[str, str], asked: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([asked, *key]).encode()).decode()


def _token(text: str, asked: str) -> tuple[str, str]:
    """The last item of the page before: objects that come and go meanwhile move none of the others."""
    try:
        of, value, name = json.loads(base64.urlsafe_b64decode(text))
    except (ValueError, TypeError, RecursionError):
        raise invalid("invalid page_token; pass the next_page_token of the page before") from None
    if of != asked:
        raise invalid("page_token belongs to a list with another filter or sort_by; pass the same ones")
    return str(value), str(name)


def _size(text: str) -> int:
    try:
        size = int(text or PAGE)
    except ValueError:
        raise invalid(f"invalid page_size {text[:50]!r}; pass a number") from None
    if size < 0:
        raise invalid(f"invalid page_size {size}; pass a number from 1 to {MOST}")
    return min(size or PAGE, MOST)


def _order(text: str, fields: Sequence[str]) -> tuple[str, bool]:
    words = text.split()
    if not words:
        return "created_at", False
    name = words[0].removeprefix("pipeline_").removeprefix("run_")
    field = next((one for one in (words[0], "display_name" if name == "name" else name) if one in fields), "")
    direction = words[1].lower() if len(words) == 2 else "asc" if len(words) == 1 else ""
    if not field or direction not in ("asc", "desc"):
        raise invalid(f"invalid sort_by {text[:100]!r}; pass one of {', '.join(fields)}, and asc or desc")
    return field, direction == "desc"


def _predicates(text: str, fields: Sequence[str]) -> list[tuple[str, str, Any]]:
    """Each predicate as (operation, field, value)."""
    if not text:
        return []
    if len(text) > LONGEST:
        raise invalid(f"the filter has {len(text):,} characters; at most {LONGEST:,} are allowed")
    try:
        data = json.loads(unquote(text) if text.startswith("%") else text)  # kfp's docstrings ask for a quoted one
        listed = data.get("predicates") or []
        return [_predicate(one, fields) for one in listed[: PREDICATES + 1]][: _few(len(listed))]
    except (ValueError, AttributeError, LookupError, TypeError, RecursionError):
        raise invalid("invalid filter; pass JSON: {'predicates': [{'operation', 'key', 'stringValue'}]}") from None


def _few(count: int) -> int:
    if count > PREDICATES:
        raise invalid(f"the filter has {count} predicates; at most {PREDICATES} are allowed")
    return count


def _predicate(one: Mapping[str, Any], fields: Sequence[str]) -> tuple[str, str, Any]:
    given = {_snake(key): value for key, value in one.items()}
    asked = given.get("operation", "")
    operation = OPERATIONS.get(asked, "") if isinstance(asked, int) else str(asked)
    if operation not in OPERATIONS.values():
        raise invalid(
            f"invalid operation {str(asked)[:50]!r} in the filter; use one of {', '.join(OPERATIONS.values())}"
        )
    key = {"name": "display_name"}.get(str(given.get("key")), str(given.get("key")))
    if key not in fields:
        raise invalid(f"the filter's key {key[:50]!r} can't be filtered by; use one of {', '.join(fields)}")
    held = [name for name in VALUES if given.get(name) is not None]
    if len(held) != 1:
        raise invalid(f"the filter's predicate on {key} needs exactly one value, such as stringValue")
    value = given[held[0]]
    if operation == "IN":
        return operation, key, [_value(key, each) for each in list.copy(value["values"])]
    if isinstance(value, dict | list):
        raise invalid(f"the filter's predicate on {key} needs one value; several are for IN")
    return operation, key, str(value) if operation == "IS_SUBSTRING" else _value(key, value)


def _value(key: str, value: Any) -> str:
    """A value as it is compared: times as Kubernetes writes them, in whole seconds of UTC."""
    if not key.endswith("_at"):
        return str(value)
    try:
        at = when(str(value))
        return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at else ""
    except (ValueError, OverflowError):
        raise invalid(
            f"the filter's time {str(value)[:50]!r} can't be read; write it as 2026-12-24T18:00:00Z"
        ) from None


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def _holds(item: Item, predicate: tuple[str, str, Any]) -> bool:
    operation, key, value = predicate
    own = str(item.get(key) or "")
    return {
        "EQUALS": lambda: own == value,
        "NOT_EQUALS": lambda: own != value,
        "GREATER_THAN": lambda: own > value,
        "GREATER_THAN_EQUALS": lambda: own >= value,
        "LESS_THAN": lambda: own < value,
        "LESS_THAN_EQUALS": lambda: own <= value,
        "IN": lambda: own in value,
        "IS_SUBSTRING": lambda: value.lower() in own.lower(),
    }[operation]()
