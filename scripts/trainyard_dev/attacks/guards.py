"""The guard that refused a request, and its message, read from the API server's answer."""

import re
from dataclasses import dataclass

from trainyard.policy.rules import PREFIX
from trainyard_dev.apiserver import Answer

ADMITTED, REFUSED, NOT_BEGUN = "admitted", "refused", "not begun"
RBAC, POD_SECURITY, QUOTA, LIMITS, SERVER = "RBAC", "Pod Security", "ResourceQuota", "LimitRange", "the API server"
_DENIED = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.*)", re.S)
_MARKS = (
    ("violates PodSecurity", POD_SECURITY),
    ("exceeded quota", QUOTA),
    ("failed quota", QUOTA),
    ("usage per PersistentVolumeClaim", LIMITS),
    ("usage per Container", LIMITS),
    ("usage per Pod", LIMITS),
)
_CANNOT = re.compile(r"User \"[^\"]*\" cannot ")
# Failures after admission, which let the request pass: not found, already exists, or no backend to answer.
LATER = (404, 409)
MOST = 700  # characters of a refusal that are kept


@dataclass(frozen=True)
class Verdict:
    """The outcome of an attempt: the guard that refused it, and its message."""

    outcome: str
    guard: str = ""
    words: str = ""


def verdict(answer: Answer) -> Verdict:
    """The verdict of an answer. A request that fails for lack of a pod or a node has passed every guard."""
    if answer.ok:
        return Verdict(ADMITTED)
    if answer.status in LATER or answer.status >= 500:
        return Verdict(ADMITTED, words=f"passed all guards, then {answer.status}: {_short(answer.message)}")
    return Verdict(REFUSED, *refused_by(answer))


def refused_by(answer: Answer) -> tuple[str, str]:
    """Guard and message of a refusal. A policy is named without `trainyard-`."""
    message = answer.message
    if match := _DENIED.search(message):
        return match[1].removeprefix(PREFIX), _short(match[2])
    if answer.status == 403 and (match := _CANNOT.search(message)):
        return RBAC, _short(message[match.start() :])
    guard = next((guard for mark, guard in _MARKS if mark in message), SERVER)
    return guard, _short(message.partition(" is forbidden: ")[2] or message)


def _short(words: str) -> str:
    words = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    return words if len(words) <= MOST else words[: MOST - 1] + "…"
