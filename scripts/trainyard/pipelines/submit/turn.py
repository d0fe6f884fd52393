"""`--after-started`: sends nothing until everything that the team has in the queue has started."""

import time
from collections.abc import Callable, Iterator

from trainyard.kube import Kube, gangs
from trainyard.observe.listing import some
from trainyard.pipelines.runs import model, nodes
from trainyard.pipelines.submit.gate import Turn, next_turns

POLL_INTERVAL_S = 2.0
SHOWN = 3


def wait(
    kube: Kube, queue: str, priority: str, say: Callable[[str], None], poll_interval_s: float = POLL_INTERVAL_S
) -> None:
    """Returns when it is the turn of a job of that queue and priority class; `say` reports what it waits for.

    Only the team's own runs and jobs are visible, so in a queue of several teams the order holds within the team.

    Raises:
        KeyboardInterrupt: after the message that nothing was sent.
        TrainyardError: the cluster can't be queried.
    """
    own, announced = Turn("", queue, gangs.priorities(kube).get(priority, 0)), ""
    try:
        while ahead := [turn.name for turn in not_started(kube) if not next_turns([own], [turn])]:
            if (text := some(ahead, SHOWN)) != announced:
                say(f"waiting until {text} {'has' if len(ahead) == 1 else 'have'} started in queue {queue}")
                announced = text
            time.sleep(poll_interval_s)
    except KeyboardInterrupt:
        say("nothing was sent")
        raise


def not_started(kube: Kube) -> Iterator[Turn]:
    """Waiting work in the team's namespace: runs none of whose steps has begun, and jobs with unscheduled gangs."""
    values = gangs.priorities(kube)
    for raw in gangs.listed(kube, model.VERSION, model.RESOURCE):
        run = nodes.run(raw)
        begun = any(step.state not in ("waiting", "pending") for step in run.steps)
        if not (begun or run.ended or run.raw.get("spec", {}).get("suspend")):
            yield Turn(f"run {run.name}", run.queue, values.get(run.priority, 0))
    groups = gangs.listed(kube, gangs.PODGROUPS, "podgroups")
    for group in gangs.waiting(groups, gangs.listed(kube, "v1", "pods")):
        owner = gangs.owner(group)
        if owner.get("kind") != "Workflow":
            name = f"{owner.get('kind', 'PodGroup')} {owner.get('name') or group['metadata']['name']}"
            yield Turn(name, gangs.queue_of(group), gangs.priority(group, values))
