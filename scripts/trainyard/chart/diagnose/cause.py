"""Names the probable cause of a failure in one sentence."""

from collections.abc import Sequence

from trainyard.chart.diagnose import objects
from trainyard.chart.diagnose.objects import Collected
from trainyard.chart.diagnose.rules import RULES, Rule

HEALTHY = ""
YOUNG = 60.0  # seconds that a pod may take to start before it counts as sick


def matching(collected: Collected, rules: Sequence[Rule] = RULES) -> list[tuple[str, str]]:
    """Name and sentence of every rule that applies, in order. Skips a rule that fails itself."""
    found = []
    for rule in rules:
        try:
            sentence = rule.ask(collected)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:  # odd objects can't hide a cause
            collected.problems.append(f"rule {rule.name} could not be evaluated: {error!r}")
            continue
        if sentence:
            found.append((rule.name, sentence))
    return found


def probable_cause(collected: Collected) -> str:
    """The probable cause in one sentence; empty if no rule applies, no pod is sick and no check failed."""
    found = matching(collected)
    if found:
        return _sentence(found[0][1])
    failed = [check for check in collected.checks if check.get("status") == "failed"]
    made = [(pod, (pod.get("metadata") or {}).get("creationTimestamp")) for pod in collected.sick_pods()]
    sick = [objects.where(pod) for pod, created in made if collected.age(created) > YOUNG]
    if not failed and not sick and not collected.problems:
        return HEALTHY
    if failed:
        first = f"check {failed[0].get('id')} failed ({objects.shorten(str(failed[0].get('reason', '')), 160)})"
        look = f"look at pod {sick[0]} and at events.txt" if sick else "look at events.txt and the logs of its pods"
    elif sick:
        first, look = f"pod {sick[0]} is unhealthy", "look at its log and at events.txt"
    else:
        first, look = (
            "the cluster could not be read in full",
            f"look at problems.txt ({len(collected.problems)} entries)",
        )
    return f"No rule matched: {first}; {look} in the diagnosis."


def _sentence(text: str) -> str:
    flat = " ".join(text.split())
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."
