"""The object that a step creates, and its conditions: its name, its owner, refusals, and when it has ended."""

from typing import Any

import pytest

from trainyard.errors import TrainyardError, UsageError
from trainyard.pipelines.steps import component, conditions
from trainyard.pipelines.steps.run import Run
from trainyard.pipelines.steps.wish import CONTENT, ObjectRequest

ENV = {
    "TRAINYARD_RUN": "sweep-1", "TRAINYARD_RUN_UID": "u1", "TRAINYARD_TEAM": "vision",
    "TRAINYARD_STEP": '{"task": "ray"}',
}  # fmt: skip
RAY = {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {"replicas": 2.0, "entry": "python3 {file} --lr={lr}"}}


def wish(env: dict[str, str] | None = None, **given: Any) -> ObjectRequest:
    return ObjectRequest.of({"manifest": RAY, **given}, Run.of({**ENV, **(env or {})}))


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
        ({"manifest": {"kind": "Job"}}, "manifest is not a Kubernetes object. pass one object, with apiVersion"),
        ({"manifest": [RAY]}, "manifest is not a Kubernetes object"),
        ({"manifest": {"apiVersion": "v1", "kind": "List", "items": []}}, "manifest is a List"),
        (
            {"manifest": {**RAY, "metadata": {"namespace": "speech"}}},
            "manifest names the namespace speech, but the run is in vision. remove metadata.namespace",
        ),
        ({"success_condition": "status.phase =="}, "success_condition: 'status.phase ==' can't be read"),
        ({"failure_condition": "status.n > x"}, "failure_condition: invalid number: 'x'"),
        ({"manifest": {**RAY, "spec": "{n:json}"}, "settings": {"n": "two"}}, "invalid JSON in n: 'two'"),
        ({"timeout": "soon"}, "invalid duration: 'soon'"),
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
    assert capsys.readouterr().out == f"ignored locally: RayJob {name} is not made\n"


JOB: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "ray"}, "generation": 2},
    "status": {
        "phase": "Running", "ready": 2.0, "paused": False, "state": {"phase": "Pending"}, "message": "two, of 3",
        "conditions": [{"type": "Created", "status": "True"}, {"type": "Ready", "status": "False"}],
        "replicaStatuses": {"Worker": {"succeeded": 1}},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "condition",
    [
        "status.phase == Running",
        "status.phase = Running",
        "status.phase==Running,status.ready>1",
        "status.ready > 1, status.ready < 3",
        "status.ready == 2",
        "status.paused == false",
        "status.phase in (Succeeded, Running)",
        "status.phase notin (Succeeded,Failed)",
        "status.phase != Failed",
        "status.absent != Failed",
        "status.replicaStatuses.Worker.succeeded > 0",
        "status.conditions.0.type == Created",
        "status.conditions.#(type==Ready).status == False",
        'status.conditions.#(type == "Ready").status == "False"',
        "status.conditions.# == 2",
        r"metadata.labels.app\.kubernetes\.io/name == ray",
        "status.state",
        "!status.finished",
        'status.message == "two, of 3"',
        "status.state.phase in (Pending), !status.failed",
    ],
)
def test_it_holds(condition: str) -> None:
    assert all(part.holds(JOB) for part in conditions.parse(condition))


@pytest.mark.parametrize(
    "condition",
    [
        "status.phase == Succeeded",
        "status.phase in (Succeeded, Failed)",
        "status.phase notin (Running)",
        "status.absent == x",
        "status.absent > 0",
        "status.phase > 1",
        "status.ready > 2",
        "status.conditions.7.type == Ready",
        "status.conditions.#(type==Failed).status == True",
        "status.conditions.type == Ready",
        "!status.phase",
        "status.finished",
        "status.phase == Running, status.ready > 5",
    ],
)
def test_it_does_not_hold(condition: str) -> None:
    assert not all(part.holds(JOB) for part in conditions.parse(condition))


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("status.phase ==", "until: 'status.phase ==' can't be read. write path == value"),
        ("status.phase == Running && status.ready", "can't be read"),
        ("status.phase = Done, == x", "until: '== x' can't be read"),
        ("status.ready > many", "until: invalid number: 'many'. compare status.ready with a number, or use ==."),
        ("status.phase in Succeeded", "can't be read"),
    ],
)
def test_what_can_not_be_read_is_said(condition: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        conditions.parse(condition, "until")
    assert words in str(caught.value)


def test_how_it_stands_is_a_sentence() -> None:
    first, second = conditions.parse("status.phase == Succeeded, status.absent in (a,b)")
    assert f"{first.stands(JOB)}, wanted: {first}" == "status.phase is Running, wanted: status.phase == Succeeded"
    assert f"{second.stands(JOB)}, wanted: {second}" == "status.absent is not there, wanted: status.absent in (a, b)"


def test_values_as_they_are_handed_on() -> None:
    assert conditions.text(conditions.found(JOB, "status.ready")) == "2"
    assert conditions.text(conditions.found(JOB, "status.state")) == '{"phase":"Pending"}'
    assert conditions.found(JOB, "status.url") is conditions.NOTHING
