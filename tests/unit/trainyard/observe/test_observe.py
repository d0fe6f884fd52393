"""Pods and logs, read in one place: what keeps containers from starting, which failed first, whose error."""

import pytest
from runs_cluster import Object, entry, job, of_job
from train_cluster import pod

from trainyard.kinds import registry, status
from trainyard.observe import blame, listing, pods, words


def held(reason: str) -> Object:
    found = pod("a-0", "Pending")
    found["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": reason, "message": "so"}}
    return found


@pytest.mark.parametrize("reason", pods.STUCK)
def test_every_reason_that_keeps_a_container_from_starting_is_reported(reason: str) -> None:
    assert pods.stuck([held(reason)]) == (f"pod-0: {reason}: so", reason in pods.NEVER)


def test_what_only_takes_time_or_has_started_before_is_not_stuck() -> None:
    assert pods.stuck([held("ContainerCreating"), held(pods.CRASHING)]) == ("", False)
    found = pods.blocked(held(pods.CRASHING), *pods.STUCK, pods.CRASHING)
    assert found and found[0] == pods.CRASHING


def test_the_first_failure_is_not_one_that_was_ended_from_outside() -> None:
    """Memory is a rank's own; a node that threw it off says more than the signal."""
    master, worker = pod("a-0", "Failed", 143, "1"), pod("a-1", "Failed", 1, "2")
    assert [one.pod for one in pods.failures([master, worker])] == ["a-1", "a-0"]
    killed = pod("a-2", "Failed", 137, "1")
    killed["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] = "OOMKilled"
    assert [one.pod for one in pods.failures([worker, killed])] == ["a-2", "a-1"]
    evicted = pod("a-3", "Failed", 137, "1")
    evicted["spec"] |= {"containers": [{"name": "pytorch"}]}
    evicted["status"] |= {"reason": "Evicted", "message": "low on memory"}
    seen = blame.blamed([evicted], lambda *_: [])
    assert seen and seen.sentence == "a-3 ended with code 137: Evicted: low on memory"


def test_blame_passes_over_ranks_that_lost_another() -> None:
    logs = {"a-0": ["RuntimeError: Connection reset by peer"], "a-1": ["x", "ValueError: NaN", "bye"]}
    found = [pod("a-0", "Failed", 1, "1"), pod("a-1", "Failed", 3, "2")]
    seen = blame.blamed(found, lambda name, *_: logs[name])
    assert seen and (seen.failure.code, seen.words, seen.end_of_log) == (3, "ValueError: NaN", ["x", "ValueError: NaN"])
    assert blame.blamed([pod("a-0", "Succeeded", 0)], lambda *_: []) is None
    assert words.quoted([]) == []


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_a_stopped_job_is_known_by_what_stopped_it(framework: str) -> None:
    made = job("a", framework)
    assert status.outcome(made)[0] == status.RUNNING and status.finished(made) == ""
    change = status.stop_of(entry(made))
    assert (change is None) == (framework == "volcano")
    if change:
        assert status.outcome(made | change) == (status.STOPPED, "")
        done = job("a", framework, Complete="")
        assert status.outcome(done | change)[0] == status.SUCCEEDED


def test_long_notes_are_cut_unless_all_is_asked_for() -> None:
    row = listing.Row("a", "Job", "queued", "", None, None, note="x" * 100)
    assert listing.table([row]).endswith("x…") and listing.table([row], wide=True).endswith("x" * 100)


def test_a_pod_is_its_owner_s_where_two_jobs_have_a_name() -> None:
    from trainyard.observe import jobs

    one, two = job("a"), job("a", "tensorflow")
    around = jobs.NamespaceSnapshot(pods=[of_job(one, "master", 0, "Running")])
    assert len(jobs.snapshot_of(around, one, "a").pods) == 1 and jobs.snapshot_of(around, two, "a").pods == []


def test_the_end_of_a_log_is_found_where_a_rank_s_name_stands_in_front() -> None:
    log = ["epoch 1", "[rank3]: ValueError: NaN", "[rank2]: RuntimeError: Connection closed by peer"]
    assert words.leading_to(log, words.last_words(log)) == log[:2]
