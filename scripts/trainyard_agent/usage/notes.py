"""The notes on one namespace's runs: read from what was published, bounded, newest first.

The text is `{"schema", "at", "everySeconds", "scrapeSeconds", "jobs": [{"name", "kind", "runs": [run]}]}`, a run
`{"job", "begin", "at", "seconds", "ended", "parts"}` with times in Unix seconds; figures.py describes a part.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "trainyard.io/usage/v1"
COMPONENT = "component"  # the kind of a platform workload, which is no job
JOBS, RUNS, PARTS = 200, 10, 16  # limits: per namespace, per job, per run
LARGEST = 600_000  # bytes of all jobs: a ConfigMap holds 1 MiB
TEXT = 253  # letters of a name, at most
Object = dict[str, Any]


@dataclass
class Notes:
    """Jobs of one namespace by name; `at` is when they were last published."""

    jobs: dict[str, Object] = field(default_factory=dict)
    at: float = 0.0

    def newest(self, job: str) -> Object | None:
        """The newest run whose object has this name."""
        found = [run for one in self.jobs.values() for run in one["runs"] if run["job"] == job]
        return max(found, key=lambda run: run["begin"], default=None)

    def add(self, name: str, kind: str, job: str, begin: float) -> Object:
        """Adds a new run without measurements."""
        one = self.jobs.setdefault(name, {"name": name, "kind": kind, "runs": []})
        run = {"job": job, "begin": round(begin, 1), "at": 0.0, "seconds": 0.0, "ended": False, "parts": []}
        one["kind"] = kind
        one["runs"] = sorted([run, *one["runs"]], key=lambda run: -run["begin"])[:RUNS]
        return run

    def measured(self, run: Object, parts: list[Object], *, at: float, last: float, ended: bool) -> None:
        """Stores new figures. The highest usage of a long run, and its kills, are kept from earlier rounds."""
        before = {(part["role"], part["container"]): part for part in run["parts"]}
        for part in parts:
            old = before.pop((part["role"], part["container"]), None)
            if old:
                for resource in ("cpu", "memory"):
                    if "max" in old.get(resource, {}) and "max" in part.get(resource, {}):
                        part[resource]["max"] = max(part[resource]["max"], old[resource]["max"])
                part["oom"] = max(part["oom"], old["oom"])
        # A role without pods has no figures any more.
        run["parts"] = [*parts, *before.values()][:PARTS]
        run["at"], run["ended"] = round(at, 1), ended
        run["seconds"] = round(max(last - run["begin"], run["seconds"], 0.0), 1)

    def end_without(self, active: Collection[str]) -> None:
        """Marks runs that are not active any more as ended."""
        for one in self.jobs.values():
            for run in one["runs"]:
                if not run["ended"] and run["job"] not in active:
                    run["ended"] = True

    def jobs_text(self) -> str:
        """All jobs as JSON, newest first; if it is too long, the oldest jobs are left out, then older runs."""
        order = sorted(self.jobs.values(), key=lambda one: -one["runs"][0]["begin"])[:JOBS]
        texts = [[json.dumps(run, separators=(",", ":")) for run in one["runs"]] for one in order]
        heads = [json.dumps({"name": one["name"], "kind": one["kind"]})[:-1] for one in order]
        room, kept = LARGEST, [0] * len(order)
        for turn in range(RUNS):  # every job's newest run first, then every job's second
            for index, runs in enumerate(texts):
                if turn < len(runs) and kept[index] == turn:
                    size = len(runs[turn]) + 1 + (0 if turn else len(heads[index]) + 14)
                    if size <= room:
                        room, kept[index] = room - size, turn + 1
        made = [
            f'{head}, "runs": [{",".join(runs[:count])}]}}'
            for head, runs, count in zip(heads, texts, kept, strict=True)
            if count
        ]
        self.jobs = {
            one["name"]: {**one, "runs": one["runs"][:count]} for one, count in zip(order, kept, strict=True) if count
        }
        return f"[{','.join(made)}]"

    def text(self, jobs: str, every: float, scrape: float) -> str:
        """The text to publish: a header and `jobs`, the result of `jobs_text`."""
        head = {"schema": SCHEMA, "at": round(self.at, 1), "everySeconds": every, "scrapeSeconds": scrape}
        return f'{json.dumps(head)[:-1]}, "jobs": {jobs}}}'


def read(text: str) -> Notes:
    """Reads published notes; a text that isn't ours gives none, and invalid jobs are left out."""
    try:
        found = json.loads(text)
        if found["schema"] != SCHEMA:
            return Notes()
        at, jobs = float(_number(found["at"])), list(found["jobs"])[:JOBS]
    except (ValueError, KeyError, TypeError, RecursionError):
        return Notes()
    notes = Notes(at=at)
    for one in jobs:
        try:
            job = {
                "name": _name(one["name"]),
                "kind": _name(one["kind"]),
                "runs": [_run(r) for r in one["runs"]][:RUNS],
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if job["runs"]:
            notes.jobs[str(job["name"])] = job
    return notes


def _run(run: Object) -> Object:
    made = {"job": _name(run["job"]), "ended": bool(run["ended"])}
    made |= {name: float(_number(run[name])) for name in ("begin", "at", "seconds")}
    return made | {"parts": [_part(part) for part in run["parts"]][:PARTS]}


def _part(part: Object) -> Object:
    made: Object = {"role": _name(part["role"]), "container": _name(part["container"])}
    for name, value in part.items():
        if name in made:
            continue
        inner = {_name(key): _number(one) for key, one in value.items()} if isinstance(value, dict) else None
        made[_name(name)] = _number(value) if inner is None else dict(list(inner.items())[:PARTS])
    if len(made) > PARTS:
        raise ValueError("not ours")
    return made | {"oom": int(made.get("oom", 0))}


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError("no number")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or len(value) > TEXT or not value.isprintable():
        raise ValueError("no name")
    return value
