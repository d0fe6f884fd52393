"""Artifacts of a run by the names that people give them."""

from __future__ import annotations

import pytest

from trainyard.errors import UsageError
from trainyard.pipelines.runs import stored
from trainyard.pipelines.runs.model import Run, Step


def step(*path: str, artifacts: tuple[str, ...]) -> Step:
    left = [{"name": name, "s3": {"bucket": "runs", "key": f"{path[-1]}/{name}"}} for name in artifacts]
    return Step("/".join(path), path, "done", outputs={"artifacts": left})


RUN = Run(
    "sweep-1",
    "vision",
    "Succeeded",
    (
        step("judge", artifacts=("plot", "lineage", "main-logs")),
        step("halving", "judge-2", artifacts=("plot", "model")),
        step("halving", "for-loop-3.0", "train", artifacts=("weights",)),
        step("halving", "for-loop-3.1", "train", artifacts=("weights",)),
    ),
)


@pytest.mark.parametrize(
    ("wanted", "key"),
    [
        ("judge/plot", "judge/plot"),
        ("judge-2/plot", "judge-2/plot"),
        ("halving/judge-2/plot", "judge-2/plot"),
        ("model", "judge-2/model"),
        ("for-loop-3.1/train/weights", "train/weights"),
    ],
)
def test_the_end_of_a_name_is_enough(wanted: str, key: str) -> None:
    assert stored.find(RUN, wanted).key == key


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("train/weights", r"several artifacts are called train/weights: halving/for-loop-3\.0/train/weights, halving/"),
        ("plot", "several artifacts are called plot: judge/plot, halving/judge-2/plot"),
        ("nothing", r"no artifact nothing; there are: .*`trainyard runs artifacts sweep-1` lists them"),
        ("2/plot", "no artifact 2/plot"),
        ("lineage", "no artifact lineage"),
    ],
)
def test_names_that_are_not_there_or_not_one(wanted: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        stored.find(RUN, wanted)
