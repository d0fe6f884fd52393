"""Logs of steps: from the pod as long as it exists, afterwards from the store, where Argo put them."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError
from trainyard.pipelines.runs import nodes, snapshot, stored
from trainyard.pipelines.runs.model import Run, Step
from trainyard.pipelines.steps import kfp_log
from trainyard.training.kept import NoLogError

CONTAINER = "main"
ARCHIVED = f"{CONTAINER}-logs"
POLL_INTERVAL_S = 2.0
# Lines that Argo's executor writes between a step's own, and after the last one of a command that failed.
ARGOS = re.compile(rb'^time="[^"]*" level=\w+ msg=.* argo=true\b')
OTHERS_MOST = 400  # lines of Argo and kfp at either end of a log
ARGOS_LAST = re.compile(rb"^Error: exit status \d+\s*$")


def lines(
    kube: Kube,
    run: Run,
    step: Step,
    *,
    follow: bool = False,
    tail: int | None = None,
    attempt: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[bytes]:
    """A step's log, line by line, without lines by Argo and kfp.

    Args:
        follow: wait until the pod exists, and continue until the step ends.
        attempt: its number, from 1; by default the last one.
        say: prints what is waited for.

    Raises:
        NoLogError: there is no log, with the reason.
        TrainyardError: the step has had no such attempt, or its log can't be read.
    """
    if follow and not step.nodes and not step.ended:
        say(f"{step.name} has not started yet; waiting for it")
    while follow and not step.nodes and not step.ended:
        time.sleep(POLL_INTERVAL_S)
        run = nodes.run(snapshot.fetch(kube, run.name))
        step = run.find(step.name)
    node = _node(step, attempt)
    pod = snapshot.pod_of(kube, run.name, node) if node and step.state != "cached" else ""
    if pod:
        try:
            more = tail + OTHERS_MOST if tail and not follow else tail
            found = own(_of_pod(kube, pod, follow, more, say))
            yield from deque(found, maxlen=tail) if tail and not follow else found
            return
        except KubeError as error:
            if error.status not in (400, 404):  # the pod was deleted meanwhile, or its container never ran
                raise
            if not step.ended:
                raise TrainyardError(f"{step.name} has no log yet: {error.what}") from None
    yield from deque(own(_archived(kube, run, step, node)), maxlen=tail)


def last(kube: Kube, run: Run, step: Step, count: int) -> list[str]:
    """The last lines of a step's log; none without a log."""
    try:
        return [line.decode(errors="replace") for line in lines(kube, run, step, tail=count)]
    except TrainyardError:
        return []


def own(log: Iterable[bytes]) -> Iterator[bytes]:
    """The lines that the step itself wrote. A line that may be Argo's last is held back until the next one arrives."""
    held = list[bytes]()
    plain = (line.decode(errors="surrogateescape") for line in log)
    for line in (text.encode(errors="surrogateescape") for text in kfp_log.own(plain)):
        if ARGOS.match(line):
            continue
        yield from held
        held = [line] if ARGOS_LAST.match(line) else []
        if not held:
            yield line


def _node(step: Step, attempt: int | None) -> str:
    if attempt is not None and not 1 <= attempt <= step.attempts:
        tries = f"{step.attempts} {'try' if step.attempts == 1 else 'tries'}"
        raise TrainyardError(f"step {step.name} has {tries}, not {attempt}")
    if attempt is None:
        return step.nodes[-1] if step.nodes else step.id
    return step.nodes[attempt - 1]


def _of_pod(kube: Kube, pod: str, follow: bool, tail: int | None, say: Callable[[str], None]) -> Iterator[bytes]:
    announced = False
    while True:
        try:
            yield from kube.logs(pod, CONTAINER, follow=follow, tail=tail)
            return
        except KubeError as error:
            # 400 or 404 while the container is being created: no error for the follower
            if not follow or error.status not in (400, 404) or not _begins(kube, pod):
                raise
            if not announced:
                say(f"{pod} is being started; waiting for it")
                announced = True
            time.sleep(POLL_INTERVAL_S)


def _begins(kube: Kube, pod: str) -> bool:
    """Whether the pod exists and its containers have yet to start."""
    found = kube.find(kube.path("v1", "pods", pod)) or {}
    states = [one.get("state", {}) for one in found.get("status", {}).get("containerStatuses") or []]
    return found.get("status", {}).get("phase") == "Pending" or any("waiting" in state for state in states)


def _archived(kube: Kube, run: Run, step: Step, node: str) -> list[bytes]:
    found = nodes.of(run.raw).get(node, {})
    outputs = found.get("outputs") or step.outputs
    place = stored.place(run, outputs, ARCHIVED)
    if place is None:
        why = "it never ran" if not step.nodes else "its pod is gone and no log was kept"
        if step.state == "cached":
            why = "it was served from the cache; `trainyard runs show --lineage` names the run that made it"
        raise NoLogError(f"step {step.name} has no log: {why}")
    with stored.reached(kube) as store:
        return store.read(f"{place.bucket}/{place.key}").splitlines()
