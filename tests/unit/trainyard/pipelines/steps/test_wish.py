"""The object that a step makes: its name, its owner, what it holds, and what is refused before a server sees it."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.pipelines.steps import component
from trainyard.pipelines.steps.run import Run
from trainyard.pipelines.steps.wish import CONTENT, Wish

ENV = {
    "TRAINYARD_RUN": "sweep-1", "TRAINYARD_RUN_UID": "u1", "TRAINYARD_TEAM": "vision",
    "TRAINYARD_STEP": '{"task": "ray"}',
}  # fmt: skip
RAY = {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {"replicas": 2.0, "entry": "python3 {file} --lr={lr}"}}


def wish(env: dict[str, str] | None = None, **given: Any) -> Wish:
    return Wish.of({"manifest": RAY, **given}, Run.of({**ENV, **(env or {})}))


def test_its_name_follows_from_run_task_and_content() -> None:
    first = wish().manifest["metadata"]["name"]
    assert first.startswith("rayjob-") and first == wish().manifest["metadata"]["name"]
    others = [
        wish({"TRAINYARD_RUN_UID": "u2"}),
        wish({"TRAINYARD_STEP": '{"task": "again"}'}),
        wish(settings={"lr": 0.5}),
        wish(
            manifest={**RAY, "metadata": {"generateName": "a-name-that-is-much-longer-than-any-object-may-have-one-"}}
        ),
    ]
    names = {first, *(one.manifest["metadata"]["name"] for one in others)}
    assert len(names) == 5 and max(map(len, names)) <= 63
    assert wish(manifest={**RAY, "metadata": {"name": "mine"}}).title == "RayJob mine"


def test_it_belongs_to_the_run_and_says_so() -> None:
    meta = wish().manifest["metadata"]
    assert meta["namespace"] == "vision"
    assert meta["labels"] == {"trainyard.io/run": "sweep-1", "trainyard.io/task": "ray"}
    [owner] = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Workflow", "sweep-1", "u1")
    kept = wish(keep=True).manifest["metadata"]
    assert "ownerReferences" not in kept and kept["annotations"][CONTENT] == meta["annotations"][CONTENT]


def test_values_of_the_step_are_put_in_with_their_types() -> None:
    manifest = {**RAY, "spec": {"replicas": "{workers:json}", "entry": "run {file} {lr} {other}", "env": ["{workers}"]}}
    for workers in (3.0, "3"):  # of the pipeline itself, of another step
        made = wish(manifest=manifest, settings={"workers": workers, "file": "a.py", "lr": 0.1}).manifest
        assert made["spec"] == {"replicas": 3, "entry": "run a.py 0.1 {other}", "env": ["3"]}
    assert wish().manifest["spec"]["replicas"] == 2, "kfp makes fractions of whole numbers"
    assert manifest["spec"]["replicas"] == "{workers:json}"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"manifest": {"kind": "Job"}}, "manifest is no object of Kubernetes. give one object, with apiVersion"),
        ({"manifest": [RAY]}, "manifest is no object"),
        ({"manifest": {"apiVersion": "v1", "kind": "List", "items": []}}, "manifest is a List"),
        (
            {"manifest": {**RAY, "metadata": {"namespace": "speech"}}},
            "manifest names the namespace speech, and the run is in vision. leave out its metadata.namespace",
        ),
        ({"success_condition": "status.phase =="}, "success_condition: 'status.phase ==' can't be read"),
        ({"failure_condition": "status.n > x"}, "failure_condition: 'x' is no number"),
        ({"manifest": {**RAY, "spec": "{n:json}"}, "settings": {"n": "two"}}, "n is 'two', which is no JSON"),
        ({"timeout": "soon"}, "'soon' is no length of time"),
    ],
)
def test_what_can_not_be_made_is_said(given: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainyardError) as caught:
        wish(**given)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("conditions", "status", "ended"),
    [
        ({}, {"phase": "Done"}, ("", "")),
        ({"success_condition": "status.phase == Done"}, {"phase": "Done"}, ("succeeded", "")),
        ({"success_condition": "status.phase == Done"}, {}, ("", "")),
        (
            {"success_condition": "status.n > 1", "failure_condition": "status.phase in (Lost, Failed)"},
            {"n": 2, "phase": "Lost"},
            ("failed", "status.phase is Lost"),
        ),
    ],
)
def test_when_it_has_ended(conditions: dict[str, str], status: dict[str, Any], ended: tuple[str, str]) -> None:
    assert wish(**conditions).ended({"status": status}, known=False) == ended


def test_the_platform_knows_when_its_own_kinds_have_ended() -> None:
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "spec": {}}
    own = wish(manifest=job)
    assert own.waits(known=True) and not own.waits(known=False)
    assert own.ended({**job, "status": {"state": {"phase": "Running"}}}, known=True) == ("", "")
    assert own.ended({**job, "status": {"state": {"phase": "Completed"}}}, known=True) == ("succeeded", "")
    assert own.ended({**job, "status": {"state": {"phase": "Aborted"}}}, known=True) == ("failed", "aborted")


def test_on_one_machine_nothing_is_made_and_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    env = {**ENV, "TRAINYARD_LOCAL": "1"}
    name, value = component.create({"manifest": RAY, "output": "status.url"}, env)
    assert name.startswith("rayjob-") and value == ""
    assert capsys.readouterr().out == f"not honoured here: RayJob {name} is not made\n"
