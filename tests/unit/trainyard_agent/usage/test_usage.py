"""What the agent records of runs: which, when, and what is kept; a real HTTP server stands for Prometheus."""

import json
from collections.abc import Iterator

import pytest
from prometheus_server import Server, served
from usage_world import CONTRACT, MIB, START, Clock, Maps, of, runs

from trainyard.rightsize import usage as product
from trainyard_agent.say import PlatformError
from trainyard_agent.usage import figures, notes
from trainyard_agent.usage.figures import Figures
from trainyard_agent.usage.jobs import KEY, NAME, PLATFORM_S, Usage
from trainyard_agent.usage.notes import RUNS
from trainyard_agent.usage.prometheus import Prometheus


@pytest.fixture
def prometheus() -> Iterator[Server]:
    with served() as server:
        yield server


@pytest.fixture
def maps() -> Maps:
    return Maps()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def usage(prometheus: Server, maps: Maps, clock: Clock) -> Usage:
    return Usage(maps, Figures(Prometheus(prometheus.address)), clock)  # type: ignore[arg-type]


def test_a_job_that_ended_is_measured_by_role_with_the_pod_that_used_most(
    usage: Usage, prometheus: Server, maps: Maps
) -> None:
    begin = START.timestamp() - 600
    pods = ("ddp-b4x2z-master-0", "ddp-b4x2z-worker-0", "ddp-b4x2z-worker-1")
    runs(prometheus, *pods, job="ddp-b4x2z", begin=begin, going=False)
    usage.look(CONTRACT, 120)
    (job,) = maps.jobs()
    assert (job["name"], job["kind"], len(job["runs"])) == ("ddp", "PyTorchJob", 1)
    run = job["runs"][0]
    assert (run["job"], run["begin"], run["ended"], run["seconds"]) == ("ddp-b4x2z", begin, True, 593)
    master, worker = run["parts"]
    assert (master["role"], master["pods"], worker["role"], worker["pods"]) == ("master", 1, "worker", 2)
    assert worker["cpu"] == {"p50": 1.5, "p95": 3, "p99": 3, "max": 3.6}
    assert worker["memory"] == {"p95": 3 * 512 * MIB, "max": 3 * 512 * MIB}
    assert (worker["samples"], worker["throttled"], worker["oom"]) == (40, 0.25, 0)
    assert worker["asked"] == {"cpu": 4, "memory": 8 << 30, "gpus": 2}
    assert worker["limits"] == {"memory": 8 << 30}
    assert master["gpu"] == {"util": 0.375, "memory": 1024 * MIB, "of": 4096 * MIB, "idle": 1}


def test_the_product_reads_what_the_agent_writes(usage: Usage, prometheus: Server, maps: Maps) -> None:
    runs(prometheus, "ddp-worker-0", job="ddp", begin=START.timestamp() - 600, going=True)
    usage.look(CONTRACT, 120)
    seen = product.parse(maps.texts["vision"], "test")
    found = seen.find("ddp")
    assert found and found.runs[0].parts[0].cpu["p95"] == 1.0
    assert (seen.at, seen.every) == (START.timestamp(), 120)
    assert (notes.SCHEMA, figures.RANDOM, NAME, KEY) == (
        product.SCHEMA, product.RANDOM, product.MAP, product.KEY)  # fmt: skip


def test_queries_are_for_the_pods_of_the_run_and_for_its_time(usage: Usage, prometheus: Server) -> None:
    runs(prometheus, "ddp-worker-0", "ddp-worker-1", job="ddp", begin=START.timestamp() - 600, going=True)
    usage.look(CONTRACT, 120)
    asked = [query for query, _ in prometheus.asked if "container" in query and 'namespace="vision"' in query]
    assert len(asked) == 18
    assert all('pod=~"ddp-worker-0|ddp-worker-1"' in query for query in asked)
    # A rate reaches back: the first one is made of this run's samples, not of a pod of that name before.
    assert any("[60s])[540s:15s]" in query for query in asked)
    assert any("container_memory_working_set_bytes" in query and "[600s]" in query for query in asked)


