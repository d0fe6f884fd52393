"""Runs as users see them, from the nodes that Argo's controller leaves."""

import base64
import copy
import gzip
import json
from datetime import datetime
from typing import Any

import pytest

from trainyard import structured
from trainyard.errors import TrainyardError
from trainyard.pipelines.runs import explain, nodes, output, table
from trainyard.pipelines.runs.model import Step
from trainyard.pipelines.runs.snapshot import RunSnapshot

T0 = "2026-03-01T10:00:00Z"
NOW = datetime.fromisoformat("2026-03-01T10:02:05+00:00")


def _node(id: str, name: str, kind: str, phase: str, **more: Any) -> dict[str, Any]:
    shown = more.pop("displayName", name.rsplit(".", 1)[-1])
    return {"id": id, "name": name, "displayName": shown, "type": kind, "phase": phase, "startedAt": T0, **more}


def _workflow(phase: str = "Running") -> dict[str, Any]:
    """prepare came from the cache, train is at its second try, two tasks of a loop, evaluate waits."""
    found = [
        _node("w", "w", "DAG", phase, displayName="w", children=["p"]),
        _node("p", "w.prepare", "Pod", "Succeeded", boundaryID="w", finishedAt=T0, memoizationStatus={"hit": True}),
        _node("t", "w.train", "Retry", "Running", boundaryID="w", children=["t0", "t1"]),
        _node("t0", "w.train(0)", "Pod", "Failed", boundaryID="w", message="main: Error (exit code 3): no GPU"),
        _node("t1", "w.train(1)", "Pod", "Pending", boundaryID="w", nodeFlag={"retried": True}),
        _node("l", "w.loop", "TaskGroup", "Running", boundaryID="w", children=["l0", "l1"]),
        _node("l0", "w.loop(0:a.b)", "DAG", "Running", boundaryID="w", displayName="loop(0:a.b)"),
        _node("s0", "w.loop(0:a.b).score", "Pod", "Running", boundaryID="l0", displayName="score"),
        _node("l1", "w.loop(1:c)", "DAG", "Running", boundaryID="w", displayName="loop(1:c)"),
        _node("s1", "w.loop(1:c).score", "Skipped", "Skipped", boundaryID="l1", message="when 'c == a' is false"),
    ]
    tasks = [
        {"name": "prepare"},
        {"name": "train", "depends": "prepare.Succeeded"},
        {"name": "loop", "depends": "prepare"},
        {"name": "evaluate", "depends": "train.Succeeded && loop"},
    ]
    return {
        "metadata": {
            "name": "w",
            "namespace": "vision",
            "uid": "u",
            "creationTimestamp": T0,
            "labels": {"trainyard.io/pipeline": "mnist", "trainyard.io/experiment": "first"},
        },
        "spec": {
            "entrypoint": "root",
            "templates": [{"name": "root", "dag": {"tasks": tasks}}],
            "podMetadata": {"annotations": {"scheduling.volcano.sh/queue-name": "vision"}},
        },
        "status": {"phase": phase, "startedAt": T0, "nodes": {node["id"]: node for node in found}},
    }


def _states(workflow: dict[str, Any]) -> dict[str, str]:
    return {step.name: step.state for step in nodes.run(workflow).steps}


def test_a_row_for_each_task_whatever_nodes_there_are() -> None:
    assert _states(_workflow()) == {
        "prepare": "cached",
        "train": "pending",
        "loop(0:a.b)/score": "running",
        "loop(1:c)/score": "skipped",
        "evaluate": "waiting",
    }
    run = nodes.run(_workflow())
    train = run.find("train")
    assert (train.attempts, train.nodes) == (2, ("t0", "t1"))
    assert run.find("evaluate").after == ("train", "loop")
    assert (run.queue, run.pipeline, run.experiment, run.state) == ("vision", "mnist", "first", "running")


def test_turns_of_a_loop_have_numbers_as_local_runs_write_them() -> None:
    """Items may be long and full of quotes: they are no part of a name that people type."""
    workflow = _workflow()
    item = r"{\"lr\":0.1}"
    workflow["status"]["nodes"] = {
        node["id"]: node
        for node in [
            _node("w", "w", "DAG", "Running", displayName="w"),
            _node("l", "w.for-loop-1", "DAG", "Running", boundaryID="w"),
            _node("e", f"w.for-loop-1.each(0:{item})", "DAG", "Running", boundaryID="l", displayName=f"each(0:{item})"),
            _node("s", f"w.for-loop-1.each(0:{item}).score", "Pod", "Succeeded", boundaryID="e", displayName="score"),
        ]
    }
    run = nodes.run(workflow)
    assert run.find("for-loop-1.0/score").item == '{"lr":0.1}'
    assert table.lines(RunSnapshot(run, NOW))[2].split(maxsplit=3) == [
        "for-loop-1.0/score",
        "done",
        "2m05s",
        'item {"lr":0.1}',
    ]


