"""Edits an object at the field that a finding names, also in a manifest inside a workflow."""

import re
from itertools import pairwise
from typing import Any

import yaml

Path = tuple[str | int, ...]
PART = re.compile(r"\[(\d+)\]|\[([^\]]+)\]|([^.\[\]]+)")
HELD = re.compile(r"held\d+x")
BARE = re.compile(r"(?::|^\s*-) *\Z", re.MULTILINE)  # before a value that has no quotes
FILLED_IN = re.compile(r"\{\{.*?\}\}", re.DOTALL)


class TemplateManifest:
    """The manifest of a resource template as data; `text`: as written in the workflow."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = []
        self._bare: set[str] = set()  # placeholders without quotes, which may become a number
        self.data = yaml.safe_load(FILLED_IN.sub(self._held, text))

    def _held(self, match: re.Match[str]) -> str:
        held = f"held{len(self._words)}x"
        self._words.append(match[0])
        if BARE.search(match.string[: match.start()]):
            self._bare.add(held)
        return held

    @property
    def text(self) -> str:
        """The manifest's text with Argo's placeholders restored."""

        class Dumper(yaml.SafeDumper):
            """A dumper that keeps quotes around placeholders."""

        def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
            quoted = HELD.search(value) and value not in self._bare
            return dumper.represent_scalar("tag:yaml.org,2002:str", value, style='"' if quoted else None)

        Dumper.add_representer(str, text)
        made = yaml.dump(self.data, Dumper=Dumper, sort_keys=False, width=10**6)
        return HELD.sub(lambda match: self._words[int(match[0][4:-1])], made)


def parse(field: str) -> Path:
    """Splits a field such as `spec.tasks[0].template` into its parts."""
    return tuple(int(index) if index else key or word for index, key, word in PART.findall(field))


def split(obj: dict[str, Any], path: Path) -> tuple[dict[str, Any], Path, tuple[Path, TemplateManifest] | None]:
    """The object that holds the field, the path in it, and the place of the manifest if it is one inside."""
    value: Any = obj
    for at, part in enumerate(path):
        value = _part(value, part)
        if isinstance(value, str) and at < len(path) - 1:
            inside = TemplateManifest(value)
            return inside.data, path[at + 1 :], (path[: at + 1], inside)
    return obj, path, None


def get(obj: Any, path: Path) -> Any:
    """Returns the value at a path; None where there is none."""
    for part in path:
        obj = _part(obj, part)
    return obj


def put(obj: Any, path: Path, value: Any) -> None:
    """Sets the value at a path, creating maps on the way."""
    for part, following in pairwise(path):
        if _part(obj, part) is None:
            obj[part] = [] if isinstance(following, int) else {}
        obj = obj[part]
    obj[path[-1]] = value


def drop(obj: Any, path: Path) -> bool:
    """Removes the value at a path; returns False where there was none."""
    holder = get(obj, path[:-1])
    if _part(holder, path[-1]) is None:
        return False
    del holder[path[-1]]
    return True


def drop_all(value: Any, key: str) -> int:
    """Removes every field of this name, at any depth; returns how many there were."""
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
