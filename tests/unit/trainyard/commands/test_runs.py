"""`trainyard runs` on a fake team: training jobs and runs of pipelines, one noun for both."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from runs_cluster import Team, group, job, of_job, pod, warning, workflow

from trainyard.kinds import registry
from trainyard.kube import Access
from trainyard.training import actions, follow

FULL = "0/4 nodes are unavailable"
KINDS = pytest.mark.parametrize("framework", registry.FRAMEWORKS)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, trainyard: Callable[..., Any]) -> Callable[..., Any]:
    """`on(team)("list")` runs `trainyard runs list` there."""
    monkeypatch.setattr(actions, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(follow, "POLL_INTERVAL_S", 0.01)
    monkeypatch.setenv("COLUMNS", "200")

    def use(team: Team) -> Callable[..., Any]:
        monkeypatch.setattr(Access, "connect", lambda self: team)
        return lambda *words: trainyard("runs", *words)

    return use


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


def waiting() -> Team:
    """A job in the queue behind another gang, a failed run, a running job, one of a step, and a transfer."""
    queued, runs = job("digits-abc", created="2026-03-01T10:00:00Z"), job("big", "mpi", "2026-03-01T08:00:00Z")
    step = job("mnist-1-train", labels={"trainyard.io/job": "mnist-1-train", "trainyard.io/run": "mnist-1"})
    moved = job("trainyard-transfer-1", "job", labels={"trainyard.io/transfer": "x"})
    failed = workflow("mnist-1", "Failed", message="main: Error (exit code 1): ValueError: no")
    return Team(
        *(queued, runs, step, moved),
        pods=[of_job(runs, "launcher", 0, "Running")],
        podgroups=[group("other", "Pending", "1"), group("digits-abc", "Pending", "2", FULL)],
        **{"workflows.argoproj.io": [failed]},
    )


def test_jobs_are_listed_beside_runs_with_why_they_wait(on: Any) -> None:
    done = on(waiting())("list")
    assert done.code == 0, done.err
    head, *lines = done.out.splitlines()
    assert head.split()[:4] == ["NAME", "KIND", "STATE", "DONE"] and head.split()[-1] == "NOTE"
    assert [line.split()[:3] for line in lines] == [
        ["digits-abc", "PyTorchJob", "queued"],
        ["mnist-1", "pipeline", "failed"],
        ["big", "MPIJob", "running"],
    ]
    assert lines[0].endswith(f"in queue speech, number 2 of 2 of this team: {FULL}")
    assert lines[1].endswith("train: ValueError: no (exit code 1)") and " 1/1 " in lines[2]


def test_the_list_as_data_and_as_names(on: Any) -> None:
    run = on(waiting())
    assert run("list", "-o", "name").out.split() == ["digits-abc", "mnist-1", "big"]
    found = json.loads(run("list", "-o", "json").out)
    assert [found[0][key] for key in ("name", "kind", "state")] == ["digits-abc", "PyTorchJob", "queued"]
    assert {tuple(sorted(one)) for one in found} == {tuple(sorted(found[0]))}
    assert found[0]["queue"] == "vision" and found[0]["message"].startswith("in queue speech, number 2 of 2")
    assert [line.split()[0] for line in run("list", "--pipeline", "mnist").out.splitlines()[1:]] == ["mnist-1"]


def test_a_step_of_a_run_that_waits_says_so_in_the_list(on: Any) -> None:
    held = pod("mnist-1-train", "Pending")
    held["metadata"]["annotations"] = {"workflows.argoproj.io/node-id": "n", "scheduling.k8s.io/group-name": "g"}
    held["spec"] = {}
    team = Team(pods=[held], podgroups=[group("g", "Pending", "1", FULL)], **{
        "workflows.argoproj.io": [workflow("mnist-1", "Running", phase="Pending")]})  # fmt: skip
    assert on(team)("list").out.splitlines()[1].endswith(f"train: 1 of 1 in queue speech: {FULL}")


@KINDS
def test_every_kind_is_listed_shown_and_found_also_without_our_labels(on: Any, framework: str) -> None:
    made = job("plain", framework, labels={})
    running = of_job(made, "worker", 0, "Running")
    running["metadata"]["labels"] = {"volcano.sh/job-name": "plain"}
    run = on(Team(made, pods=[running]))
    assert rows(run("list").out)[0][0] == "plain" and "running" in run("list").out
    shown = run("show", "plain")
    assert shown.code == 0 and "1 pod running on node-0" in shown.out, shown.err


def test_without_argo_the_jobs_are_still_listed(on: Any) -> None:
    team = Team(job("a"))
    team.absent = {"workflows.argoproj.io"}
    assert rows(on(team)("list").out)[0][0] == "a"
    done = on(team)("list", "--pipeline", "mnist")
    assert done.code == 1 and "has no Argo Workflows" in done.err
    assert "no runs in vision" in on(Team())("list").err


def failed() -> Team:
    made = job("digits-abc", Failed="backoff limit")
    pods = [of_job(made, "master", 0, "Failed", 143), of_job(made, "worker", 0, "Failed", 7)]
    log = ["epoch 1", "Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: NaN", "bye"]
    return Team(made, pods=pods, logs={"digits-abc-worker-0": log, "digits-abc-master-0": ["epoch 1", "epoch 2"]})


def test_a_failed_job_names_its_first_failure_and_the_end_of_its_log(on: Any) -> None:
    done = on(failed())("show", "digits-abc")
    assert done.code == 0 and "digits-abc in vision: failed, PyTorchJob" in done.out
    assert "digits-abc failed: digits-abc-worker-0 ended with code 7: ValueError: NaN" in done.out
    assert done.out.splitlines()[-3:] == ["  | Traceback (most recent call last):", '  |   File "train.py", line 3',
                                          "  | ValueError: NaN"]  # fmt: skip
    found = json.loads(on(failed())("show", "digits-abc", "-o", "json").out)
    assert [(one["rank"], one["state"]) for one in found["pods"]] == [("master-0", "failed"), ("worker-0", "failed")]
    followed = on(failed())("show", "digits-abc", "-f")
    assert followed.code == 1 and "ValueError: NaN" in followed.err and "the end of its log" in followed.err


def test_a_job_whose_image_never_comes_says_so_with_its_warnings(on: Any) -> None:
    made = job("a")
    held = of_job(made, "master", 0, "Pending")
    held["status"]["containerStatuses"][0]["state"] = {
        "waiting": {"reason": "ErrImagePull", "message": "no such image"}
    }
    team = Team(made, pods=[held], events=[warning("a-master-0", "Pod", "Failed", "pulling x failed")])
    out = on(team)("show", "a").out
    assert "a in vision: blocked" in out and "master-0: ErrImagePull: no such image" in out
    assert "warning: a-master-0: Failed: pulling x failed" in out


def test_the_log_is_of_the_rank_that_speaks_or_of_another(on: Any) -> None:
    run = on(failed())
    assert run("logs", "digits-abc").out == "epoch 1\nepoch 2\n"
    assert run("logs", "digits-abc", "worker-0", "--tail", "1").out == "bye\n"
    assert run("logs", "digits-abc", "-f").out == "epoch 1\nepoch 2\n"
    wrong = run("logs", "digits-abc", "worker-7")
    assert wrong.code == 1 and "has no rank worker-7; it has: master-0, worker-0" in wrong.err
    assert "training jobs do not support --attempt" in run("logs", "digits-abc", "--attempt", "1").err
    silent = on(waiting())("logs", "digits-abc")
    assert silent.code == 1 and "has no log: in queue speech, number 2 of 2" in silent.err
    gone = on(Team(job("a", spec={"runPolicy": {"suspend": True}})))("logs", "a")
    assert gone.code == 1 and "its pods are gone" in gone.err


@KINDS
def test_stop_ends_a_job_s_pods_as_its_kind_allows(on: Any, framework: str) -> None:
    team, kind = Team(job("a", framework)), registry.of_framework(framework)
    done = on(team)("stop", "a")
    assert done.code == 0 and "stays in s3://runs/vision/jobs/a/" in done.out
    assert "trainyard train --resume a" in done.out
    change = {"spec": {"suspend": True}} if framework == "job" else {"spec": {"runPolicy": {"suspend": True}}}
    if framework == "volcano":
        assert team.deleted == [f"{kind.resource}/a"] and "a Volcano Job can't be stopped and kept" in done.out
    else:
        assert team.patched == [(f"{kind.resource}/a", change)] and team.deleted == []


def test_a_job_that_was_stopped_stays_to_be_looked_at(on: Any) -> None:
    made = job("a", spec={"runPolicy": {"suspend": True}})
    assert "stopping" in on(Team(made, pods=[of_job(made, "master", 0, "Running")]))("list").out
    run = on(Team(made))
    assert "a in vision: stopped, PyTorchJob" in run("show", "a").out
    assert "had ended already" in run("stop", "a").out
    followed = run("show", "a", "-f")
    assert followed.code == 1 and "a was stopped" in followed.err
    assert run("delete", "a").out == "job a deleted\n"


def test_a_step_s_job_is_stopped_with_its_run(on: Any) -> None:
    team = waiting()
    done = on(team)("stop", "mnist-1-train")
    assert done.code == 2 and "is a step of run mnist-1. stop the run: trainyard runs stop mnist-1" in done.error()
    assert (team.patched, team.deleted) == ([], [])


def test_delete_wants_an_end_or_force(on: Any) -> None:
    team = waiting()
    done = on(team)("delete", "big")
    assert done.code == 2 and "job big has not ended. stop it first, or add --force" in done.error()
    assert on(team)("delete", "big", "mnist-1", "--force").out == "job big deleted\nrun mnist-1 deleted\n"
    assert team.deleted == ["mpijobs.kubeflow.org/big", "workflows.argoproj.io/mnist-1"]


def twins() -> Team:
    return Team(job("x"), job("x", "tensorflow"), job("y"), **{"workflows.argoproj.io": [workflow("y")]})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("y", "y is ambiguous: pipeline/y, job/y. use one of these names"),
        ("x", "x is ambiguous: pytorchjobs.kubeflow.org/x, tfjobs.kubeflow.org/x. use one of these names"),
        ("job/x", "job/x is ambiguous: pytorchjobs.kubeflow.org/x, tfjobs.kubeflow.org/x"),
        ("pod/x", "pod/x: invalid kind of run: pod. write pipeline/x or job/x"),
        ("none", "no run or job none in vision. list all runs with `trainyard runs list`"),
        ("job/none", "no job none in vision"),
        ("pipeline/x", "no run x in vision"),
    ],
)
def test_names_that_stand_for_several_or_for_nothing(on: Any, name: str, says: str) -> None:
    done = on(twins())("show", name)
    assert done.code in (1, 2) and says in done.error()


def test_a_whole_name_says_which_one(on: Any) -> None:
    run = on(twins())
    assert "x in vision: waiting, TFJob" in run("show", "tfjobs.kubeflow.org/x").out
    assert "x in vision: waiting, PyTorchJob" in run("show", "pytorch/x").out
    assert "y in vision: waiting, PyTorchJob" in run("show", "job/y").out
    assert "y in vision: running, 0 of 1 steps" in run("show", "pipeline/y").out
    names = ["pipeline/y", "pytorchjobs.kubeflow.org/x", "pytorchjobs.kubeflow.org/y", "tfjobs.kubeflow.org/x"]
    assert sorted(run("list", "-o", "name").out.split()) == names


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("retry", "x"), "which can't be retried. submit the job again with `trainyard train`; --resume x starts"),
        (("artifacts", "x"), "which has no artifacts. fetch its results with `trainyard train --attach x`"),
        (("show", "x", "--lineage"), "which has no lineage. show the job with `trainyard runs show x`"),
    ],
)
def test_what_only_runs_of_pipelines_have_is_refused_for_jobs(on: Any, words: tuple[str, ...], says: str) -> None:
    done = on(Team(job("x")))(*words)
    assert done.code == 2 and f"job x is a training job, {says}" in done.error()


def test_names_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    from trainyard.commands import run_names

    monkeypatch.setattr(Access, "connect", lambda self: waiting())
    context, argument = click.Context(click.Command("show")), click.Argument(["run"])
    assert run_names.complete(context, argument, "") == ["digits-abc", "mnist-1", "big"]
    assert run_names.complete(context, argument, "b") == ["big"]
    assert run_names.complete_pipelines(context, argument, "") == ["mnist-1"]


def test_a_job_of_another_make_speaks_by_its_first_rank(on: Any) -> None:
    made = job("plain", "tensorflow", labels={})
    running = of_job(made, "worker", 0, "Running")
    running["spec"]["containers"] = [{"name": "other"}]
    running["status"]["containerStatuses"][0]["name"] = "other"
    team = Team(made, pods=[running], logs={"plain-worker-0": ["epoch 1"]})
    assert on(team)("logs", "plain").out == "epoch 1\n"


def test_following_a_job_of_another_make_does_not_take_it_away(on: Any) -> None:
    refused = warning("plain", "PyTorchJob", "FailedCreatePod", "pods x is forbidden: violates PodSecurity")
    team = Team(job("plain", labels={}), events=[refused])
    done = on(team)("show", "plain", "-f")
    assert done.code == 1 and "pods are refused" in done.err and "trainyard runs delete" in done.err
    assert team.deleted == []
