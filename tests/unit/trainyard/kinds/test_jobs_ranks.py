"""Several ranks of a node: they know each other, and end together."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainyard.kinds.builders import common

SCRIPT = """
import os, sys, time
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
print(" ".join(os.environ[name] for name in names), *sys.argv[1:], flush=True)
if sys.argv[1:] == ["fail"]:
    if os.environ["LOCAL_RANK"] == "1":
        sys.exit(7)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    "node",
    [{"PET_NNODES": "2", "PET_NODE_RANK": "1", "WORLD_SIZE": "4", "RANK": "1"}, {"WORLD_SIZE": "2", "RANK": "1"}],
)
def test_ranks_know_each_other_and_one_that_fails_ends_the_others(tmp_path: Path, node: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    env = {"PATH": "/usr/bin:/bin", "MASTER_ADDR": "m", **node}
    words = [sys.executable, "-c", common.RANKS.read_text(), "2", str(tmp_path / "train.py")]
    ran = subprocess.run([*words, "x"], env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert sorted(ran.stdout.splitlines()) == ["2 4 0 2 m x", "3 4 1 2 m x"]
    began = time.monotonic()
    assert subprocess.run([*words, "fail"], env=env, capture_output=True, check=False).returncode == 7
    assert time.monotonic() - began < 20


def test_ranks_end_when_their_node_is_asked_to(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    words = [sys.executable, "-c", common.RANKS.read_text(), "2", str(tmp_path / "train.py")]
    ran = subprocess.Popen(words, stdout=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"})
    assert ran.stdout and [ran.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
    ran.terminate()
    assert ran.wait(20) == 143
