"""Runs the kit here as on a borrowed machine: in a container that has what such a machine has, within its limits."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import proxies
from trainyard_dev.engine import Engine
from trainyard_dev.images.build import build as build_image
from trainyard_dev.images.source import choose
from trainyard_dev.kit.build import LIST
from trainyard_dev.versions import load

MIB = 1024**2
TRANSFER, PAUSE, CALL, WHOLE = 64 * MIB, 30, 600, 900  # bytes and seconds; what a borrowed machine allows
AGAIN = 75  # the exit code that asks for the same call again
NAME = "trainyard-kit"
# A machine with xz, Python, and PyTorch in /opt/torch; no container engine and no iproute2.
MACHINE = """FROM {trainer}
USER 0:0
RUN apt-get update -q && apt-get install -qy --no-install-recommends xz-utils && rm -rf /var/lib/apt/lists/* \\
 && find /usr/lib/python3/dist-packages -xtype l -delete && cp -rL /usr/lib/python3/dist-packages /opt/torch
"""


@dataclass
class Lease:
    """Holds a machine: makes calls, and ends with an error as soon as one breaks a limit."""

    clock: Callable[[], float] = time.monotonic
    calls: list[tuple[float, float]] = field(default_factory=list)  # began, ended
    largest: int = 0  # bytes of a transfer

    def call(self, size: int, does: Callable[[], int]) -> int:
        """One call with so many bytes; returns its exit code. Raises TrainyardError naming a broken limit."""
        began = self.clock()
        code = does()
        ended = self.clock()
        pause = began - self.calls[-1][1] if self.calls else 0
        self.calls.append((began, ended))
        self.largest = max(self.largest, size)
        broken = {
            f"a transfer of {size / MIB:.1f} MiB (at most {TRANSFER // MIB})": size > TRANSFER,
            f"a pause of {pause:.0f} s (less than {PAUSE})": pause >= PAUSE,
            f"a call of {ended - began:.0f} s (at most {CALL})": ended - began > CALL,
            f"{self.spent():.0f} s in all (at most {WHOLE})": self.spent() > WHOLE,
        }
        for what, is_broken in broken.items():
            if is_broken:
                raise TrainyardError(f"a borrowed machine does not allow {what}", hint="make the kit smaller or faster")
        return code

    def spent(self) -> float:
        """Seconds from the first call to the end of the last."""
        return self.calls[-1][1] - self.calls[0][0]


def rehearse(engine: Engine, folder: Path, out: Path) -> list[dict[str, Any]]:
    """One run from nothing: the parts travel one by one, then the script runs until it has no more to do.

    Returns:
        the entries of its record, which is also copied to `out`.

    Raises:
        TrainyardError: no kit, a broken limit, or a failed step.
    """
    if not (folder / LIST).exists():
        raise TrainyardError("no kit in this folder", where=str(folder), hint="build one: `trainyard kit build FOLDER`")
    parts = [name for archive in json.loads((folder / LIST).read_text())["archives"].values() for name in archive]
    listed = run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"]).stdout.split("\0")
    tree = sum((ROOT / name).stat().st_size for name in listed if (ROOT / name).is_file())  # travels with each call
    trainer = build_image(engine, load().images["trainer-torch"], choose("build").base(engine))
    flags = ["--network", "host", *proxies.for_builds(), "-t", f"localhost/{NAME}", "-f", "-"]
    engine("build", *flags, folder / "machine", input=MACHINE.format(trainer=trainer), timeout=600)
    engine("rm", "-f", "-v", NAME, check=False)
    flags = ["--privileged", "--cgroupns", "private", "--network", "none", "-v", "/kit", "--entrypoint", "sleep"]
    engine("run", "-d", "--name", NAME, *flags, f"localhost/{NAME}", "infinity")
    lease = Lease()

    def send(name: str) -> int:
        engine("cp", folder / name, f"{NAME}:/kit/{name}")
        return 0

    def go() -> int:
        words = [engine.name, "exec", "-w", "/tree", NAME, "python3", "-m", "machine", "--mock"]  # prints as it goes
        return subprocess.run(words, env={**os.environ, **engine.env}, timeout=CALL + 5, check=False).returncode

    try:
        engine("exec", NAME, "mkdir", "/tree")
        for one in ("machine", LIST):
            engine("cp", folder / one, f"{NAME}:/tree/{one}")
        for name in parts:
            lease.call(tree + (folder / name).stat().st_size, partial(send, name))
        while (code := lease.call(tree, go)) == AGAIN:
            pass
        engine("cp", f"{NAME}:/kit/out/.", out)
        print(f"{len(lease.calls)} calls, {lease.spent():.0f} s; largest transfer {lease.largest / MIB:.1f} MiB")
        if code:
            raise TrainyardError("a step failed", where=str(out / "report.md"), hint="the report has what it saw")
        steps: list[dict[str, Any]] = json.loads((out / "summary.json").read_text())["steps"]
        return steps
    finally:
        engine("rm", "-f", "-v", "-t", "0", NAME, check=False)
