"""Databases of advisories of Python packages and Go modules, and how they are asked."""

from __future__ import annotations

import datetime
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.audit.advisories import Advisory, Part, of_osv

OSV = "https://api.osv.dev"
ECOSYSTEMS = ("PyPI", "Go")
AT_ONCE = 500  # questions in one request; the service takes a thousand
TIMEOUT_S = 30.0
MOST_DAYS = 14  # a copy of a database that is older counts as not asked
# Takes an address and a body (None: GET), gives what it answers. Raises OSError.
Fetch = Callable[[str, bytes | None], bytes]


@dataclass(frozen=True)
class Open:
    """Something that could not be asked, and why. It counts as open."""

    what: str
    why: str


@dataclass(frozen=True)
class Answer:
    """What a database knows of the parts; `day` is its state where it is a copy, empty where it was asked itself."""

    advisories: tuple[Advisory, ...] = ()
    open: tuple[Open, ...] = ()
    day: str = ""


def fetch(url: str, body: bytes | None = None) -> bytes:
    """One request over the network."""
    headers = {"User-Agent": "trainyard-audit"} | ({"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=TIMEOUT_S) as answer:
        return bytes(answer.read())


def reason(error: OSError | ValueError) -> str:
    """Why a database gave no answer, in a few words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"it answers {error.code}"
    found = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return str(getattr(found, "strerror", None) or found)


def osv(parts: Sequence[Part], fetch: Fetch, base: str = OSV) -> Answer:
    """osv.dev, which holds PyPA's, Go's and GitHub's databases: first names of advisories, then each of them."""
    asked = sorted({(p.ecosystem, p.name, p.version.removeprefix("v")) for p in parts})
    try:
        names = sorted({name for start in range(0, len(asked), AT_ONCE)
                        for name in _names(asked[start : start + AT_ONCE], fetch, base)})  # fmt: skip
        records = [json.loads(fetch(f"{base}/v1/vulns/{name}", None)) for name in names]
        return Answer(tuple(a for record in records for a in of_osv(record, "osv.dev")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        said = reason(error) if isinstance(error, OSError) else f"its answer can't be read ({error})"
        return Answer(open=(Open(f"osv.dev, for {_count(len(asked))} of Python and Go", said),))


def _names(asked: Sequence[tuple[str, str, str]], fetch: Fetch, base: str) -> Iterator[str]:
    """Names of all advisories; an answer that is too long for one page names the next."""
    queries: list[dict[str, Any]] = [
        {"package": {"ecosystem": ecosystem, "name": name}, "version": version} for ecosystem, name, version in asked
    ]
    while queries:
        body = json.dumps({"queries": queries}).encode()
        results = json.loads(fetch(f"{base}/v1/querybatch", body))["results"]
        if len(results) != len(queries):
            raise ValueError(f"{len(results)} results for {len(queries)} queries")
        for result in results:
            yield from (one["id"] for one in result.get("vulns", ()))
        queries = [
            {**query, "page_token": result["next_page_token"]}
            for query, result in zip(queries, results, strict=True)
            if result.get("next_page_token")
        ]


def copy(folder: Path, today: datetime.date) -> Answer:
    """A folder of files in OSV's format, such as an export of osv.dev or a checkout of github.com/golang/vulndb.

    Its day is that of the newest record, or of the newest file where records have none. A copy that says nothing of an
    ecosystem, or is older than MOST_DAYS, leaves that open.

    Raises:
        TrainyardError: there is no such folder, or no advisory in it.
    """
    found: list[Advisory] = []
    newest = datetime.date.min
    ecosystems: set[str] = set()
    for file in sorted(folder.rglob("*.json")):
        try:
            record = json.loads(file.read_text())
            made = list(of_osv(record, folder.name))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # an index or something else that lies there
        if not made:
            continue
        said = datetime.date.fromisoformat(str(record.get("modified", ""))[:10] or "0001-01-01")
        written = datetime.date.fromtimestamp(file.stat().st_mtime)
        newest = max(newest, said if said.year > 1 else written)
        ecosystems |= {one.ecosystem for one in made}
        found += made
    if not found:
        hint = "name a folder of files in OSV's format"
        raise TrainyardError("no advisory lies there", where=str(folder), hint=hint)
    left = [Open(f"{folder.name}, for {name}", "the copy says nothing of it") for name in ECOSYSTEMS
            if name not in ecosystems]  # fmt: skip
    age = (today - newest).days
    if age > MOST_DAYS:
        left.append(Open(f"{folder.name}, newer than {newest}", f"the copy is {age} days old, {MOST_DAYS} are allowed"))
    return Answer(tuple(found), tuple(left), newest.isoformat())


def once(advisories: Iterable[Advisory]) -> list[Advisory]:
    """Each vulnerability of a package once, whatever names databases give it; the first record stays."""
    kept: list[Advisory] = []
    seen: dict[tuple[str, str, str], Advisory] = {}
    for one in advisories:
        same = next((found for name in one.names() if (found := seen.get((one.ecosystem, one.package, name)))), None)
        # One record may list a package several times, with a span each.
        if same is None or (same.source, same.id) == (one.source, one.id):
            kept.append(one)
            for name in one.names():
                seen.setdefault((one.ecosystem, one.package, name), one)
    return kept


def _count(number: int) -> str:
    return f"{number} package{'' if number == 1 else 's'}"
