"""The environment of a run: versions of the programs, and the machine."""

import os
import platform
import re
from pathlib import Path

from trainyard_dev.versions import load

MACHINE = "machine"
ALWAYS = ("kubernetes", "etcd")


def versions(scheduler: str) -> dict[str, str]:
    """Versions by name of the programs that run with a scheduler of this kind, and the machine's as `machine`."""
    tools = load().tools
    return {name: tools[name].version for name in (*ALWAYS, scheduler) if name in tools} | {MACHINE: machine()}


def programs(found: dict[str, str]) -> dict[str, str]:
    """The versions without the machine: what decides whether a result still holds."""
    return {name: version for name, version in found.items() if name != MACHINE}


def machine(cpuinfo: Path = Path("/proc/cpuinfo"), meminfo: Path = Path("/proc/meminfo")) -> str:
    """Cores that this process may use, memory in GiB, and the processor's name."""
    model = re.search(r"^model name\s*:\s*(.+)$", _text(cpuinfo), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", _text(meminfo), re.M)
    parts = [f"{len(os.sched_getaffinity(0))} cores"]
    parts += [f"{int(memory[1]) / 2**20:.0f} GiB"] if memory else []
    parts.append(model[1] if model else platform.machine())
    return ", ".join(parts)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
