"""Proposals from usage: margins, rounding, throttling, kills."""

from typing import Any

import pytest

from trainyard.policy.cel import number
from trainyard.rightsize import proposal
from trainyard.rightsize.proposal import amounts, far, gpu_notes, need, propose
from trainyard.rightsize.quantity import rounded, text
from trainyard.rightsize.usage import Job, Part, Run

MIB, GIB = float(1 << 20), float(1 << 30)
WORKER = ("worker", "pytorch")


def run(number: int, *parts: Part) -> Run:
    return Run(f"ddp-{number}", 1000.0 * number, 0, 600, True, parts)


def part(p95: float = 1.0, most: float = 0.0, memory: float = GIB, **more: Any) -> Part:
    cpu = {"p50": p95 / 2, "p95": p95, "p99": p95, "max": most or p95}
    given = {"samples": 40, "cpu": cpu, "memory": {"p95": memory, "max": memory}} | more
    return Part(*WORKER, **given)


def job(*runs: Run) -> Job:
    return Job("ddp", "PyTorchJob", tuple(sorted(runs, key=lambda one: -one.begin)))


def proposed(found: Job, requests: dict[str, float], limits: dict[str, float], margin: float = 15, **more: Any) -> Any:
    made = propose(need(found, [WORKER]), requests, limits, margin, **more)
    return made.requests, made.limits, made.why


@pytest.mark.parametrize("margin", [10, 15, 20])
def test_cpu_is_what_was_used_95_percent_of_the_time_in_the_run_that_used_most(margin: float) -> None:
    found = job(run(1, part(1.0)), run(2, part(2.0)), run(3, part(0.5)))
    requests, limits, why = proposed(found, {"cpu": 8.0}, {}, margin)
    assert requests["cpu"] == rounded("cpu", 2.0 * (1 + margin / 100))
    assert limits == {"memory": rounded("memory", GIB * (1 + margin / 100))}, "none of CPU is made"
    assert why["cpu"] == "2.00 in 95 % of the last 3 runs"


def test_memory_is_the_most_and_request_and_limit_are_one() -> None:
    found = job(run(1, part(memory=3 * GIB)), run(2, part(memory=2 * GIB)))
    requests, limits, why = proposed(found, {"memory": 16 * GIB}, {"memory": 32 * GIB})
    assert requests["memory"] == limits["memory"] == rounded("memory", 3 * GIB * 1.15)
    assert why["memory"] == "3.0Gi in the most of the last 2 runs"


def test_what_has_an_allowed_margin_stays() -> None:
    found = job(run(1, part(1.0, memory=GIB)))
    for cpu, memory in ((1.1, 1.1 * GIB), (1.2, 1.2 * GIB), (1.15, 1.15 * GIB)):
        requests, limits, why = proposed(found, {"cpu": cpu, "memory": memory}, {"memory": memory})
        assert (requests, limits) == ({"cpu": cpu, "memory": memory}, {"memory": memory})
        assert why["cpu"].endswith(": it fits")
    requests, _, _ = proposed(found, {"cpu": 1.05, "memory": 1.05 * GIB}, {})
    assert requests["cpu"] > 1.1
    assert requests["memory"] > 1.1 * GIB


@pytest.mark.parametrize("limit", [1.5, 1.61, 16.0])
def test_a_limit_of_cpu_that_throttled_nobody_stays_as_it_is(limit: float) -> None:
    requests, limits, _ = proposed(job(run(1, part(1.0, most=1.1))), {"cpu": 1.5}, {"cpu": limit})
    assert requests["cpu"] == 1.15
    assert limits["cpu"] == limit, "a burst within a sample is not seen"


def test_a_limit_of_cpu_is_never_below_the_request() -> None:
    requests, limits, _ = proposed(job(run(1, part(1.0, most=1.1))), {"cpu": 0.5}, {"cpu": 1.1})
    assert requests.get("cpu", limits["cpu"]) == limits["cpu"] == 1.15


def test_a_limit_that_throttled_is_raised() -> None:
    found = job(run(1, part(1.0)), run(2, part(1.95, most=2.0, throttled=0.4)))
    requests, limits, why = proposed(found, {"cpu": 2.0}, {"cpu": 2.0})
    assert requests["cpu"] == 2.25
    assert limits["cpu"] == 4.5
    assert why["cpu"].endswith("throttled in 40% of its time: the limit is raised")
    mended = job(run(1, part(1.95, throttled=0.4)), run(2, part(1.95, throttled=0.01)))
    assert proposed(mended, {"cpu": 2.25}, {"cpu": 4.5})[1]["cpu"] == 4.5


def test_what_was_killed_gets_half_as_much_again() -> None:
    killed = part(memory=3.9 * GIB, oom=1, limits={"memory": 4 * GIB})
    found = job(run(1, part(memory=GIB)), run(2, killed))
    requests, limits, why = proposed(found, {"memory": 4 * GIB}, {"memory": 4 * GIB})
    assert requests["memory"] == limits["memory"] == 6 * GIB
    assert why["memory"] == "the newest run was killed for memory at 4.0Gi"
    raised = proposed(found, {"memory": 8 * GIB}, {"memory": 8 * GIB})
    assert raised[1]["memory"] == 8 * GIB, "a request that was raised is left alone"
    later = job(run(1, killed), run(2, part(memory=5 * GIB)))
    assert proposed(later, {}, {"memory": 8 * GIB})[1]["memory"] == rounded("memory", 5 * GIB * 1.15)


