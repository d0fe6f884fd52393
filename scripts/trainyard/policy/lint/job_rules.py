"""Checks of a job's total resources against its queue and the team's quota."""

from collections.abc import Iterator
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.policy.cel import number
from trainyard.policy.lint.pods import Object, Pod
from trainyard.policy.lint.report import Issue

COUNTED = ("cpu", "memory")


def queue_of(obj: Object) -> tuple[str, tuple[str, ...]]:
    """The queue of a job and its path; "" if the job names none."""
    spec = obj.get("spec") or {}
    policy = ((spec.get("runPolicy") or {}).get("schedulingPolicy")) or {}
    if policy.get("queue"):
        return str(policy["queue"]), ("spec", "runPolicy", "schedulingPolicy", "queue")
    return str(spec.get("queue") or ""), ("spec", "queue")


def total(pods: list[Pod], resource: str) -> float:
    """Total request of all pods of a job."""
    return sum(pod.count * pod.amount(resource) for pod in pods)


def gang(obj: Object, pods: list[Pod], contract: Contract, team: Team) -> Iterator[Issue]:
    """Gangs that can never start, since they exceed the capability of their queue."""
    name, path = queue_of(obj)
    if not name or not pods:
        return
    known = contract.queues.get(name)
    if known and not known.leaf:
        below = ", ".join(queue.name for queue in contract.queues.values() if queue.parent == name)
        yield "TY501", path, f"queue {name} has queues below it and runs no jobs itself", f"use one of {below}"
    for queue in contract.limits(name):
        if not queue.capability:
            continue
        for resource in (*COUNTED, *contract.gpu_resources):
            asked, most = total(pods, resource), number(queue.capability.get(resource, 0))
            if most is not None and asked > most:
                what = f"all pods of the job request {asked:g} {resource}, but queue {queue.name} may have {most:g}"
                yield "TY403", path, what, "use fewer or smaller pods, or another queue"


def quota(obj: Object, pods: list[Pod], contract: Contract, team: Team) -> Iterator[Issue]:
    """Jobs that exceed the quota of the namespace."""
    limits: dict[str, Any] = dict(team.quota.get("all") or {})
    for resource in ("pods", "gpus", "requests.cpu", "requests.memory"):
        most = number(limits.get(resource, ""))
        if most is None:
            continue
        if resource == "pods":
            asked = float(sum(pod.count for pod in pods))
        elif resource == "gpus":
            asked = sum(total(pods, one) for one in contract.gpu_resources)
        else:
            asked = total(pods, resource.removeprefix("requests."))
        if asked > most:
            what = f"the job requests {asked:g} {resource}, but the whole quota of team {team.name} is {most:g}"
            yield "TY404", ("spec",), what, "use fewer or smaller pods"


RULES = (gang, quota)
