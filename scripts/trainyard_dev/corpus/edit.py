"""Writes into an object at the field that a finding names, also into a manifest inside a workflow."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import yaml

Path = tuple[str | int, ...]
PART = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|([^.\[\]]+)")
FILLED_IN = re.compile(r"\{\{.*?\}\}", re.DOTALL)


class Inside:
    """The manifest of a resource template as data; `text` is how it stands in the workflow."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = []
        self.data = yaml.safe_load(FILLED_IN.sub(self._held, text))

    def _held(self, match: re.Match[str]) -> str:
        self._words.append(match[0])
        return f"held{len(self._words) - 1}x"

    @property
    def text(self) -> str:
        """With what Argo fills in."""
        made = yaml.safe_dump(self.data, sort_keys=False)
        for number, word in enumerate(self._words):
            made = made.replace(f"held{number}x", word)
        return made


def parse(field: str) -> Path:
    """`spec.tasks[0].template` to its parts."""
    return tuple(int(index) if index else key or word for index, key, word in PART.findall(field))


def split(obj: dict[str, Any], path: Path) -> tuple[dict[str, Any], Path, tuple[Path, Inside] | None]:
    """The object that holds the field, the way within, and of a manifest inside where it stands."""
    value: Any = obj
    for at, part in enumerate(path):
        value = _part(value, part)
        if isinstance(value, str) and at < len(path) - 1:
            inside = Inside(value)
            return inside.data, path[at + 1 :], (path[: at + 1], inside)
    return obj, path, None


def get(obj: Any, path: Path) -> Any:
    """What is there; None where nothing is."""
    for part in path:
        obj = _part(obj, part)
    return obj


def put(obj: Any, path: Path, value: Any) -> None:
    """Writes it, with the maps on the way."""
    for part, following in pairwise(path):
        if _part(obj, part) is None:
            obj[part] = [] if isinstance(following, int) else {}
        obj = obj[part]
    obj[path[-1]] = value


def drop(obj: Any, path: Path) -> bool:
    """Takes it away; False where it was not there."""
    holder = get(obj, path[:-1])
    if _part(holder, path[-1]) is None:
        return False
    del holder[path[-1]]
    return True


def drop_all(value: Any, key: str) -> int:
    """Takes every field of that name away, at any depth; says how many there were."""
    if isinstance(value, list):
        return sum(drop_all(one, key) for one in value)
    if not isinstance(value, dict):
        return 0
    gone = int(value.pop(key, None) is not None)
    return gone + sum(drop_all(one, key) for one in value.values())


def _part(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None
