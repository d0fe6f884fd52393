"""Results of a run: artifacts by their names in the pipeline, and only the steps' own lines of logs."""

import pytest

from trainyard.errors import UsageError
from trainyard.pipelines.runs import stored
from trainyard.pipelines.runs.logs import own
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
        ("nothing", r"no artifact nothing; available: .*list them with `trainyard runs artifacts sweep-1`"),
        ("2/plot", "no artifact 2/plot"),
        ("lineage", "no artifact lineage"),
    ],
)
def test_names_that_are_not_there_or_not_one(wanted: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        stored.find(RUN, wanted)


ARGOS = b'time="2026-03-01T10:00:00 UTC" level=info msg="sub-process exited" argo=true error="<nil>"'

KFP = b"[KFP Executor 2026-03-01 10:00:00,001 INFO]: "
WROTE = KFP + b"Wrote executor output file to /s3/x."


@pytest.mark.parametrize(
    ("log", "seen"),
    [
        ([b"epoch 1", ARGOS, b"epoch 2", ARGOS], [b"epoch 1", b"epoch 2"]),
        ([b"epoch 1", b"cleaned up", ARGOS, b"Error: exit status 143"], [b"epoch 1", b"cleaned up"]),
        ([b"ValueError: no", b"Error: exit status 1"], [b"ValueError: no"]),
        # The step's own lines stay, also those that read the same.
        ([b"Error: exit status 2", b"Error: exit status 1"], [b"Error: exit status 2"]),
        ([b"Error: exit status 2", b"trying again", ARGOS], [b"Error: exit status 2", b"trying again"]),
        ([b"Error: no such file"], [b"Error: no such file"]),
        ([], []),
        (
            [KFP + b"Got executor_input:", b"{", b'    "inputs": {}', b"}", KFP + b"loss is 0.5", b"\xff", b"}", WROTE],
            [KFP + b"loss is 0.5", b"\xff", b"}"],  # the step's own line, by Python's logging
        ),
    ],
)
def test_only_the_step_s_own_lines(log: list[bytes], seen: list[bytes]) -> None:
    assert list(own(log)) == seen