def test_a_run_that_goes_on_is_measured_again_when_it_has_become_longer_and_when_it_ends(
    usage: Usage, prometheus: Server, maps: Maps, clock: Clock
) -> None:
    begin = START.timestamp() - 1000
    runs(prometheus, "ddp-worker-0", job="ddp", begin=begin, going=True, cpu=2)
    usage.look(CONTRACT, 60)
    asked = len(prometheus.asked)
    clock.go(60)
    usage.look(CONTRACT, 60)
    assert len(prometheus.asked) == asked + 3, "not longer by a tenth yet"
    runs(prometheus, "ddp-worker-0", job="ddp", begin=begin, going=False, cpu=1)
    clock.go(60)
    usage.look(CONTRACT, 60)
    (run,) = maps.jobs()[0]["runs"]
    assert run["ended"]
    assert run["parts"][0]["cpu"] == {"p50": 0.5, "p95": 1, "p99": 1, "max": 2.4}, "the most of earlier looks is kept"
    clock.go(60)
    before = len(prometheus.asked)
    usage.look(CONTRACT, 60)
    assert len(prometheus.asked) == before + 3, "a run that has ended is not asked for again"


def test_the_same_job_again_is_a_further_run(usage: Usage, prometheus: Server, maps: Maps, clock: Clock) -> None:
    for turn in range(RUNS + 2):
        begin = clock.at.timestamp() - 100
        runs(prometheus, "ddp-worker-0", job="ddp", begin=begin, going=False, cpu=turn + 1)
        usage.look(CONTRACT, 120)
        clock.go(200)
    (job,) = maps.jobs()
    assert [run["parts"][0]["cpu"]["p95"] for run in job["runs"]] == list(range(RUNS + 2, 2, -1))


def test_a_run_whose_end_nobody_saw_has_ended(usage: Usage, prometheus: Server, maps: Maps, clock: Clock) -> None:
    runs(prometheus, "ddp-worker-0", job="ddp", begin=START.timestamp() - 100, going=True)
    usage.look(CONTRACT, 120)
    prometheus.answers = []
    clock.go(3600)
    usage.look(CONTRACT, 120)
    assert maps.jobs()[0]["runs"][0]["ended"]


def test_what_was_published_before_is_taken_up(prometheus: Server, maps: Maps, clock: Clock, usage: Usage) -> None:
    runs(prometheus, "ddp-worker-0", job="ddp", begin=START.timestamp() - 100, going=False)
    usage.look(CONTRACT, 120)
    clock.go(3000)
    before = len(prometheus.asked)
    runs(prometheus, "other-worker-0", job="other", begin=clock.at.timestamp() - 100, going=False)
    anew = Usage(maps, Figures(Prometheus(prometheus.address)), clock)  # type: ignore[arg-type]
    anew.look(CONTRACT, 120)
    assert [job["name"] for job in maps.jobs()] == ["other", "ddp"]
    window = next(query for query, _ in prometheus.asked[before:] if "max_over_time(trainyard_pod_job" in query)
    assert "[3240s]" in window, "what ran while nobody looked is seen, too"


def test_what_is_no_name_goes_into_no_question_and_no_note(usage: Usage, prometheus: Server, maps: Maps) -> None:
    for pod, job in (('x"} or up{a="', "ddp"), ("ddp-worker-0", "ddp\x1b[2J"), ("a|.*", "ddp")):
        runs(prometheus, pod, job=job, begin=START.timestamp() - 600, going=False)
        before = len(prometheus.asked)
        usage.look(CONTRACT, 120)
        assert maps.jobs() == [] and not [query for query, _ in prometheus.asked[before:] if "pod=~" in query]


def test_a_member_s_own_text_is_left_out(prometheus: Server, maps: Maps, usage: Usage) -> None:
    for text in ("[]", "{", '{"schema": "trainyard.io/usage/v1", "at": 1, "jobs": [{"name": 1}]}', "[" * 100_000):
        assert notes.read(text).jobs == {}
    good = {"job": "a", "begin": 1, "at": 2, "seconds": 3, "ended": True, "parts": []}
    bad = {**good, "parts": [{"role": "r", "container": "c", "cpu": {"p95": "much"}}]}
    text = json.dumps({"schema": notes.SCHEMA, "at": 1, "jobs": [
        {"name": "a", "kind": "Job", "runs": [good]}, {"name": "b", "kind": "Job", "runs": [bad]}]})  # fmt: skip
    assert list(notes.read(text).jobs) == ["a"]
    for forged in ({"job": "a\x1b[2J"}, {"begin": float("nan")}, {"seconds": -1}, {"at": float("inf")}):
        text = json.dumps({"schema": notes.SCHEMA, "at": 1, "jobs": [
            {"name": "a", "kind": "Job", "runs": [good | forged]}]})  # fmt: skip
        assert notes.read(text).jobs == {}, forged
    maps.texts["vision"] = "not ours"
    usage.look(CONTRACT, 120)
    assert maps.jobs() == []