def test_a_turn_over_an_artifact_shows_where_it_lies() -> None:
    assert nodes._turns(("loop", "each(2:at:s3://runs/a/out,sha:0af3)", "see")) == (
        ("loop.2", "see"),
        "s3://runs/a/out",
    )


def test_what_argo_says_of_steps_that_never_ran_is_not_repeated() -> None:
    omitted = Step("a", ("a",), "omitted", "omitted: depends condition not met")
    skipped = Step("b", ("b",), "skipped", "when 'false' evaluated false")
    assert (omitted.reason, skipped.reason) == ("", "its condition is false")


def test_what_holds_a_cache_is_no_row() -> None:
    """A step with cache and retries is a graph of one task in Argo; its user knows of one step."""
    workflow = _workflow()
    memo = {"hit": False, "key": "k", "cacheName": "c"}
    workflow["status"]["nodes"] = {
        node["id"]: node
        for node in [
            _node("w", "w", "DAG", "Running", displayName="w"),
            _node("t", "w.train", "DAG", "Running", boundaryID="w", memoizationStatus=memo),
            _node("r", "w.train.run", "Retry", "Running", boundaryID="t", children=["r0"]),
            _node("r0", "w.train.run(0)", "Pod", "Running", boundaryID="t", displayName="run(0)"),
            _node("p", "w.prepare", "DAG", "Succeeded", boundaryID="w", memoizationStatus={"hit": True}),
        ]
    }
    assert _states(workflow) == {"prepare": "cached", "train": "running", "loop": "waiting", "evaluate": "waiting"}
    assert nodes.run(workflow).find("train").nodes == ("r0",)


def test_many_nodes_come_packed() -> None:
    workflow = _workflow()
    packed = copy.deepcopy(workflow)
    found = packed["status"].pop("nodes")
    packed["status"]["compressedNodes"] = base64.b64encode(gzip.compress(json.dumps(found).encode())).decode()
    assert _states(packed) == _states(workflow)
    packed["status"]["compressedNodes"] = "bm8="
    with pytest.raises(TrainyardError, match="the nodes of run w can't be unpacked"):
        nodes.run(packed)


def test_a_workflow_that_nobody_has_looked_at() -> None:
    workflow = _workflow()
    del workflow["status"]
    run = nodes.run(workflow)
    assert run.state == "pending"
    assert [step.state for step in run.steps] == ["waiting"] * 4


def test_names_that_are_not_there_or_not_one() -> None:
    run = nodes.run(_workflow())
    assert run.find("loop(0:a.b)/score").state == "running"
    with pytest.raises(TrainyardError, match=r"run w has several steps score: loop\(0:a.b\)/score, loop"):
        run.find("score")
    with pytest.raises(TrainyardError, match="run w has no step nothing; it has: "):
        run.find("nothing")


def test_the_table() -> None:
    run = nodes.run(_workflow())
    train = run.find("train").id
    snapshot = RunSnapshot(run, NOW, {train: "queued"}, {train: "1 of 2 in queue vision: 0/3 nodes are available"})
    assert table.lines(snapshot) == [
        "w in vision: running, 2 of 5 steps, 2m05s, queue vision, experiment first",
        "  STEP               STATE       TIME  TRIES  NOTE",
        "  loop(0:a.b)/score  running    2m05s",
        "  loop(1:c)/score    skipped    2m05s         when 'c == a' is false",
        "  prepare            cached        0s",
        "  train              queued     2m05s      2  1 of 2 in queue vision: 0/3 nodes are available",
        "  evaluate           waiting                  after train, loop",
    ]
    assert all(len(line) <= 60 for line in table.lines(snapshot, width=60))


def test_a_table_that_does_not_fit() -> None:
    workflow = _workflow()
    for number in range(40):
        name = f"w.many({number}:x)"
        node = _node(f"m{number}", name, "Pod", "Succeeded", boundaryID="w", displayName=f"many({number}:x)")
        workflow["status"]["nodes"][node["id"]] = node
    workflow["status"]["nodes"]["m7"]["phase"] = "Failed"
    snapshot = RunSnapshot(nodes.run(workflow), NOW)
    lines = table.lines(snapshot, height=12)
    assert len(lines) <= 12
    assert any("many(7:x)" in line for line in lines), "what failed is always shown"
    assert lines[-1].startswith("  and 38 more: ")
    assert [step.name for step in table.visible(snapshot, 12)] == [line.split()[0] for line in lines[2:-1]]


