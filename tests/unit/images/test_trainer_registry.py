"""Registered models: found by name, copied whole, and the error where there is none."""

import json
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="numpy is not installed, as the trainers need it")

from mnist import perceptron, registry
from mnist.errors import TrainError


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"TRAINYARD_BUCKETS": str(tmp_path / "buckets"), "TRAINYARD_TEAM": "vision"}


def trained(folder: Path, seed: int) -> str:
    folder.mkdir(exist_ok=True)
    (folder / perceptron.FILE).write_bytes(perceptron.to_bytes(perceptron.start(seed)))
    return str(folder)


def test_a_name_means_what_was_registered_last_and_a_version_what_it_names(tmp_path: Path, env: dict[str, str]) -> None:
    cards = [
        registry.register(trained(tmp_path / f"m{seed}", seed), "digits", {"accuracy": seed}, env) for seed in (1, 2)
    ]
    assert registry.find("digits", env) == cards[1]
    assert registry.find(f"digits@{cards[0]['version']}", env) == cards[0]
    again = registry.register(trained(tmp_path / "m1", 1), "digits", {"accuracy": 9}, env)
    assert again == cards[0] == registry.find("digits", env)  # the same content keeps its card, and is the newest


def test_files_come_as_they_were_registered_or_not_at_all(tmp_path: Path, env: dict[str, str]) -> None:
    card = registry.register(trained(tmp_path / "m", 1), "digits", {}, env)
    registry.fetch(card, str(tmp_path / "brought"), env)
    assert (tmp_path / "brought" / perceptron.FILE).read_bytes() == (tmp_path / "m" / perceptron.FILE).read_bytes()
    kept = tmp_path / "buckets" / card["uri"].removeprefix("s3://") / perceptron.FILE
    kept.write_bytes(b"other")
    with pytest.raises(TrainError, match=r"model\.npz is not what was registered"):
        registry.fetch(card, str(tmp_path / "again"), env)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("digits", "no model digits is registered; run a pipeline that registers it"),
        ("digits@0123", "no model digits@0123 is registered"),
        ("../up", "invalid model name: '../up'"),
        ("", "invalid model name: ''"),
    ],
)
def test_a_model_that_is_not_there(wanted: str, says: str, env: dict[str, str]) -> None:
    with pytest.raises(TrainError) as caught:
        registry.find(wanted, env)
    assert says in str(caught.value)


def test_outside_of_a_pipeline_there_is_no_registry(env: dict[str, str]) -> None:
    with pytest.raises(TrainError, match="TRAINYARD_TEAM is not set"):
        registry.find("digits", {})


def test_the_card_is_readable_by_people(tmp_path: Path, env: dict[str, str]) -> None:
    card = registry.register(trained(tmp_path / "m", 1), "digits", {"accuracy": 0.9}, env)
    text = (tmp_path / "buckets" / card["uri"].removeprefix("s3://") / registry.CARD).read_text()
    assert json.loads(text)["accuracy"] == 0.9 and text.count("\n") > 5
