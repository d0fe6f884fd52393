"""Compared facts of a training job: its flags, its code, the place of its metrics."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from sites import with_team

from trainyard.commands import run_names
from trainyard.errors import TrainyardError
from trainyard.kinds import JobSpec, TeamConfig, manifest, registry
from trainyard.kinds.flags import flags
from trainyard.kube import KubeError
from trainyard.policy.lint.pods import pods
from trainyard.training import facts


class Store:
    """Objects by their place."""

    def __init__(self, **objects: Any) -> None:
        self.objects = {place.replace("__", "/"): json.dumps(value).encode() for place, value in objects.items()}

    def stat(self, place: str) -> bool:
        if place.startswith("closed/"):
            raise TrainyardError("AccessDenied")
        return place in self.objects

    def list(self, place: str) -> dict[str, int]:
        return {name.removeprefix(place): len(data) for name, data in self.objects.items() if name.startswith(place)}

    def read(self, place: str) -> bytes:
        return self.objects[place]


def made(framework: str, *command: str, **more: Any) -> dict[str, Any]:
    spec = JobSpec("digits", command, framework=framework, team="vision", **more)
    return manifest(spec, TeamConfig.of(with_team(), "vision"))


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_the_flags_of_the_program_and_not_of_what_starts_it(framework: str) -> None:
    job = made(framework, "python", "train.py", "--lr", "0.1", "--epochs=3", "--fast")
    found: dict[str, str] = {}
    for pod in pods(job):
        found |= flags(facts._words(pod))
    assert found == {"lr": "0.1", "epochs": "3", "fast": "true"}


@pytest.mark.parametrize("framework", registry.FRAMEWORKS)
def test_code_and_results_of_what_train_sends(framework: str) -> None:
    job = made(
        framework, "python", "train.py", code="vision/code/x.tar.gz", code_sha256="ab" * 32, output="vision/jobs/d"
    )
    assert facts.places(job) == ["runs/vision/jobs/d/results"]
    assert "sha256 abababababab" in {facts.code(pod) for pod in pods(job)}


def test_code_of_an_image_changes_with_its_command() -> None:
    one, two = (facts.code(pods(made("job", "python", "train.py", "--lr", lr))[0]) for lr in ("1", "2"))
    assert one != two and one.startswith("sha256 ")


def test_metrics_are_the_numbers_of_the_first_file_that_is_there() -> None:
    store: Any = Store(**{"runs__b__metrics.json": {"accuracy": 0.9, "n": 3, "name": "x", "ok": True}})
    assert facts.metrics(store, ["runs/a", "closed/x", "runs/b"]) == {"accuracy": 0.9, "n": 3.0}
    assert facts.metrics(store, ["runs/a"]) == {}
    broken: Any = Store(**{"runs__c__metrics.json": [1]})
    assert facts.metrics(broken, ["runs/c"]) == {}


def test_of_a_job_that_is_gone_the_metrics_stay() -> None:
    kube: Any = SimpleNamespace(namespace="vision")
    left: Any = Store(
        runs__vision__jobs__d__results__metrics=1,
        **{"runs__vision__jobs__d__outcome__metrics.json": {"loss": 0.5}, "runs__vision__jobs__d2__x": 1},
    )
    found = facts.gone(kube, "d", left)
    assert (found.state, found.metrics, found.parameters) == ("gone", {"loss": 0.5}, {})
    assert facts.gone(kube, "d2", left).metrics == {}
    with pytest.raises(KubeError, match="no run or job e in vision, and no such results in the store"):
        facts.gone(kube, "e", left)


def test_a_name_that_nothing_has_is_a_job_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(status: int) -> None:
        def raising(kube: object, text: str) -> None:
            raise KubeError("no", status=status)

        monkeypatch.setattr(run_names, "named", raising)

    kube: Any = None
    refuse(404)
    for text in ("d", "job/d", "pytorchjobs.kubeflow.org/d"):
        assert run_names.named_or_gone(kube, text) == run_names.NamedRun("d", gone=True)
    refuse(403)
    with pytest.raises(KubeError):
        run_names.named_or_gone(kube, "d")
