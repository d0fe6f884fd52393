"""Answers of the scheduler's extender: which job may be scheduled next."""

import http.client
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from trainyard_agent.install import gate
from trainyard_agent.install.gate import StrictFifoGate
from trainyard_dev.apiserver.processes import free_ports

ALLOCATED, PIPELINED = 2, 4


def may_go(order: StrictFifoGate, queue: str = "q") -> bool:
    return not order.overused({"queue": {"UID": queue}})["overused"]


def give(order: StrictFifoGate, pod: str, status: int = ALLOCATED) -> None:
    order.allocate({"task": {"UID": pod, "Status": status}})


def take(order: StrictFifoGate, pod: str) -> None:
    order.deallocate({"task": {"UID": pod, "Status": 1}})


@pytest.mark.parametrize(
    ("happened", "goes"),
    [
        ([(give, "a-0"), (give, "a-1")], True),
        ([], False),
        ([(give, "a-0"), (take, "a-0")], False),
        ([(give, "a-0"), (give, "a-1", PIPELINED)], False),
    ],
    ids=["was placed", "got no place", "was taken back", "got a promise of what another still holds"],
)
def test_the_next_job_has_its_turn_only_when_the_one_before_was_placed(happened: list[Any], goes: bool) -> None:
    order = StrictFifoGate()
    assert may_go(order)
    for act, *what in happened:
        act(order, *what)
    assert may_go(order) is goes


def test_queues_wait_for_themselves_only() -> None:
    order = StrictFifoGate()
    assert may_go(order, "first")
    assert may_go(order, "second")
    give(order, "b-0")
    assert not may_go(order, "first")
    assert may_go(order, "second")


def test_the_next_round_begins_anew() -> None:
    order = StrictFifoGate()
    assert may_go(order)
    assert not may_go(order)
    order.close({})
    assert may_go(order)


@contextmanager
def program(port: int) -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "trainyard_agent", "queue-gate", "--port", str(port)]
    found = {"PYTHONPATH": str(Path(gate.__file__).parents[2])}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=os.environ | found) as running:
        watchdog = threading.Timer(20, running.kill)
        watchdog.start()
        try:
            assert running.stdout
            assert "keeping the order" in running.stdout.readline()
            yield running
        finally:
            watchdog.cancel()
            running.kill()


def test_the_program_answers_over_one_connection_and_ends_when_told() -> None:
    [port] = free_ports(1)
    with program(port) as running, closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as line:

        def ask(path: str, body: Any) -> tuple[int, Any]:
            line.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = line.getresponse()
            return answer.status, json.loads(answer.read())

        queue = {"queue": {"UID": "q", "Name": "q", "Weight": 1}}
        assert ask("/overused", queue) == (200, {"overused": False})
        assert ask("/allocate", {"task": {"UID": "a", "Status": ALLOCATED}}) == (200, {})
        assert ask("/overused", queue) == (200, {"overused": False})
        assert ask("/overused", queue) == (200, {"overused": True})
        assert ask("/close", {}) == (200, {})
        assert ask("/overused", queue) == (200, {"overused": False})
        assert ask("/else", {})[0] == 404
        running.terminate()
        assert running.wait(10) == 0