def test_it_says_whose_rights_are_missing_and_goes_on_with_the_others(
    usage: Usage, prometheus: Server, maps: Maps
) -> None:
    runs(prometheus, "ddp-worker-0", job="ddp", begin=START.timestamp() - 100, going=False)
    with pytest.raises(PlatformError, match=r"not published: speech/trainyard-usage \(may not get configmaps\)"):
        usage.look({"teams": [{"name": "speech"}, {"name": "vision"}]}, 120)
    assert [job["name"] for job in maps.jobs()] == ["ddp"]


def test_jobs_of_other_namespaces_are_nobody_s(usage: Usage, prometheus: Server, maps: Maps) -> None:
    foreign = {"namespace": "web", "pod": "a-0", "job": "a", "team": "vision", "kind": "Job"}
    prometheus.answers = [("trainyard_pod_job", [(foreign, 1)]), ("kube_pod_start_time", [(foreign, 1.0)])]
    usage.look(CONTRACT, 120)
    assert maps.jobs() == []


def test_nothing_is_written_while_nothing_changes(usage: Usage, maps: Maps, clock: Clock) -> None:
    for _ in range(15):
        usage.look(CONTRACT, 120)
        clock.go(1)
    assert maps.writes == ["vision", "trainyard-system"]
    usage.look(CONTRACT, 120)
    assert len(maps.writes) == 4, "now and then a sign of life"


def test_the_platform_s_own_pods_are_measured_over_a_day(
    usage: Usage, prometheus: Server, maps: Maps, clock: Clock
) -> None:
    where = {"namespace": "trainyard-system", "container": "scheduler"}
    pods = [{**where, "pod": f"trainyard-scheduler-6bd7f9c5d4-{end}"} for end in ("x2x4z", "b4b4b")]
    prometheus.answers = [("memory_working_set", [(pods[0], 64 * MIB), (pods[1], 80 * MIB)])]
    usage.look(CONTRACT, 120)
    (job,) = maps.jobs("trainyard-system")
    assert (job["name"], job["kind"]) == ("trainyard-scheduler", product.COMPONENT)
    (part,) = job["runs"][0]["parts"]
    assert (part["role"], part["container"], part["pods"], part["memory"]["max"]) == ("", "scheduler", 2, 80 * MIB)
    asked = [query for query, _ in prometheus.asked if 'namespace="trainyard-system",container' in query]
    assert any("[86400s]" in query for query in asked)
    clock.go(PLATFORM_S / 2)
    before = len(prometheus.asked)
    usage.look(CONTRACT, 120)
    assert len(prometheus.asked) == before + 3


def test_a_container_that_was_killed_at_once_is_noted(usage: Usage, prometheus: Server, maps: Maps) -> None:
    runs(prometheus, "ddp-worker-0", job="ddp", begin=START.timestamp() - 20, going=False)
    prometheus.answers = [
        *prometheus.answers[:3],
        ("terminated_reason.*OOMKilled", [(of("ddp-worker-0"), 1)]),
        *[one for one in prometheus.answers if "resource" in one[0]],
    ]
    usage.look(CONTRACT, 120)
    (part,) = maps.jobs()[0]["runs"][0]["parts"]
    assert (part["oom"], part["limits"]) == (1, {"memory": 8 << 30})


def test_prometheus_that_refuses_or_is_gone_is_named(prometheus: Server, usage: Usage) -> None:
    prometheus.refuses = "parse error: unexpected end"
    with pytest.raises(PlatformError, match=r"Prometheus at http://127.* refused a query: parse error"):
        usage.look(CONTRACT, 120)
    with pytest.raises(PlatformError, match="did not answer"):
        Prometheus("http://127.0.0.1:1").vector("up", 1)
    with pytest.raises(PlatformError, match=r"invalid address of Prometheus, .*: write http://HOST:PORT"):
        Prometheus("trainyard-prometheus:9090")
