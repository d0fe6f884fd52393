"""What a run costs: processor time and memory of programs, and writes that the API server took."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from trainyard.bench.world import World

TICK = os.sysconf("SC_CLK_TCK")
WRITES = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
VERBS = ("POST", "PUT", "PATCH", "APPLY")
LEASES = "leases"  # written by the server itself


def processor_s(*pids: int) -> float:
    """Seconds of processor time that these processes have used."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(fields[11]) + int(fields[12]) for fields in stats) / TICK


def peak_mib(*pids: int) -> float:
    """The most memory that each of these processes has held at a time, in MiB, all together."""
    found = [re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) for pid in pids]
    return sum(int(one[1]) for one in found if one) / 1024


def writes(world: World) -> dict[str, float]:
    """How often each resource was written so far, refused writes too."""
    text = str(world.server.call("GET", "/metrics").body["text"])
    return counted(text)


def more(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """What was added between two counts, by name."""
    return {name: value - before.get(name, 0.0) for name, value in after.items() if value > before.get(name, 0.0)}


def counted(text: str) -> dict[str, float]:
    """The same from the text of the API server's metrics, without what the server writes for itself."""
    found: dict[str, float] = {}
    for labels, value in WRITES.findall(text):
        of = dict(LABEL.findall(labels))
        if of["verb"] in VERBS and of["resource"] != LEASES:
            name = "/".join(filter(None, (of["resource"], of["subresource"])))
            found[name] = found.get(name, 0.0) + float(value)
    return found
