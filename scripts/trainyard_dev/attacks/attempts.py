"""All attempts: the refused cases of the rules, and those of policies/guards.cases.yaml."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.policy import rules
from trainyard_dev.apiserver import Answer, ApiServer
from trainyard_dev.apiserver.client import PATCH
from trainyard_dev.policy import cases
from trainyard_dev.policy.cases import WHO, Case

FILE = cases.FOLDER / "guards.cases.yaml"
ANY = "any"
# Requests that open a connection: they can't be dry runs, and the pods that they name don't exist.
CONNECTIONS = ("/exec", "/portforward", "/proxy")
KEYS = (cases.ASKED - {"filled"}) | {"tried", "of", "in", "request", "body", "full"}


@dataclass(frozen=True)
class Request:
    """A request that is not about a base object; writes are dry runs."""

    method: str
    path: str
    who: str
    body: Any = None


@dataclass(frozen=True)
class Attempt:
    """One attempt.

    Args:
        guard: the guard that has to refuse, as named by guards.refused_by; ANY for any guard.
        says: words of the refusal.
        full: the team has as many objects as its quotas allow.
    """

    id: str
    who: str
    tried: str
    guard: str
    says: str
    what: Case | Request
    full: bool = False


def ask(server: ApiServer, attempt: Attempt) -> Answer:
    """Sends the attempt to the server. Raises TrainyardError when its initial object can't be stored."""
    if isinstance(attempt.what, Case):
        return cases.ask(server, attempt.what)
    one = attempt.what
    asked = one.method != "GET" and not any(mark in one.path for mark in CONNECTIONS)
    return server.call(
        one.method, one.path, one.body, identity=WHO[one.who],
        content=PATCH if one.method == "PATCH" else "application/json", query={"dryRun": "All"} if asked else None,
    )  # fmt: skip


def attempts(file: Path = FILE) -> list[Attempt]:
    """Reads all attempts. Raises TrainyardError when the file has an invalid one, or two have the same name."""
    found = [*_of_rules(), *_of_guards(file)]
    names = [one.id for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise TrainyardError(f"two attempts have the name {twice[0]}", where=str(file), hint="rename one of them")
    return found


def _of_rules() -> Iterator[Attempt]:
    """The attempts of every rule that refuses, for each kind that a case stands for."""
    advice = rules.advice()
    for rule in (one for one in cases.rules() if one not in advice):
        for case in cases.cases(rule):
            if not case.allowed:
                slug = re.sub(r"[^a-z0-9]+", "-", case.name.lower()).strip("-")
                yield Attempt(f"{rule}.{slug}", case.who, case.name, rule, case.says, case)


def _of_guards(file: Path) -> Iterator[Attempt]:
    for guard, people in yaml.safe_load(file.read_text()).items():
        for who, listed in people.items():
            for name, raw in listed.items():
                if not set(raw) <= KEYS or "tried" not in raw or ("of" in raw and "request" in raw) or who not in WHO:
                    hint = "follow the format at the head of the file"
                    raise TrainyardError(f"{name} is not an attempt", where=str(file), hint=hint)
                what = _what(raw, who)
                yield Attempt(name, who, raw["tried"], guard, raw.get("says", ""), what, raw.get("full", False))


def _what(raw: dict[str, Any], who: str) -> Case | Request:
    if "request" in raw:
        method, path = raw["request"].split()
        return Request(method, path, who, raw.get("body"))
    about = cases.asked(raw) | {"base": raw.get("of", "cpu-pod"), "who": who}
    return Case(rule="", name=raw["tried"], allowed=False, **about)
