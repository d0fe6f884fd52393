"""Short names for tests: a real scheduler on the benchmarks' harness, with nodes that are only objects."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from trainyard_dev.bench import objects
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import GPU, MERGE, Harness, Seen
from trainyard_dev.bench.schedulers import Scheduler, scheduler
from trainyard_dev.bench.traces import Node, Pod

LATE_S = 30.0
FLAGS = ("--percentage-nodes-to-find=100",)


class SchedulerHarness:
    """One harness; `scheduler` runs vc-scheduler on it with a configuration."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self._scheduler: Scheduler | None = None

    @contextmanager
    def scheduler(self, config: str) -> Iterator[None]:
        """Runs vc-scheduler with this configuration for the time of the body; what was made there goes afterwards."""
        try:
            with scheduler(self.harness, Configuration("test", "test", "volcano", config, FLAGS)) as self._scheduler:
                yield
        finally:
            self.harness.clear()

    def node(self, name: str, *, gpus: int = 0, cpu: str = "16", memory: str = "64G", taint: str = "") -> None:
        """A ready node."""
        self.harness.add_nodes([Node(name, _milli(cpu), _mib(memory), gpus)], effect=taint)

    def gpus(self, name: str, count: int) -> None:
        """The node has another number of GPUs from now on."""
        room = {GPU: str(count)}
        status = {"status": {"allocatable": room, "capacity": room}}
        answer = self.harness.server.call("PATCH", f"/api/v1/nodes/{name}/status", status, content=MERGE)
        assert answer.ok, answer.message

    def queue(self, name: str, **spec: Any) -> None:
        """An open queue."""
        self.harness.add_queue(name, **spec)

    def job(self, name: str, queue: str, *, pods: int = 1, gpus: int = 0, cpu: str = "1", memory: str = "1G",
            priority: str = "", least: int = 0) -> None:  # fmt: skip
        """A gang of equal pods; with `least` it may run with that many of them.

        The group comes last, so that the scheduler chooses among all pods, not among those that it has heard of so far.
        """
        asked = [Pod(f"{name}-{index}", _milli(cpu), _mib(memory), gpus) for index in range(pods)]
        self.harness.create(
            [objects.pod(one, "volcano", group=name, priority=priority, labels={"job": name}) for one in asked]
        )
        self.harness.sees(one.name for one in asked)
        self.harness.create([objects.pod_group(name, least or pods, queue=queue, priority=priority)])

    def placed(self, job: str) -> list[str]:
        """Nodes of the job's pods that are not being evicted; those just bound start to run."""
        bound = {name: pod for name, pod in self._pods(job).items() if pod.node and not pod.leaving}
        self.harness.set_phase([name for name, pod in bound.items() if pod.phase != "Running"], "Running")
        return sorted(pod.node for pod in bound.values())

    def numbers(self, job: str) -> list[int]:
        """Which of the job's pods are placed, by the number that their name ends in."""
        bound = [name for name, pod in self._pods(job).items() if pod.node and not pod.leaving]
        return sorted(int(name.rpartition("-")[2]) for name in bound)

    def unschedulable(self, job: str) -> int:
        """How many pods of the job say so; an autoscaler makes nodes for these."""
        return sum(pod.unschedulable for pod in self._pods(job).values())

    def evicted(self, job: str) -> int:
        """How many of the job's pods the scheduler took away; they go at once, as kubelet would let them."""
        gone = [name for name, pod in self._pods(job).items() if pod.leaving]
        self.harness.delete(gone)
        self.harness.sees(gone, gone=True)
        return len(gone)

    def finish(self, job: str) -> None:
        """The job's pods end well."""
        self.harness.set_phase(list(self._pods(job)), "Succeeded")

    def runs(self, job: str, pods: int = 1) -> bool:
        """Waits until that many pods of the job run; False when it takes too long."""
        return self.wait(lambda: len(self.placed(job)) == pods)

    def stays_out(self, job: str) -> bool:
        """Whether no pod of the job is placed once the scheduler has nothing more to do."""
        assert self._scheduler is not None
        self._scheduler.settle(self.harness)
        return not self.placed(job)

    def wait(self, ready: Callable[[], bool]) -> bool:
        """Whether it comes true in time."""
        end = monotonic() + LATE_S
        while not ready():
            if monotonic() > end:
                return False
            sleep(0.02)
        return True

    def _pods(self, job: str) -> dict[str, Seen]:
        return {name: pod for name, pod in list(self.harness.pods.items()) if pod.labels.get("job") == job}


def _milli(cpu: str) -> int:
    """Thousandths of a core of a whole number or of one with the suffix m."""
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else int(cpu) * 1000


def _mib(memory: str) -> int:
    """MiB of an amount in units of 10**9 bytes, such as 64G."""
    return int(memory.removesuffix("G")) * 10**9 // 2**20