def test_a_kill_counts_though_the_run_was_too_short_for_anything_else() -> None:
    found = job(run(1, part(oom=1, samples=0, cpu={}, memory={}, limits={"memory": GIB})))
    requests, limits, why = proposed(found, {"cpu": 1.0, "memory": GIB}, {"memory": GIB})
    assert (requests["cpu"], limits["memory"]) == (1.0, 1.5 * GIB)
    assert "cpu" not in why


def test_runs_too_short_to_judge_change_nothing() -> None:
    found = need(job(run(1, part(samples=3)), run(2, part(samples=2))), [WORKER])
    assert (found.used, found.short) == ((), 2)
    made = propose(found, {"cpu": 4.0}, {"memory": GIB}, 15)
    assert (made.requests, made.limits, made.why) == ({"cpu": 4.0}, {"memory": GIB}, {})


def test_only_the_last_runs_count() -> None:
    found = job(*(run(number, part(10.0 - number)) for number in range(1, 10)))
    assert need(found, [WORKER], 3).most("cpu", "p95") == 3.0
    assert need(found, [WORKER]).most("cpu", "p95") == 9.0


def test_a_limit_alone_is_request_and_limit() -> None:
    found = job(run(1, part(1.0, memory=GIB)))
    requests, limits, _ = proposed(found, {}, {"cpu": 8.0, "memory": 8 * GIB})
    assert requests == {"cpu": 1.15}, "else the request would follow the limit"
    assert limits == {"cpu": 8.0, "memory": rounded("memory", 1.15 * GIB)}


def test_limits_of_the_platform_never_become_lower() -> None:
    found = job(run(1, part(0.01, memory=40 * MIB)))
    requests, limits, _ = proposed(found, {"cpu": 0.1, "memory": 128 * MIB}, {"memory": GIB, "cpu": 1.0}, lower=False)
    assert requests == {"cpu": 0.02, "memory": 48 * MIB}
    assert limits == {"memory": GIB, "cpu": 1.0}
    high = job(run(1, part(0.01, memory=1000 * MIB)))
    assert proposed(high, {"memory": 128 * MIB}, {"memory": GIB}, lower=False)[1]["memory"] > 1100 * MIB


def test_gpus_that_do_nothing_are_told_and_left_alone() -> None:
    idle = {"util": 0.1, "memory": 2 * GIB, "of": 80 * GIB}
    found = need(job(run(1, part(gpu=idle, asked={"gpus": 2}))), [WORKER])
    (note,) = gpu_notes(found)
    assert note.startswith("its GPUs computed 10% of the time and held 2.0Gi of 80.0Gi of their memory: ")
    (note,) = gpu_notes(need(job(run(1, part(gpu={**idle, "idle": 1}, asked={"gpus": 2}))), [WORKER]))
    assert note == "1 of 2 GPUs of a pod computed nothing: ask for fewer, with fewer processes"
    assert gpu_notes(need(job(run(1, part(gpu={**idle, "util": 0.9}, asked={"gpus": 2}))), [WORKER])) == []
    assert gpu_notes(need(job(run(1, part())), [WORKER])) == []


@pytest.mark.parametrize(
    ("resource", "value", "written"),
    [
        ("cpu", 0.001, "10m"),
        ("cpu", 0.851, "860m"),
        ("cpu", 1.01, "1050m"),
        ("cpu", 2.0, "2"),
        ("cpu", 7.91, "8"),
        ("memory", 1.0, "32Mi"),
        ("memory", 900 * MIB, "912Mi"),
        ("memory", GIB, "1Gi"),
        ("memory", 3.1 * GIB, "3200Mi"),
        ("memory", 8.01 * GIB, "8448Mi"),
    ],
)
def test_amounts_are_rounded_up_to_what_people_write(resource: str, value: float, written: str) -> None:
    amount = rounded(resource, value)
    assert text(resource, amount) == written
    assert number(written) == pytest.approx(amount)
    assert amount >= value


def test_far_is_twice_and_more_than_a_trifle() -> None:
    assert far("cpu", 4, 1) == "above"
    assert far("cpu", 0.4, 0.1) == ""
    assert far("cpu", 1, 2) == "below"
    assert far("cpu", 1.9, 2) == ""
    assert far("memory", 8 * GIB, 2 * GIB) == "above"


def test_amounts_in_words() -> None:
    assert amounts("cpu", {"cpu": 1.0}, {"cpu": 2.0}) == "1, at most 2"
    assert amounts("memory", {}, {"memory": GIB}) == "1Gi"
    assert amounts("cpu", {}, {}) == "-"
    assert proposal.LEAST_MARGIN <= proposal.MARGIN <= proposal.MOST_MARGIN
