"""Data that options must keep across releases: lines of a pod that keeps writing, and an old series."""

from dataclasses import dataclass
from typing import Any

from trainyard.training.kept import objects
from trainyard.training.kept.objects import Line
from trainyard_dev.e2e import store
from trainyard_dev.e2e.checks.monitoring import ask, prometheus
from trainyard_dev.e2e.context import SYSTEM, Context
from trainyard_dev.e2e.recorder import CheckError, patience, require

SPACE, NAME = "default", "e2e-trail"  # a namespace of no team and no release: no upgrade affects its pods
WRITES = 'i=0; while sleep 0.1; do echo "line $i"; i=$((i + 1)); done'
FIRST = 20  # lines that must be in the store before anything is stopped
PATIENCE_S, POLL_S = 120.0, 3.0
# Identifies a process of Prometheus: its series can be queried after its end, too.
BORN = 'process_start_time_seconds{job="prometheus"}'


class Lines:
    """A pod that writes ten numbered lines a second until `remove`, and its lines in the store."""

    def __init__(self, context: Context) -> None:
        self.context, self.uid = context, ""

    def begin(self) -> None:
        """Starts the pod; returns when the store has its first lines."""
        pod = self.context.pod(NAME, WRITES)
        self.context.kubectl.apply([pod], SPACE)
        self.context.wait(f"pod/{NAME}", "condition=Ready", 60, SPACE)
        # A queue on a node may still deliver lines of an earlier pod of that name.
        self.uid = self.context.kubectl.get("pod", NAME, "-n", SPACE)[0]["metadata"]["uid"]
        self._await(FIRST)

    def complete(self) -> dict[str, Any]:
        """Waits until the store has every line up to now.

        Raises:
            CheckError: some are missing after two minutes, or a collector began from the start.
        """
        said = self.context.kubectl("logs", "-n", SPACE, NAME, "--tail=1").stdout.split()
        found = self._await(int(said[1]))
        once = objects.whole(found)
        numbers = [_number(line) for line in once]
        require(numbers == sorted(set(numbers)), "lines are duplicated or out of order")
        # Lines in transit when a collector stopped may arrive twice. These lines were stored long before.
        again = [number for number in map(_number, found) if number <= FIRST]
        require(len(again) == FIRST + 1, "the first lines are duplicated in the store: a collector lost its position")
        return {"lines": len(numbers), "lost": 0, "twice in the store": len(found) - len(once)}

    def _await(self, last: int) -> list[Line]:
        """The lines in the store, once it has every line up to the last."""
        wait = patience(PATIENCE_S, POLL_S)
        while True:
            found = self._stored()
            missing = set(range(last + 1)) - set(map(_number, found))
            if not missing:
                return found
            wait(f"{len(missing)} of {last + 1} lines are not in the store, the first is {min(missing)}")

    def _stored(self) -> list[Line]:
        bucket = str(self.context.contract["logs"]["bucket"])
        with store.connect(self.context.kubectl, SYSTEM) as s3:
            names = s3.names(bucket, f"{SPACE}/{NAME}/{self.uid}/")
            return [line for name in names for line in objects.lines(s3.read(bucket, name), f"{bucket}/{name}")]

    def remove(self) -> None:
        """Removes the pod, if it exists."""
        argv = ["delete", "pod", NAME, "-n", SPACE, "--now", "--ignore-not-found", "--wait=false"]
        self.context.kubectl(*argv, check=False)


def _number(line: Line) -> int:
    return int(line.text.split()[1])


@dataclass(frozen=True)
class ProcessStart:
    """The process of Prometheus that ran at a moment (Unix seconds), identified by its own series."""

    at: float
    value: str


def born(context: Context, after: ProcessStart | None = None) -> ProcessStart:
    """The current process, once it has scraped itself. Raises CheckError after two minutes.

    Args:
        after: an earlier one, whose series last for some minutes after its end.
    """
    wait = patience(PATIENCE_S, POLL_S)
    with prometheus(context) as port:
        while True:
            told = [(float(one["value"][1]), one["value"]) for one in ask(port, "query", query=BORN)["result"]]
            moment, value = max(told)[1] if told else (0.0, "")
            if value and (not after or float(value) > float(after.value)):
                return ProcessStart(float(moment), str(value))
            what = "was not started again" if told else f"has no {BORN}"
            wait(f"Prometheus {what} within {PATIENCE_S:.0f} s")


def require_kept(context: Context, before: ProcessStart | None) -> ProcessStart:
    """Another process runs, and it has the earlier one's series. Returns the current one.

    Raises:
        CheckError: it has not, or it is the same process, which proves nothing.
    """
    if not before:
        raise CheckError("no earlier measurement")
    now = born(context, before)
    with prometheus(context) as port:
        answer = ask(port, "query", query=BORN, time=str(before.at))["result"]
    found = [one["value"][1] for one in answer]
    require(before.value in found, f"for {before.at:.0f} Prometheus has {found}, but had {before.value} before")
    return now
