"""The checked pipeline is the one sent: it is compiled and translated once."""

from typing import Any

import pytest

from trainyard import contract
from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard.pipelines import translate
from trainyard.pipelines.submit import prepare

SITE = contract.load(ROOT / "tests" / "policies" / "teams.yaml")
MNIST = ROOT / "pipelines" / "mnist.py"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of each translation."""
    found, plain = list[dict[str, Any]](), translate.workflow

    def counted(pipeline: Any, arguments: dict[str, Any], settings: Any) -> dict[str, Any]:
        found.append(arguments)
        return plain(pipeline, arguments, settings)

    monkeypatch.setattr(translate, "workflow", counted)
    return found


def test_it_is_translated_once_with_the_arguments_that_were_given(calls: list[dict[str, Any]]) -> None:
    made = prepare.workflow(prepare.Wanted(MNIST, given=["lr=0.5"]), SITE, "vision", print)
    assert [call["lr"] for call in calls] == ["0.5"]
    given = {one["name"]: one.get("value") for one in made.workflow["spec"]["arguments"]["parameters"]}
    assert given["lr"] == "0.5"


def test_what_is_wrong_with_an_argument_is_reported_as_such(calls: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match="mnist") as error:
        prepare.workflow(prepare.Wanted(MNIST, given=["rate=0.5"]), SITE, "vision", print)
    assert "rate" in str(error.value) and "lint found" not in str(error.value)
