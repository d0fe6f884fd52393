"""What low requests and high limits bring: pods that compute in bursts, as the kubelet would set their control groups.

A pod is a process that computes for a while and waits for a while, as a loader of data does. A node is some cores,
filled with as many pods as their requests leave room for. The kernel shares the cores among them by requests and stops
each at its limit: no scheduler, no kubelet and no container is needed to see what comes of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from trainyard.errors import TrainyardError
from trainyard_dev.bench import summary, tables
from trainyard_dev.bench.environment import machine
from trainyard_dev.bench.results import Figure

BURST_S, WAIT_S = 0.2, 0.3  # of computing on one core, of waiting
BUSY = 1.2  # a pod alone that takes as many times as long as it has to shares the cores with something else
PERIOD_US = 100_000  # the kubelet's, in which a limit is counted
USED = BURST_S / (BURST_S + WAIT_S)  # cores that a pod uses alone
WORK = """
import random, sys, time
group, bursts, burst, wait, seed = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
open(group, "w").write("0")
print("ready", flush=True)
sys.stdin.readline()
time.sleep(random.Random(seed).random() * (burst + wait))
begun, used = time.monotonic(), time.process_time()
for _ in range(bursts):
    until = time.process_time() + burst
    while time.process_time() < until:
        pass
    time.sleep(wait)
print(time.monotonic() - begun, time.process_time() - used, flush=True)
"""


@dataclass(frozen=True)
class Size:
    """What each pod of a node asks for, in cores; a limit of 0 is none."""

    name: str
    request: float
    limit: float = 0.0


ALONE = Size("alone", 1.0)
SIZES = (
    Size("the peak", 1.0, 1.0),
    Size("used and 15 %, no limit", USED * 1.15),
    Size("used and 15 %, limit twice that", USED * 1.15, USED * 2.3),
    Size("used and 15 %, limit the same", USED * 1.15, USED * 1.15),
    Size("half of what is used, no limit", USED / 2),
)


@dataclass(frozen=True)
class Row:
    """One size: `used` is a share of what is asked for, `slower` the time as a multiple of that alone."""

    name: str
    request: float
    limit: float
    pods: int
    used: float
    slower: float


@dataclass(frozen=True)
class Found:
    """All sizes on one machine."""

    machine: str
    cores: int
    seconds: float
    rows: tuple[Row, ...]


def measure(cores: int, seconds: float, root: Path = Path("/sys/fs/cgroup")) -> Found:
    """Every size on as many cores; a pod alone takes `seconds`.

    Raises:
        TrainyardError: this user may not make control groups, there are not so many cores, or they are busy.
    """
    there = sorted(os.sched_getaffinity(0))
    if cores > len(there):
        raise TrainyardError(f"this machine has {len(there)} cores for us", hint=f"give --cores {len(there)} or less")
    bursts = max(1, round(seconds / (BURST_S + WAIT_S)))
    with _node(root) as node:
        alone = fmean(taken for taken, _ in _run(node, ALONE, 1, there[:cores], bursts))
        if (times := alone / (bursts * (BURST_S + WAIT_S))) > BUSY:
            what = f"this machine is busy: a pod alone takes {times:.1f} times as long as it has to"
            raise TrainyardError(what, hint="measure when nothing else runs")
        rows = []
        for size in SIZES:
            pods = max(1, int(cores / size.request))
            ended = _run(node, size, pods, there[:cores], bursts)
            took, used = fmean(taken for taken, _ in ended), fmean(used / taken for taken, used in ended)
            rows.append(Row(size.name, size.request, size.limit, pods, used / size.request, took / alone))
    return Found(machine(), cores, seconds, tuple(rows))


@contextmanager
def _node(root: Path) -> Iterator[Path]:
    """A control group for a node's pods, gone at the end."""
    second = (root / "cgroup.controllers").is_file()
    node = (root if second else root / "cpu") / f"trainyard-bench-{os.getpid()}"
    try:
        node.mkdir()
        if second:
            (node / "cgroup.subtree_control").write_text("+cpu")
    except OSError as error:
        if node.is_dir():
            node.rmdir()
        raise TrainyardError(
            f"no control groups can be made: {error.strerror}", where=str(node), hint="run it as root, on the host"
        ) from None
    try:
        yield node
    finally:
        node.rmdir()


def _run(node: Path, size: Size, pods: int, cores: Sequence[int], bursts: int) -> list[tuple[float, float]]:
    """Seconds and CPU seconds of each pod, all begun together."""
    groups = [_group(node / f"pod-{number}", size) for number in range(pods)]
    running = []
    try:
        for number, group in enumerate(groups):
            words = [str(group / "cgroup.procs"), str(bursts), str(BURST_S), str(WAIT_S), str(number)]
            one = subprocess.Popen(
                [sys.executable, "-c", WORK, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            running.append(one)
            os.sched_setaffinity(one.pid, cores)
        for one in running:
            assert one.stdout and one.stdin
            if one.stdout.readline() != "ready\n":
                raise TrainyardError("a pod did not start", hint="run it as root, on the host")
        for one in running:
            assert one.stdin
            one.stdin.write("\n")
            one.stdin.flush()
        ended = []
        for one in running:
            assert one.stdout
            taken, used = one.stdout.readline().split()
            ended.append((float(taken), float(used)))
            one.wait()
        return ended
    finally:
        for one in running:
            one.kill()
            one.communicate()
        for group in groups:
            group.rmdir()


def _group(group: Path, size: Size) -> Path:
    """A pod's control group with what the kubelet writes for a request and a limit, of either version."""
    group.mkdir()
    quota = round(size.limit * PERIOD_US)
    shares = max(2, round(size.request * 1024))
    if (group / "cpu.shares").is_file():
        (group / "cpu.shares").write_text(str(shares))
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(quota or -1))
    else:
        (group / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262142))
        (group / "cpu.max").write_text(f"{quota or 'max'} {PERIOD_US}")
    return group


def table(found: Found) -> str:
    """All sizes as Markdown."""
    head = ["each pod asks for", "cores", "limit", "pods", "CPU used of CPU asked for, %", "times as long as alone"]
    rows = [
        [
            row.name, f"{row.request:.2f}", f"{row.limit:.2f}" if row.limit else "none", str(row.pods),
            tables.number(100 * row.used), f"{row.slower:.2f}",
        ]
        for row in found.rows
    ]  # fmt: skip
    return tables.markdown(head, rows)


def write(found: Found, folder: Path) -> Path:
    """The file of the figures."""
    said = {"request": "cores", "limit": "cores", "pods": "pods", "used": "of what was asked for", "slower": "times"}
    case, command = f"{found.cores} cores", "bin/trainyard bench sizes"
    figures = []
    for row in found.rows:
        for metric, unit in said.items():
            figures.append(Figure.once("sizes", case, row.name, metric, float(getattr(row, metric)), unit, command))
    return summary.write_made(figures, folder)
