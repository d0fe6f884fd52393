"""Lineage files read into a tree and a graph."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.commands import runs as cli
from trainyard.errors import TrainyardError
from trainyard.pipelines.runs import lineage


def artifact(name: str, of: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "type": "system.Dataset", "uri": f"s3://runs/{of}/data", "sha256": "ab" * 32, "bytes": 2500,
    } | more  # fmt: skip


def step(task: str, *, second: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "version": 1, "run": "r1", "task": task, "component": f"comp-{task}", "image": "images/x:1",
        "node": f"r1-{task}", "state": "succeeded", "error": "", "started": f"2026-01-01T00:00:{second:02}Z",
        "finished": "2026-01-01T00:00:59Z", "parameters": {}, "results": {}, "inputs": [], "outputs": [],
    } | more  # fmt: skip


PREPARE = step("prepare", outputs=[artifact("rows", "a")])
TRAIN = step(
    "train", second=5, parameters={"lr": {"sha256": "cd" * 32, "value": 0.1}, "text": {"sha256": "ef" * 32}},
    inputs=[artifact("data", "a", run="r1", task="prepare"), artifact("old", "z", run="r0", task="fetch")],
    outputs=[artifact("model", "b")], results={"acc": {"sha256": "01" * 32, "value": 0.9}},
)  # fmt: skip
TEST = step(
    "test", second=9, inputs=[artifact("model", "b"), artifact("data", "a")],
    state="failed", error="ValueError: no\nmore",
)  # fmt: skip


def test_tree_leads_from_the_last_step_back() -> None:
    assert lineage.tree(lineage.read([TEST, PREPARE, TRAIN])).splitlines() == [
        "test  failed  50 s  images/x:1",
        "    ! ValueError: no",
        "    ← model  Dataset  2.5 kB  sha256 abababababab",
        "        train  succeeded  54 s  images/x:1",
        "            · lr = 0.1",
        "            · text = sha256 efefefefefef",
        "            = acc = 0.9",
        "            → model  Dataset  2.5 kB  sha256 abababababab",
        "            ← data  Dataset  2.5 kB  sha256 abababababab",
        "                prepare  succeeded  59 s  images/x:1",
        "                    → rows  Dataset  2.5 kB  sha256 abababababab",
        "            ← old  Dataset  2.5 kB  sha256 abababababab",
        "                made by fetch of run r0",
        "    ← data  Dataset  2.5 kB  sha256 abababababab",
        "        prepare  succeeded  59 s  images/x:1  (above)",
    ]


def test_what_the_cache_served_names_its_run_and_what_is_empty_is_left_out() -> None:
    given = {"queue": {"value": ""}, "env": {"value": {}}, "retries": {"value": 0}}
    assert lineage.tree(lineage.read([step("train", parameters=given)]), "r2").splitlines() == [
        "train  succeeded  59 s  images/x:1  of run r1",
        "    · retries = 0",
    ]


def test_graph_has_each_artifact_once() -> None:
    found = lineage.graph(lineage.read([PREPARE, TRAIN, TEST, TRAIN]))
    assert [one["id"] for one in found["steps"]] == ["r1/r1-prepare", "r1/r1-train", "r1/r1-test"]
    assert {one["id"] for one in found["artifacts"]} == {f"s3://runs/{name}/data" for name in "abz"}
    assert {"from": "r1/r1-prepare", "to": "s3://runs/a/data", "as": "rows"} in found["edges"]
    assert {"from": "s3://runs/a/data", "to": "r1/r1-train", "as": "data"} in found["edges"]


def test_steps_of_a_loop_stay_apart() -> None:
    both = [step("train", node="r1-0"), step("train", node="r1-1")]
    assert len(lineage.tree(lineage.read(both)).split("\n\n")) == 2


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "version"),
        (step("x", version=2), "version of a lineage file: 2"),
        (step("x", inputs=[{}]), "missing"),
        (step("x", started="yesterday"), "yesterday"),
    ],
)
def test_what_is_no_lineage_file_is_refused(document: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainyardError, match=words):
        lineage.read([document])


def test_sizes() -> None:
    found = [lineage.size(count) for count in (0, 999, 1500, 25_000_000, 3 * 10**13)]
    assert found == ["0 B", "999 B", "1.5 kB", "25 MB", "30 TB"]


def test_the_command_shows_it(monkeypatch: pytest.MonkeyPatch, trainyard: Callable[..., Any]) -> None:
    monkeypatch.setattr(cli.Access, "connect", lambda self: None)
    monkeypatch.setattr("trainyard.pipelines.runs.snapshot.Observer.poll", lambda self: SimpleNamespace(run=None))
    monkeypatch.setattr(cli, "_lineage_files", lambda kube, run: [TRAIN])
    done = trainyard("runs", "show", "r2", "--lineage")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "train  succeeded  54 s  images/x:1  of run r1"