def test_changes_are_reported_once() -> None:
    first = RunSnapshot(nodes.run(_workflow()), NOW)
    reported = [line.split(" ", 1)[1] for line in table.changes(None, first)]
    assert "prepare: cached" in reported
    assert "run w: running" in reported
    assert not any("evaluate" in line for line in reported)
    assert table.changes(first, first) == []
    later = _workflow()
    later["status"]["nodes"]["t1"] |= {"phase": "Running"}
    later["status"]["nodes"]["t"] |= {"phase": "Failed", "finishedAt": "2026-03-01T10:02:00Z"}
    later["status"]["nodes"]["t1"] |= {
        "phase": "Failed",
        "message": "main: Error (exit code 1): ValueError: loss is NaN",
    }
    reported = [line.split(" ", 1)[1] for line in table.changes(first, RunSnapshot(nodes.run(later), NOW))]
    assert reported == ["train: failed after 2m00s, ValueError: loss is NaN (exit code 1)"]


def test_a_failure_is_explained_by_its_step() -> None:
    """The workflow has no message of its own, and the retry only says that there are no more."""
    workflow = _workflow("Failed")
    found = workflow["status"]["nodes"]
    found["t"] |= {"phase": "Failed", "message": "No more retries left", "finishedAt": T0}
    found["t1"] |= {"phase": "Failed", "message": "main: Error (exit code 1): RuntimeError: rank 0: loss is NaN"}
    workflow["status"]["finishedAt"] = T0
    run = nodes.run(workflow)
    assert run.ended
    assert explain.text(run) == "step train failed after 2 tries: RuntimeError: rank 0: loss is NaN (exit code 1)"


def test_the_log_ends_with_the_error() -> None:
    """Output printed before an error may come after it."""
    workflow = _workflow("Failed")
    error = "main: Error (exit code 1): ValueError: bad\n[KFP Executor] much else"
    workflow["status"]["nodes"]["t1"] |= {"phase": "Failed", "message": error}
    workflow["status"]["nodes"]["t"] |= {"phase": "Failed"}
    step = nodes.run(workflow).find("train")
    assert step.reason == "ValueError: bad (exit code 1)"
    assert explain.end_of(["start", "Traceback", "ValueError: bad", "{", "}"], step) == [
        "start",
        "Traceback",
        "ValueError: bad",
    ]
    assert explain.end_of(["start", "}"], step) == ["start", "}"]
    framed = [
        '  File "<frozen runpy>", line 88, in x',
        '  File "/s/kfp/dsl/executor.py", line 4, in y',
        "    call()",
        "    ^",
    ]
    own = ["Traceback", '  File "/tmp/ephemeral_component.py", line 3, in boom', "    1 / 0", "ValueError: bad"]
    assert explain.end_of([own[0], *framed, *own[1:]], step) == own


def test_a_group_that_could_not_be_made_is_a_row() -> None:
    workflow = _workflow("Failed")
    node = _node("g", "w.broken", "DAG", "Error", boundaryID="w", message="withParam value could not be parsed")
    workflow["status"]["nodes"] = {"w": workflow["status"]["nodes"]["w"], "g": node}
    assert explain.text(nodes.run(workflow)) == "step broken failed: withParam value could not be parsed"


def test_exit_tasks_say_so() -> None:
    workflow = _workflow()
    exit_node = _node("x", "w.onExit", "DAG", "Running", displayName="w.onExit")
    task = _node("y", "w.onExit.cleanup", "Pod", "Running", boundaryID="x", displayName="cleanup")
    workflow["status"]["nodes"] |= {"x": exit_node, "y": task}
    assert _states(workflow)["at exit/cleanup"] == "running"


def test_an_exit_task_that_has_not_begun_is_a_row() -> None:
    workflow = _workflow()
    last = {"name": "at-exit", "steps": [[{"name": "cleanup", "template": "cleanup"}]]}
    workflow["spec"] |= {"onExit": "at-exit", "templates": [*workflow["spec"]["templates"], last]}
    assert _states(workflow)["at exit/cleanup"] == "waiting"


def test_stopped() -> None:
    workflow = _workflow("Failed")
    workflow["spec"]["shutdown"] = "Stop"
    run = nodes.run(workflow)
    assert run.state == "stopped"
    assert explain.text(run).splitlines()[0] == "run w was stopped"


def test_a_run_as_data() -> None:
    found = output.data(nodes.run(_workflow()))
    assert found["pipeline"] == "mnist"
    assert found["started"] == T0
    assert [step["name"] for step in found["steps"] if step["state"] == "cached"] == ["prepare"]
    assert json.loads(structured.text(found, "json")) == found


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (8.9, "8s"), (200, "3m20s"), (7500, "2h05m"), (361000, "4d04h")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert table.span(seconds) == text
