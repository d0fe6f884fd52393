"""The cost of a run: processor time and memory of programs, and writes to the API server."""

import re
import time
from collections.abc import Mapping
from pathlib import Path

from trainyard_dev.bench.harness import Harness

SCHEDULED = 2  # the clock of a process that counts its time on processors: CPUCLOCK_SCHED in linux/posix-timers.h
WRITES = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
VERBS = ("POST", "PUT", "PATCH", "APPLY")
LEASES = "leases"  # written by the server itself


def processor_s(*pids: int) -> float:
    """Seconds of processor time that these processes and their threads, ended ones too, have used.

    Read from each process's own clock: /proc counts in hundredths of a second, and a few pods cost less.
    """
    return sum(time.clock_gettime(~pid << 3 | SCHEDULED) for pid in pids)


def peak_mib(*pids: int) -> float:
    """The sum of the peak memory of each of these processes, in MiB."""
    return sum(_mib(pid, "VmHWM") for pid in pids)


def resident_mib(pid: int) -> float:
    """The memory that this process holds now, in MiB."""
    return _mib(pid, "VmRSS")


def _mib(pid: int, key: str) -> float:
    found = re.search(rf"^{key}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def writes(harness: Harness) -> dict[str, float]:
    """The number of writes of each resource so far, including refused ones."""
    text = str(harness.server.call("GET", "/metrics").body["text"])
    return counted(text)


def more(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The difference between two counts, by name."""
    return {name: value - before.get(name, 0.0) for name, value in after.items() if value > before.get(name, 0.0)}


def counted(text: str) -> dict[str, float]:
    """Parses these counts from the API server's metrics, without what the server writes for itself."""
    found: dict[str, float] = {}
    for labels, value in WRITES.findall(text):
        of = dict(LABEL.findall(labels))
        if of["verb"] in VERBS and of["resource"] != LEASES:
            name = "/".join(filter(None, (of["resource"], of["subresource"])))
            found[name] = found.get(name, 0.0) + float(value)
    return found
