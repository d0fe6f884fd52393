"""Several ranks of a node find each other and end together; the wrapper of torchrun, with a shell instead of it."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainyard.kinds import rejoin
from trainyard.kinds.builders import common
from trainyard.kinds.builders.pytorch import REJOIN
from waiting import wait

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


# torchrun's part: it starts a rank, and when it is asked to end it would close the place where ranks meet.
AGENT = "trap 'echo closed >> {log}; exit 1' TERM; sh -c '{rank}' & wait"
RANK = 'trap "echo saved >> {log}; exit 0" TERM; echo up >> {log}; while true; do sleep 0.1; done'


def started(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", REJOIN.read_text(), *words], text=True, stdout=subprocess.PIPE)


@pytest.mark.parametrize(("code", "times"), [(0, 1), (3, 3)])
def test_a_command_that_fails_is_tried_again_and_its_exit_code_is_the_pod_s(
    code: int, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PET_RDZV_ENDPOINT", f"{socket.gethostname()}:1")  # this pod is where ranks meet
    log = tmp_path / "log"
    assert started("sh", "-c", f"echo up >> {log}; exit {code}").wait(timeout=30) == code
    assert log.read_text().split() == ["up"] * times


def test_a_pod_without_a_place_to_meet_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("PET_RDZV_ENDPOINT", f"127.0.0.1:{port}")
    monkeypatch.setattr("trainyard.kinds.rejoin.AWAY_S", 0.5)
    assert rejoin.main(["sh", "-c", "exit 1"]) == rejoin.ANEW > 127
    with socket.create_server(("127.0.0.1", 0)) as there:
        monkeypatch.setenv("PET_RDZV_ENDPOINT", f"127.0.0.1:{there.getsockname()[1]}")
        assert rejoin.main(["sh", "-c", "exit 1"]) == 1


def test_ranks_of_a_later_node_are_told_where_the_others_are() -> None:
    out, _ = started("sh", "-c", "echo $TORCH_DISABLE_SHARE_RDZV_TCP_STORE").communicate(timeout=30)
    assert out == "1\n"


def test_a_pod_that_has_to_go_lets_its_rank_save_and_closes_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    running = started("sh", "-c", AGENT.format(log=log, rank=RANK.format(log=log)))
    wait(log.exists, "the rank", 30)
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=30) == 128 + signal.SIGTERM
    assert log.read_text().split() == ["up", "saved"]
