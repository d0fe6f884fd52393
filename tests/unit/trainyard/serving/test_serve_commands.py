"""Arguments and output of `trainyard serve` and `trainyard models`, with neither cluster nor store."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner, Result
from played_objects import Objects

from trainyard import contract
from trainyard.cli import trainyard
from trainyard.errors import UsageError
from trainyard.kube import KubeError
from trainyard.kube.access import Access
from trainyard.serving import apply, cards, plan, render, settings, shelf

CARD = cards.read({"name": "digits", "version": "v1"}, "runs/vision/models/digits/v1")


class Shelf:
    def find(self, wanted: str) -> cards.Card:
        return CARD

    def listed(self, name: str) -> list[cards.Card]:
        return []


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The values that are rendered."""
    values: list[dict[str, Any]] = []

    @contextmanager
    def opened(*_: Any) -> Iterator[Shelf]:
        yield Shelf()

    def objects(made: dict[str, Any], namespace: str) -> list[dict[str, Any]]:
        values.append(made)
        return [{"kind": "Service", "metadata": {"name": "model-digits"}}]

    def planned(known: Any, team: str, card: Any, wish: plan.ServeRequest, before: Any) -> dict[str, Any]:
        return {"keys": wish.keys, "before": before}

    monkeypatch.setattr(Access, "connect", lambda self: Objects())
    monkeypatch.setattr(contract, "live", lambda kube: None)
    monkeypatch.setattr(shelf, "opened", opened)
    monkeypatch.setattr(plan, "part", lambda known: {})
    monkeypatch.setattr(plan, "values", planned)
    monkeypatch.setattr(render, "objects", objects)
    return values


def run(*words: str) -> Result:
    return CliRunner().invoke(trainyard, list(words))


def refusal(*words: str) -> str:
    """The sentence of what is refused as wrong usage."""
    error = run(*words).exception
    assert isinstance(error, UsageError), error
    return str(error)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_key_is_shown_beside_the_objects_that_have_its_digest(said: list[dict[str, Any]], form: str) -> None:
    """For users who apply the objects in another way: without the key the server would refuse every request."""
    result = run("serve", "digits", "--key", "--dry-run", "-o", form)
    assert result.exit_code == 0, result.output
    [key] = [line for line in result.stderr.splitlines() if line.startswith(plan.KEY)]
    assert key not in result.stdout and len(said[0]["keys"]) == 1
    assert not any(line.startswith(plan.KEY) for line in run("serve", "digits", "--dry-run").output.splitlines())


def test_an_amount_that_is_none_is_refused_before_anything_is_asked() -> None:
    assert refusal("serve", "digits", "--cpu", "much") == "invalid quantity: --cpu much. write it like 500m."
    assert refusal("serve", "digits", "--memory", "1GB") == "invalid quantity: --memory 1GB. write it like 1Gi."
    assert "invalid quantity: --cpu -1" in refusal("serve", "digits", "--cpu=-1")


@pytest.mark.parametrize("metric", ["accuracy", "accuracy=high", "accuracy=nan", "accuracy=inf", "=0.5"])
def test_a_metric_is_a_number_with_a_name(metric: str, tmp_path: Any) -> None:
    assert f"invalid number: {metric!r}" in refusal("models", "register", str(tmp_path), "digits", "--metric", metric)


def test_a_list_of_nothing_has_no_line(said: list[dict[str, Any]]) -> None:
    assert run("models", "list", "digits", "-o", "name").stdout == ""
    assert "invalid model name: 'Di gits'" in refusal("models", "list", "Di gits")


def test_what_kserve_serves_keeps_its_values_too() -> None:
    named = {"name": "model-digits"}
    noted = {"metadata": {**named, "annotations": {settings.NOTE: json.dumps({"replicas": 3})}}}
    by_kserve: Any = Objects(inferenceservices=[noted])
    assert settings.read(apply.served(by_kserve, "digits")) == {"replicas": 3}
    ours: Any = Objects(deployments=[{"metadata": named}], inferenceservices=[noted])
    assert settings.read(apply.served(ours, "digits")) == {}
    closed: Any = Objects(inferenceservices=KubeError("closed", status=403))
    absent: Any = Objects()
    assert apply.served(closed, "digits") is None is apply.served(absent, "digits")
