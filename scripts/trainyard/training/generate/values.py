"""Blocks of the chart's values: an additional queue or team, checked by the chart's own schema."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from trainyard.chart import values_schema
from trainyard.errors import UsageError
from trainyard.paths import CHART

FIRST_GID = 20001
Object = dict[str, Any]
QUOTA = "--quota"  # accepts gpus as a resource


def quantities(strings: Iterable[str], flag: str) -> Object:
    """`nvidia.com/gpu=8,cpu=64` as a map; whole numbers become ints. Raises UsageError."""
    found: Object = {}
    for part in ",".join(strings).split(","):
        if not part:
            continue
        name, equals, amount = part.partition("=")
        if not equals or not name or not amount:
            raise UsageError(
                f"{flag}: expected RESOURCE=QUANTITY, got {part!r}", hint=f"use {flag} nvidia.com/gpu=8,cpu=64"
            )
        if name in ("gpu", "gpus") and flag != QUOTA:
            raise UsageError(f"{flag} {part}: invalid resource: {name}", hint=f"for GPUs, use nvidia.com/gpu={amount}")
        found[name] = int(amount) if amount.isdigit() else amount
    return found


def quotas(strings: Iterable[str]) -> Object:
    """`training-normal:gpus=4` and `pods=100` as a quota: for a priority class, else for all. Raises UsageError."""
    found: Object = {}
    for text in strings:
        head, colon, rest = text.rpartition(":")
        found.setdefault(head if colon else "all", {}).update(quantities([rest], QUOTA))
    return found


def read(file: Path | None) -> Object:
    """Existing values; {} without a file. Raises UsageError."""
    if file is None:
        return {}
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise UsageError(f"the values can't be read: {error.strerror}", where=str(file)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError("not YAML", where=str(file), hint=str(error).splitlines()[0]) from None
    if not isinstance(found, dict):
        raise UsageError("not values of the chart", where=str(file), hint="values must be a map")
    return found


def listed(values: Object, key: str) -> list[Object]:
    """The list `global.contract.<key>` of the values; [] if it is missing."""
    found: Any = values
    for part in ("global", "contract", key):
        found = found.get(part) if isinstance(found, dict) else None
    return list(found) if isinstance(found, list) else []


def with_one(values: Object, key: str, block: Object, base: list[Object]) -> Object:
    """The whole list with one more entry, as values, since Helm replaces lists instead of merging them.

    Args:
        base: the list to use if the values have none.

    Raises:
        UsageError: the name is taken, or the chart would reject the block.
    """
    items = listed(values, key) or base
    name = block["name"]
    for other, what in (("teams", "team"), ("queues", "queue")):
        if name in {item.get("name") for item in (items if other == key else listed(values, other))}:
            raise UsageError(f"{what} {name} already exists", hint="choose another name")
    made = {"global": {"contract": {key: [*items, block]}}}
    check(merged(values, made), key)
    return made


def merged(base: Any, over: Any) -> Any:
    """Merges values as Helm does: maps by key, everything else is replaced."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{key: merged(base[key], value) if key in base else value for key, value in over.items()}}


def free_gid(values: Object) -> int:
    """The group id after the highest of the existing teams."""
    numbers = [team.get("gid", 0) for team in listed(values, "teams") if isinstance(team, dict)]
    return max([FIRST_GID - 1, *(number for number in numbers if isinstance(number, int))]) + 1


def defaults() -> Object:
    """The chart's own values."""
    return yaml.safe_load((CHART / "values.yaml").read_text())


def check(values: Object, key: str) -> None:
    """Validates one list of the contract with the chart's schema. Raises UsageError."""
    from jsonschema import Draft7Validator

    for error in Draft7Validator(values_schema.read()).iter_errors(merged(defaults(), values)):
        path = [str(part) for part in error.absolute_path]
        if path[:3] == ["global", "contract", key]:
            place = ".".join(path[4:]) or key
            if error.validator == "pattern" and path[-1] == "name":
                hint = "use lower-case letters, digits and hyphens, starting with a letter"
                raise UsageError(f"invalid name: {error.instance!r}", hint=hint)
            about = error.schema.get("description", "") if isinstance(error.schema, dict) else ""
            raise UsageError(f"{place}: {error.message}", hint=about)
