"""The cluster's GPUs as a member may see them: from the numbers that the platform publishes, and the team's queues."""

import json
from typing import Any

from trainyard.contract.find import system
from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError
from trainyard.observe.listing import columns
from trainyard.times import moment, now, span

Object = dict[str, Any]
MAP, KEY = "trainyard-gpus", "gpus.json"
SCHEMA = "trainyard.io/gpus/v1"
QUEUES = "scheduling.volcano.sh/v1beta1"
LATE = 4  # missed rounds after which the numbers count as old


def read(kube: Kube) -> Object:
    """The view as plain data: pools with free, held and the team's GPUs, queues with their waiting times.

    Raises:
        TrainyardError: nothing is published, or the user is in no team.
    """
    shared = _published(kube, MAP)
    if shared is None:
        raise TrainyardError(
            f"the platform publishes no GPU data: ConfigMap {MAP} of {system()} has no content",
            where=kube.host,
            hint="gpuView.enabled is false, or its pod trainyard-gpu-view hasn't started; ask your platform engineer",
        )
    own = _published(kube, f"{MAP}-{kube.namespace}") if kube.namespace else None
    yours = {(one["pool"], one["model"]): one["gpus"] for one in (own or {}).get("held", [])}
    pools = [{**row, "yours": yours.get((row["pool"], row["model"]), 0)} for row in shared["pools"]]
    resources = list(dict.fromkeys(str(row["resource"]) for row in pools))
    return {
        "team": kube.namespace if own is not None else "",
        "at": shared["at"],
        "seconds": _age(shared["at"]),
        "late": _age(shared["at"]) > LATE * float(shared.get("everySeconds") or 30),
        "pools": pools,
        "queues": [_queue(kube, one, resources) for one in (own or {}).get("queues", [])],
        "waiting": shared["waiting"],
    }


def lines(seen: Object) -> list[str]:
    """The view as text."""
    head = ["POOL", "MODEL", "NODES", "GPUS", "HELD", "YOURS", "FREE", "OUT", "FREE ON A NODE"]
    rows = [head, *(_row(one) for one in seen["pools"])]
    found = columns(rows).splitlines() if seen["pools"] else ["the platform has no pool of GPU nodes"]
    if seen["queues"]:
        head = ["QUEUE", "HELD", "MAY USE", "WAITING", "ASK FOR", "LONGEST", "OF THE LAST HOUR'S STARTS"]
        found += ["", *columns([head, *(_line(one) for one in seen["queues"])]).splitlines()]
    waiting = seen["waiting"]
    if waiting["jobs"]:
        wait = "1 job waits" if waiting["jobs"] == 1 else f"{waiting['jobs']} jobs wait"
        found += ["", f"in all queues, {wait} for {_gpus(waiting['gpus'])}"]
    return found


def warnings(seen: Object, namespace: str) -> list[str]:
    """Warnings about the reliability of the numbers."""
    found = []
    if seen["late"]:
        found.append(f"these numbers are {span(seen['seconds'])} old: the pod trainyard-gpu-view may have stopped")
    if not seen["team"]:
        found.append(f"{namespace} is not your team, so no share and no queues are shown: choose a team with -n")
    for one in seen["queues"]:
        if one["unknown"]:
            found.append(f"what queue {one['queue']} holds and may use is unknown: {one['unknown']}")
    return found


def _published(kube: Kube, name: str) -> Object | None:
    """Content of one published ConfigMap; None if it does not exist, is still empty, or belongs to another team."""
    try:
        found = kube.find(kube.path("v1", "configmaps", name, namespace=system()))
    except KubeError as error:
        if error.status != 403:
            raise
        if name == MAP:
            hint = "your user must be a member or viewer of a team; ask your platform engineer"
            raise KubeError(error.what, status=403, where=kube.host, hint=hint) from None
        return None
    text = ((found or {}).get("data") or {}).get(KEY)
    if not text:
        return None
    try:
        said = json.loads(text)
        known = said["schema"] == SCHEMA
    except (ValueError, KeyError, TypeError):
        raise TrainyardError(f"ConfigMap {name} can't be read", where=system(), hint="try again in a minute") from None
    if not known:
        raise TrainyardError(
            f"unsupported schema of the data: {said['schema']}", hint=f"update trainyard, which reads {SCHEMA}"
        )
    return dict(said)


def _queue(kube: Kube, seen: Object, resources: list[str]) -> Object:
    """A queue's waiting jobs, and what Volcano reports that it holds and may hold.

    `mayUse` is None without a limit; values that are missing for the reason in `unknown` are None, too.
    """
    name, unknown = seen["queue"], ""
    try:
        queue = kube.find(kube.path(QUEUES, "queues", name, namespace=""))
        unknown = "" if queue else "it isn't there"
    except KubeError as error:
        queue, unknown = None, error.what
    spec, allocated = (queue or {}).get("spec") or {}, ((queue or {}).get("status") or {}).get("allocated") or {}
    capability, since = spec.get("capability") or {}, seen["waiting"].get("since")
    return {
        "queue": name,
        "unknown": unknown,
        "held": None if unknown else _sum(allocated, resources),
        "mayUse": _sum(capability, resources) if capability else None,
        "deserved": None if unknown else _sum(spec.get("deserved") or {}, resources),
        "waiting": {**seen["waiting"], "longestSeconds": _age(since) if since else 0},
        "started": seen["started"],
    }


def _row(one: Object) -> list[str]:
    fits = sorted(((int(free), count) for free, count in one["fits"].items()), reverse=True)
    where = ", ".join(f"{free} on {count} node{'s' * (count > 1)}" for free, count in fits)
    numbers = [str(one[key]) for key in ("nodes", "gpus", "held", "yours", "free", "out")]
    return [one["pool"] or "(none)", one["model"] or "(unknown)", *numbers, where]


def _line(one: Object) -> list[str]:
    waiting, started = one["waiting"], one["started"]
    lately = "none"
    if started["jobs"]:
        median, longest = span(started["medianSeconds"]), span(started["longestSeconds"])
        lately = f"{started['jobs']} waited {median} in the median, at most {longest}"
    held, may = (
        ("?", "?") if one["unknown"] else (str(one["held"]), str("all" if one["mayUse"] is None else one["mayUse"]))
    )
    asks = _gpus(waiting["gpus"]) if waiting["jobs"] else ""
    return [one["queue"], held, may, str(waiting["jobs"]), asks, span(waiting["longestSeconds"]), lately]


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _sum(amounts: Object, resources: list[str]) -> int:
    """Sum of all kinds of GPUs in a resource list, as Kubernetes or Volcano write them."""
    return sum(int(float(str(amounts[name]))) for name in resources if str(amounts.get(name, "")).isdecimal())


def _age(text: str) -> float:
    at = moment(text)
    return max(0.0, now().timestamp() - at) if at else 0.0
