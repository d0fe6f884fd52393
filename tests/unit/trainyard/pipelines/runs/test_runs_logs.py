"""Logs of steps: what Argo's executor writes into them stays out."""

from __future__ import annotations

import pytest

from trainyard.pipelines.runs.logs import own

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
