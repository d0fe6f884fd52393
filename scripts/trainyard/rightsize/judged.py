"""Containers of a job or a file with proposals, as plain data and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.observe.listing import columns
from trainyard.rightsize import proposal, quantity
from trainyard.rightsize.files import File, Place, matching
from trainyard.rightsize.proposal import Amounts, Need
from trainyard.rightsize.quantity import CPU, MEMORY
from trainyard.rightsize.usage import Job, Usage
from trainyard.times import now, span

RESOURCES = (CPU, MEMORY)
FIGURES = ("p50", "p95", "p99", "max")
HEAD = ["JOB", "CONTAINER", "RESOURCE", "ASKS", "P50", "P95", "P99", "MAX", "PROPOSED", "WHY"]


@dataclass(frozen=True)
class Judged:
    """One container of one role. `asked`: its requests as written; `new`: as proposed, or the same if nothing is."""

    job: Job
    title: str  # role/container
    pods: int
    found: Need
    asked: Amounts
    new: Amounts
    line: int = 0
    place: Place | None = None

    @property
    def changes(self) -> bool:
        """Whether the proposal differs from the current requests and limits."""
        return (self.new.requests, self.new.limits) != (self.asked.requests, self.asked.limits)

    def request(self, which: Amounts, resource: str) -> float | None:
        """Request of a pod; like Kubernetes, uses the limit if there is no request."""
        return which.requests.get(resource, which.limits.get(resource))


def of_job(job: Job, margin: float, runs: int, *, lower: bool = True) -> list[Judged]:
    """The containers of a job's roles, with the requests of its newest run."""
    found = []
    for part in job.runs[0].parts:
        seen = proposal.need(job, [(part.role, part.container)], runs)
        asked = Amounts(
            {name: part.asked[name] for name in RESOURCES if name in part.asked},
            {name: part.limits[name] for name in RESOURCES if name in part.limits},
        )
        new = proposal.propose(seen, asked.requests, asked.limits, margin, lower=lower)
        title = "/".join(filter(None, (part.role, part.container)))
        found.append(Judged(job, title, part.pods, seen, asked, new))
    return found


def of_file(file: File, usage: Usage, namespace: str, margin: float, runs: int) -> list[Judged]:
    """The places of a file whose jobs have been measured, except those of other namespaces."""
    found = []
    for place in file.places:
        job = usage.find(place.job) if place.namespace in ("", namespace) else None
        if job is None:
            continue
        known = list(dict.fromkeys((part.role, part.container) for run in job.runs for part in run.parts))
        keys = matching(place, known)
        seen = proposal.need(job, keys, runs)
        asked = Amounts(dict(place.requests), dict(place.limits))
        new = proposal.propose(seen, asked.requests, asked.limits, margin)
        for resource, least in place.least.items():
            if 0 < new.requests.get(resource, least) < least:
                new.requests[resource] = new.limits[resource] = quantity.rounded(resource, least)
                new.why[resource] += ", and sharedMemory is a part of it"
        pods = sum(part.pods for part in job.runs[0].parts if (part.role, part.container) in keys)
        title = ", ".join("/".join(filter(None, key)) for key in keys) or place.keys[0][1]
        found.append(Judged(job, title, pods, seen, asked, new, place.line, place))
    return found


def table(judged: Sequence[Judged]) -> list[str]:
    """Table for people: a row for each container and resource, then notes."""
    rows = [HEAD]
    for one in judged:
        for resource in RESOURCES:
            figures = [quantity.shown(resource, one.found.most(resource, name)) for name in FIGURES]
            why = one.new.why.get(resource) or ("runs were too short to judge" if one.found.short else "not measured")
            asks = proposal.amounts(resource, one.asked.requests, one.asked.limits)
            wants = proposal.amounts(resource, one.new.requests, one.new.limits)
            wants = "as it is" if wants == asks else wants
            rows.append([one.job.name, one.title, resource, asks, *figures, wants, why])
    return [*columns(rows).splitlines(), *notes(judged)]


def notes(judged: Sequence[Judged]) -> list[str]:
    """Notes besides the table: GPUs, runs too short to judge, and the possible savings of all pods."""
    found = []
    for one in judged:
        found += [f"{one.job.name} {one.title}: {note}" for note in proposal.gpu_notes(one.found)]
        if one.found.short and one.found.used:
            found.append(f"{one.job.name} {one.title}: {one.found.short} runs were too short to count")
    for resource in RESOURCES:
        asked = sum((one.request(one.asked, resource) or 0) * one.pods for one in judged)
        new = sum((one.request(one.new, resource) or 0) * one.pods for one in judged)
        if asked and new < asked:
            all_of_it, less = quantity.shown(resource, asked), quantity.shown(resource, asked - new)
            found.append(f"{resource}: all pods of a run ask for {all_of_it} together; {less} less would do")
    return ["", *found] if found else []


def data(judged: Sequence[Judged], margin: float) -> dict[str, Any]:
    """The containers as plain data; requests as in a manifest, figures as numbers (cores, bytes, shares)."""
    return {
        "marginPercent": margin,
        "containers": [
            {
                "job": one.job.name,
                "kind": one.job.kind,
                "container": one.title,
                "pods": one.pods,
                "asked": _amounts(one.asked),
                "proposed": _amounts(one.new),
                "why": dict(one.new.why),
                "notes": proposal.gpu_notes(one.found),
                "runs": [
                    {
                        "run": run.job,
                        "seconds": run.seconds,
                        "ended": run.ended,
                        "cpu": dict(part.cpu),
                        "memory": dict(part.memory),
                        "throttled": part.throttled,
                        "oomKills": part.oom,
                        "gpu": dict(part.gpu),
                    }
                    for run, part in one.found.used
                ],
            }
            for one in judged
        ],
    }


def age(usage: Usage) -> str:
    """A note on the age of the figures, if they are old; else ""."""
    seconds = now().timestamp() - usage.at
    if seconds <= 20 * usage.every:  # the agent writes after 15 rounds even without a change
        return ""
    return f"the figures are {span(seconds)} old: the platform's pod may have stopped"


def _amounts(amounts: Amounts) -> dict[str, dict[str, str]]:
    def of(given: Mapping[str, float]) -> dict[str, str]:
        return {name: quantity.text(name, value) for name, value in given.items() if name in RESOURCES}

    return {"requests": of(amounts.requests), "limits": of(amounts.limits)}
