"""Checks by group: the part of the id before the first dot, with a readable title."""

from collections.abc import Iterable

from trainyard_dev.report.model import Check

ATTACK = "attack"
TITLES = {
    "cluster": "Cluster",
    "install": "Installation",
    "train": "Training",
    "arrivals": "What people bring",
    "gang": "Gangs",
    "pipelines": "Pipelines",
    "elsewhere": "Pipelines from elsewhere",
    "nodes": "Nodes",
    "gpu": "GPUs",
    "metrics": "Metrics",
    "network": "Network",
    "storage": "Storage",
    "data": "Data sets",
    "teams": "Teams",
    "policies": "Policies",
    "rights": "Rights",
    "login": "Log-in",
    "kfp": "kfp.Client",
    "seeing": "Seeing as a member",
    ATTACK: "Attacks tried and refused",
    "upgrade": "Upgrade",
    "airgap": "Air gap: all egress denied",
    "uninstall": "Removal",
    "readme": "README.md, word for word",
}


def grouped(checks: Iterable[Check]) -> dict[str, list[Check]]:
    """Checks of each group, groups in the order in which they first appear."""
    groups: dict[str, list[Check]] = {}
    for check in checks:
        groups.setdefault(check.group, []).append(check)
    return groups


def title(group: str) -> str:
    """A group's title; by default its id."""
    return TITLES.get(group) or group.replace("-", " ").capitalize()


def passed_of(checks: list[Check]) -> str:
    """`3 of 4 passed`, or `4 passed`; an attack that passed was refused."""
    passed = sum(check.status == "passed" for check in checks)
    word = "refused" if {check.group for check in checks} == {ATTACK} else "passed"
    return f"{passed} {word}" if passed == len(checks) else f"{passed} of {len(checks)} {word}"


def refusal(check: Check) -> dict[str, str]:
    """An attack as a table row: who tried what, who refused it, and in which words.

    An attack that was not refused has no refusal to show; its row then has the reason why the check failed.
    """
    figures = {key: str(value) for key, value in check.figures.items()}
    return {
        "attack": check.id.partition(".")[2] or check.id,
        "who": figures.get("who", ""),
        "tried": figures.get("tried", "") or check.title,
        "refused_by": figures.get("refused_by", "") if check.status == "passed" else "",
        "message": figures.get("message", "") if check.status == "passed" else check.reason,
    }
