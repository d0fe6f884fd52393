"""Virtual time, with a harness in memory and schedulers of a few lines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from trainyard_dev.bench import simulator
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import GPU, Seen
from trainyard_dev.bench.simulator import Task, Timeline, play

COLUMN = Configuration("test", "test", "volcano", "actions: allocate")


class FakeWorld:
    """Pods in the order of creation, with their jobs and GPUs."""

    def __init__(self) -> None:
        self.pods: dict[str, Seen] = {}
        self.jobs: dict[str, tuple[str, int]] = {}
        self.groups: set[str] = set()
        self.stopped = False
        self.clock = 0

    def create(self, objects: list[dict[str, Any]], *, in_order: bool = False) -> None:
        assert self.stopped
        assert in_order
        for obj in objects:
            meta = obj["metadata"]
            if obj["kind"] == "PodGroup":
                self.groups.add(meta["name"])
            else:
                asked = obj["spec"]["containers"][0]["resources"]["requests"]
                self.jobs[meta["name"]] = (meta["labels"]["job"], int(asked[GPU]))
                self.pods[meta["name"]] = Seen()

    def delete(self, names: list[str], path: str = "pods") -> None:
        assert self.stopped
        for name in names:
            if path.endswith("podgroups"):
                self.groups.remove(name)
            else:
                self.pods.pop(name, None)

    def set_phase(self, names: list[str], phase: str) -> None:
        for name in names:
            self.pods[name].phase = phase

    def sees(self, names: Iterator[str], *, gone: bool = False) -> None:
        assert all((name not in self.pods) == gone for name in names)

    def bind(self, name: str) -> None:
        self.clock += 1
        self.pods[name].node, self.pods[name].bound = "n", float(self.clock)


class FakeScheduler:
    """Gives away `gpus`: whole jobs in the order of submission, or pod by pod."""

    def __init__(self, harness: FakeWorld, gpus: int, *, whole: bool = True) -> None:
        self.harness, self.gpus, self.whole = harness, gpus, whole
        self.process = self
        self.evict: Callable[[], list[str]] = list

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.harness.stopped = True
        yield
        self.harness.stopped = False

    def settle(self, harness: FakeWorld) -> None:
        for name in self.evict():
            harness.pods[name].leaving = True
        free = self.gpus - sum(harness.jobs[name][1] for name, pod in harness.pods.items() if pod.node)
        waiting: dict[str, list[str]] = {}
        for name, pod in harness.pods.items():
            if not pod.node:
                waiting.setdefault(harness.jobs[name][0] if self.whole else name, []).append(name)
        for pods in waiting.values():
            asked = sum(harness.jobs[name][1] for name in pods)
            if asked <= free:
                free -= asked
                for name in pods:
                    harness.bind(name)


def _play(scheduler: FakeScheduler, jobs: list[Task], **hooks: Any) -> Timeline:
    return play(scheduler.harness, scheduler, COLUMN, jobs, **hooks)  # type: ignore[arg-type]


def _jobs() -> list[Task]:
    return [Task("a", 8, 0, 100), Task("b", 16, 10, 50), Task("c", 8, 20, 10)]


def test_a_job_of_more_than_a_node_has_several_equal_pods() -> None:
    shapes = [[pod.gpus for pod in simulator.shape(Task("j", gpus, 0, 1))] for gpus in (1, 4, 8, 32)]
    assert shapes == [[1], [4], [8], [8, 8, 8, 8]]


def test_whole_jobs_start_when_they_fit_and_hold_nothing_before() -> None:
    harness = FakeWorld()
    timeline = _play(FakeScheduler(harness, 16), _jobs())
    assert timeline.starts == [(0, "a"), (20, "c"), (100, "b")]
    assert [task.wait_s for task in timeline.tasks] == [0, 90, 0]
    assert timeline.makespan_s == 150
    assert timeline.incomplete_gpu_s == 0
    assert (timeline.stuck, harness.pods, harness.groups) == ([], {}, set())


def test_gpus_of_incomplete_jobs_are_counted_while_they_last() -> None:
    timeline = _play(FakeScheduler(FakeWorld(), 16, whole=False), _jobs())
    assert timeline.starts == [(0, "a"), (100, "b"), (150, "c")]
    assert timeline.incomplete_gpu_s == 8 * 90
    assert [(s.at_s, s.used, s.asked, s.incomplete) for s in timeline.samples][1:3] == [
        (10, {"default": 16}, {"default": 24}, 8),
        (20, {"default": 16}, {"default": 32}, 8),
    ]


def test_a_deadlock_ends_the_replay_and_names_the_jobs() -> None:
    timeline = _play(FakeScheduler(FakeWorld(), 8, whole=False), [Task("b", 16, 0, 5), Task("c", 8, 1, 5)])
    assert timeline.stuck == ["b", "c"]
    assert timeline.samples[-1].incomplete == 8
    assert timeline.tasks[0].wait_s is None


@pytest.mark.parametrize("kept", [False, True])
def test_a_job_that_loses_a_pod_starts_again_as_a_whole(kept: bool) -> None:
    harness = FakeWorld()
    scheduler = FakeScheduler(harness, 16)
    scheduler.evict = lambda: ["b-0-1"] if "c-0-0" in harness.pods and "b-0-1" in harness.pods else []
    jobs = [Task("b", 16, 0, 100), Task("c", 8, 40, 10)]
    timeline = _play(scheduler, jobs, keep_work=kept)
    large = timeline.tasks[0]
    assert large.evictions == 1
    assert (large.first_s, large.lost_gpu_s) == (0, 0 if kept else 40 * 16)
    # Its new pods come behind those of c, which starts when b's old ones are gone.
    assert timeline.starts == [(0, "b"), (40, "c"), (50, "b")]
    assert large.end_s == (110 if kept else 150)


def test_a_scheduler_that_evicts_without_end_is_left_after_a_while() -> None:
    harness = FakeWorld()
    scheduler = FakeScheduler(harness, 8)
    scheduler.evict = lambda: [name for name in harness.pods if name.startswith("a")]
    timeline = _play(scheduler, [Task("a", 8, 0, 10)])
    assert timeline.circles > 0


def test_a_hook_holds_jobs_back_until_others_have_started() -> None:
    """Gating: the next job is made once nothing that was made waits any more."""
    timeline = _play(
        FakeScheduler(FakeWorld(), 16), _jobs(), admit=lambda replay: [] if replay.waiting else replay.held[:1]
    )
    assert timeline.starts == [(0, "a"), (100, "b"), (150, "c")]
    assert timeline.incomplete_gpu_s == 0


def test_bound_pods_run_where_the_bench_needs_it() -> None:
    phases = []
    harness = FakeWorld()
    _play(
        FakeScheduler(harness, 16),
        _jobs(),
        phases=True,
        each_instant=lambda replay: phases.append(sorted(p.phase for p in harness.pods.values())),
    )
    assert phases[1] == ["Pending", "Pending", "Running"]


def test_jobs_are_shown_when_they_are_old_enough_for_the_scheduler_to_hold_gpus_for_them() -> None:
    late = """
    tiers:
    - plugins:
      - name: sla
        arguments: {sla-waiting-time: 2s}
    """
    assert simulator._waiting_time(Configuration("late", "late", "volcano", late)) == pytest.approx(2.1)
    assert simulator._waiting_time(COLUMN) == 0
