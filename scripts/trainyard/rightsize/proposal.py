"""Proposed requests and limits, from the usage of the last runs, with a margin.

Too little CPU slows a program down, too little memory kills it. So a CPU request covers what a pod used for 95 % of the
time, a memory request the most that it ever used: both of the run that used most, and with the margin. A memory limit
equals its request. A CPU limit is never lowered: idle cores cost nothing, and a burst shorter than a sample, which is
not measured, would be throttled.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trainyard.rightsize.quantity import CPU, MEMORY, rounded, shown, text
from trainyard.rightsize.usage import Job, Part, Run

LEAST_MARGIN, MARGIN, MOST_MARGIN = 10.0, 15.0, 20.0  # percent
RUNS = 10  # default number of runs to use
LEAST_SAMPLES = 4  # a run with fewer is too short to judge: two minutes at one sample per 30 s
THROTTLED = 0.05  # share of periods in which a container was throttled
BURST = 2.0  # a CPU limit that throttled becomes at least this multiple of the request
MORE = 1.5  # factor for insufficient values, since the actual need is unknown
IDLE_GPU = 0.3  # below this share of time GPUs count as idle


@dataclass(frozen=True)
class Need:
    """Usage of one template's pods over some runs; figures of the run that used most."""

    used: Sequence[tuple[Run, Part]] = ()  # newest first, long enough to judge
    short: int = 0  # runs that were too short
    throttled: float = 0.0  # in the newest run
    killed: float = 0.0  # memory limit in bytes at which the newest run was killed; 0: it was not

    def most(self, resource: str, figure: str) -> float | None:
        """The largest figure of all runs; None if no run has the figure."""
        found = [getattr(part, resource).get(figure) for _, part in self.used]
        return max((one for one in found if one is not None), default=None)


@dataclass(frozen=True)
class Amounts:
    """Requests and limits by resource, each with its reason."""

    requests: dict[str, float] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)


def need(job: Job, chosen: Iterable[tuple[str, str]], runs: int = RUNS) -> Need:
    """Usage of the given (role, container) in the last runs."""
    wanted = set(chosen)
    seen = [(run, part) for run in job.runs[:runs] for part in run.parts if (part.role, part.container) in wanted]
    if not seen:
        return Need()
    newest = [part for run, part in seen if run is seen[0][0]]
    killed = [part for part in newest if part.oom]
    used = [(run, part) for run, part in seen if part.samples >= LEAST_SAMPLES and part.cpu and part.memory]
    return Need(
        tuple(used),
        len({id(run) for run, _ in seen} - {id(run) for run, _ in used}),
        max(part.throttled for part in newest),
        max((part.limits.get(MEMORY) or part.memory.get("max", 0.0) for part in killed), default=0.0),
    )


def propose(
    found: Need, requests: Mapping[str, float], limits: Mapping[str, float], margin: float, *, lower: bool = True
) -> Amounts:
    """Proposed requests and limits; values that fit are unchanged.

    Args:
        margin: percent on top of the usage.
        lower: whether a memory limit may be lowered, too.
    """
    more = 1 + margin / 100
    made = Amounts(dict(requests), dict(limits), {})
    _cpu(found, made, more)
    _memory(found, made, more, lower)
    return made


def _cpu(found: Need, made: Amounts, more: float) -> None:
    usual = found.most(CPU, "p95")
    if usual is None:
        return
    limit = made.limits.get(CPU)
    asked = made.requests.get(CPU, limit)  # Kubernetes uses the limit if there is no request
    request, why = _fit(CPU, usual, asked, more, f"95 % of {_runs(found)}")
    if limit is not None:
        if found.throttled > THROTTLED:
            why += f"; throttled in {found.throttled:.0%} of its time: the limit is raised"
            limit = rounded(CPU, max(limit * MORE, request * BURST))
        made.limits[CPU] = limit = max(limit, request)
    if request != made.requests.get(CPU, limit):
        made.requests[CPU] = request
    made.why[CPU] = why


def _memory(found: Need, made: Amounts, more: float, lower: bool) -> None:
    most, limit = found.most(MEMORY, "max"), made.limits.get(MEMORY)
    asked = made.requests.get(MEMORY, limit)
    if found.killed:
        # Requests that were raised since then are unchanged.
        raised = max(limit or 0.0, asked or 0.0) if max(limit or 0.0, asked or 0.0) > found.killed else 0.0
        amount = raised or rounded(MEMORY, max(found.killed * MORE, (most or 0.0) * more))
        made.why[MEMORY] = f"the newest run was killed for memory at {shown(MEMORY, found.killed)}"
    elif most is not None:
        amount, made.why[MEMORY] = _fit(MEMORY, most, asked, more, f"the most of {_runs(found)}")
    else:
        return
    if limit is not None or asked is None:
        made.limits[MEMORY] = limit = amount if lower else max(amount, limit or 0.0)
    if amount != made.requests.get(MEMORY, limit):
        made.requests[MEMORY] = amount


def _fit(resource: str, used: float, asked: float | None, more: float, what: str) -> tuple[float, str]:
    """(proposed value, reason): the current value if its margin is within bounds, else the usage with the margin."""
    said = f"{shown(resource, used)} in {what}"
    low, high = used * (1 + LEAST_MARGIN / 100), rounded(resource, used * (1 + MOST_MARGIN / 100))
    if asked is not None and low <= asked <= high:
        return asked, f"{said}: it fits"
    return rounded(resource, used * more), said


def gpu_notes(found: Need) -> list[str]:
    """Remarks on GPUs; no number is proposed, since it is part of how a job trains."""
    if not found.used:
        return []
    part = found.used[0][1]
    gpus, gpu = part.asked.get("gpus", 0), part.gpu
    if not gpus or "util" not in gpu:
        return []
    held = f"{shown(MEMORY, gpu.get('memory'))} of {shown(MEMORY, gpu.get('of'))} of their memory"
    notes = []
    if gpu.get("idle", 0) >= 1:
        what = "ask for fewer, with fewer processes"
        notes.append(f"{gpu['idle']:.0f} of {gpus:.0f} GPUs of a pod computed nothing: {what}")
    elif gpu["util"] < IDLE_GPU:
        what = "more workers that load data, larger batches or a smaller GPU may do"
        notes.append(f"its GPUs computed {gpu['util']:.0%} of the time and held {held}: {what}")
    return notes


def _runs(found: Need) -> str:
    count = len({id(run) for run, _ in found.used})
    return "the last run" if count == 1 else f"the last {count} runs"


def far(resource: str, asked: float, wanted: float) -> str:
    """`above` or `below` if a request differs so much from the proposal that a hint is justified, else ""."""
    least = {CPU: 0.5, MEMORY: 512.0 * (1 << 20)}[resource]
    if asked >= 2 * wanted and asked - wanted >= least:
        return "above"
    return "below" if asked * 1.5 <= wanted and wanted - asked >= least else ""


def amounts(resource: str, requests: Mapping[str, float], limits: Mapping[str, float]) -> str:
    """Request and limit as text, `2` or `2, at most 4`; "-" for neither."""
    request, limit = requests.get(resource), limits.get(resource)
    if request is None and limit is None:
        return "-"
    if request is None or request == limit:
        return text(resource, limit if request is None else request)  # type: ignore[arg-type]
    return text(resource, request) + ("" if limit is None else f", at most {text(resource, limit)}")
