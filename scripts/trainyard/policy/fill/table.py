"""Reads policies/fill/table.yaml: groups of kinds, the variables that find places in an object, and the entries."""

import functools
import re
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard.policy.rules import resource_rules, shared

FILE = ROOT / "policies" / "fill" / "table.yaml"
WARNING = FILE.with_name("told.yaml")  # the policy that warns members of replaced images
WAYS = ("add", "append", "replace", "remove")
NAMED = re.compile(r"\bvariables\.(\w+)")


@dataclass(frozen=True)
class Entry:
    """One default to fill in; `path` starts at the place, and a part that begins with `=` is an expression."""

    name: str
    place: str
    path: tuple[str, ...]
    when: str
    value: str = ""
    way: str = "add"
    absent: tuple[str, ...] = ()
    number: int = 0  # position in the table


@dataclass(frozen=True, eq=False)
class Group:
    """Kinds with the same defaults. `rules` are resource rules; `variables` are in order of use."""

    name: str
    about: str
    rules: tuple[dict[str, Any], ...]
    entries: tuple[Entry, ...]
    variables: tuple[tuple[str, str], ...]

    def looks_at(self, group: str, resource: str) -> bool:
        """Whether the resource belongs to the group."""
        return any(group in rule["apiGroups"] and resource in rule["resources"] for rule in self.rules)


@functools.cache
def groups() -> tuple[Group, ...]:
    """All groups. Raises TrainyardError for an entry with an unknown name."""
    raw = yaml.safe_load(FILE.read_text())
    known = {**shared(), **{name: _expression(text) for name, text in raw["variables"].items()}}
    found = []
    for name, group in raw["groups"].items():
        mine = [(name in one["in"] if "in" in one else one["place"] in group["places"]) for one in raw["fills"]]
        entries = tuple(_entry(one, n) for n, one in enumerate(raw["fills"]) if mine[n])
        rules = tuple(one for rule in group["rules"] for one in resource_rules(rule))
        found.append(Group(name, group["about"], rules, entries, _needed(entries, known)))
    return tuple(found)


def _entry(raw: dict[str, Any], number: int) -> Entry:
    way = raw.get("as", "add")
    if way not in WAYS or (way == "remove") == ("value" in raw):
        hint = f"set as to one of {', '.join(WAYS)}, and a value for all but remove"
        raise TrainyardError(f"the entry {raw['name']} is invalid", where=str(FILE), hint=hint)
    return Entry(
        raw["name"], raw["place"], tuple(raw["path"]), raw["when"].strip(), raw.get("value", "").strip(), way,
        tuple(raw.get("absent", ())), number,
    )  # fmt: skip


def _expression(text: str) -> str:
    keys = [kind.replicas for kind in registry.KINDS if kind.replicas]
    return text.replace("@ROLES@", str(keys)).strip()


def _needed(entries: tuple[Entry, ...], known: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """All variables that the entries use, each after the variables that it uses itself."""
    order: dict[str, str] = {}

    def take(name: str) -> None:
        if name in order:
            return
        if name not in known:
            raise TrainyardError(f"unknown variable {name}", where=str(FILE), hint="define it, or correct its name")
        for used in NAMED.findall(known[name]):
            take(used)
        order[name] = known[name]

    for entry in entries:
        for used in (entry.place, *NAMED.findall(f"{entry.when} {entry.value} {' '.join(entry.path)}")):
            take(used)
    return tuple(order.items())
