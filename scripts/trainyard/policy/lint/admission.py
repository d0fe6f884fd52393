"""All violations of the admission rules by an object, each with its field."""

import re
from collections.abc import Iterator
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.policy import cel
from trainyard.policy.lint.pods import CONTAINERS, REPLICA_KEYS, Pod, distinct
from trainyard.policy.lint.report import Path
from trainyard.policy.offline import Policy, Request, Requester, Violation, judge, policies

Object = dict[str, Any]
# Fields that are meant if a rule's path ends in a name next to them.
BESIDE = {
    ("api-token", "serviceAccountName"): "automountServiceAccountToken",
    ("gpu-limits", "name"): "resources",
    ("idle-command", "name"): "command",
    ("image-source", "name"): "image",
    ("memory-request", "name"): "resources",
}
WHOLE = ("gang-size",)  # compares the job as a whole, so judging a single pod tells nothing
# The part of a job to report if a rule's message has no path; the first that exists.
MEANT: dict[str, tuple[Path, ...]] = {
    "gang-size": (("spec", "minAvailable"), ("spec", "runPolicy", "schedulingPolicy", "minAvailable")),
    "job-gpus": tuple(("spec", key) for key in (*REPLICA_KEYS, "tasks", "template", "containers")),
    "pod-queue": (
        ("spec", "template", "metadata"),
        ("spec", "template"),
        ("metadata", "annotations"),
        ("metadata",),
    ),
    "job-deadline": (("spec", "runPolicy"), ("spec",)),
}
# Fields that a message tells the user to set: with their path from spec on, or a name in camel case.
WAY = re.compile(r"\bset spec\.([\w.]+\w)")
FIELD = re.compile(r"\bset ([a-z]+[A-Z]\w*(?:\.\w+)*)")
# Fields to set in each pod template if the job has no such field.
OF_TEMPLATE = {"job-deadline": ("in the pod template", "activeDeadlineSeconds")}


def member(team: Team) -> Requester:
    """A member of the team."""
    return Requester(next(iter(team.users), "member"), team.queues)


def violations(
    request: Request, contract: Contract, pods: list[Pod], advice: bool | None = None
) -> Iterator[Violation]:
    """All violations of all rules. `request.obj` may already be placed, so that made-up pods keep their places.

    Args:
        advice: True for advisory rules only, False for all others only.
    """
    obj = request.obj if cel.path(request.obj) is not None else cel.place(request.obj)
    for policy in policies():
        if not policy.in_force(contract) or not policy.concerns(request):
            continue
        if advice not in (None, policy.advice):
            continue
        found = judge(policy, obj, None, request, contract)
        if found and "templates" in policy.variables and policy.name not in WHOLE:
            found = _all(policy, obj, request, contract, pods) or found
        for one in found:
            yield Violation(one.rule, one.message, _place(one, obj))


def _all(policy: Policy, obj: Object, request: Request, contract: Contract, pods: list[Pod]) -> list[Violation]:
    """Violations of one rule. A rule reports only its first, so it judges each pod and each container separately."""
    found: list[Violation] = []
    for pod in distinct(pods):
        whole = _with_pod(obj, pod)
        if not (said := judge(policy, whole, None, request, contract)):
            continue
        said = [_of_template(one, pod) for one in said]
        parts: list[Violation] = []
        for key in CONTAINERS:
            for number in range(len(pod.spec.get(key) or [])):
                parts += judge(policy, _with_container(whole, key, number, pod), None, request, contract)
        parts = [_of_template(one, pod) for one in parts]
        found += [one for one in dict.fromkeys([*said, *parts]) if one not in found]
    return found


def _of_template(one: Violation, pod: Pod) -> Violation:
    words, key = OF_TEMPLATE.get(one.rule, ("", ""))
    if one.path is not None or not words or words not in one.message:
        return one
    return Violation(one.rule, one.message, (*pod.spec_path, key))


def _with_pod(obj: Object, pod: Pod) -> Object:
    """The object with only that pod template."""
    for index, part in enumerate(pod.path):
        if part == "tasks":
            return _replaced(obj, pod.path[: index + 1], lambda all, at=pod.path[index + 1]: [all[at]])
        if part in REPLICA_KEYS:
            role = pod.path[index + 1]
            return _replaced(obj, pod.path[: index + 1], lambda all, at=role: {at: all[at]})
    return obj


def _with_container(obj: Object, key: str, number: int, pod: Pod) -> Object:
    """The object, which has one pod, with only that container."""
    place = [0 if index and pod.path[index - 1] == "tasks" else part for index, part in enumerate(pod.path)]

    def alone(spec: Object) -> Object:
        kept = {name: value for name, value in spec.items() if name not in CONTAINERS}
        return kept | {"containers": [], key: [spec[key][number]]}

    return _replaced(obj, (*place, "spec"), alone)


def _replaced(value: Any, path: Path, change: Any) -> Any:
    """A copy with another value at the end of the path; every part keeps its path."""
    if not path:
        made = change(value)
    elif isinstance(value, list):
        made = [_replaced(one, path[1:], change) if index == path[0] else one for index, one in enumerate(value)]
    else:
        made = {**value, path[0]: _replaced(value[path[0]], path[1:], change)}
    return cel.at(made, cel.path(value))


def _place(one: Violation, obj: Object) -> Path:
    """The field to report."""
    if one.path and one.rule not in WHOLE:
        beside = BESIDE.get((one.rule, str(one.path[-1])))
        return (*one.path[:-1], beside) if beside else one.path
    spec = cel.path(obj.get("spec")) or ("spec",)
    if one.rule == "known-devices" and (found := _device(obj, one.message.partition(" ")[0])):
        return found
    if match := WAY.search(one.message):
        return (*spec, *match[1].split("."))
    for path in MEANT.get(one.rule, ()):
        if (found := _at(obj, path)) is not None:
            return cel.path(found) or path
    if match := FIELD.search(one.message):
        inner = ("workflowSpec",) if obj.get("kind") == "CronWorkflow" else ()
        return (*spec, *inner, *match[1].split("."))
    return spec


def _device(value: Any, name: str) -> Path:
    """Path where a resource of that name is first requested; () if nowhere."""
    if isinstance(value, dict):
        for key in ("limits", "requests"):
            if isinstance(value.get(key), dict) and name in value[key]:
                return (*(cel.path(value[key]) or ()), name)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, (_device(part, name) for part in parts)), ())


def _at(value: Any, path: Path) -> Any:
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value
