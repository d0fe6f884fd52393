"""Where a scheduler's processor time goes: its own profile while it works, in shares."""

from __future__ import annotations

import http.client
import re
import tempfile
import threading
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev import tools
from trainyard_dev.tools import golang

LINE = re.compile(r"^\s*\S+\s+[\d.]+%\s+[\d.]+%\s+\S+\s+([\d.]+)%\s+(\S+)", re.MULTILINE)
# Share -> the function whose time, with all that it calls, is meant. Collecting and allocating are parts of the others.
SHARES = {
    "filter": "volcano.sh/volcano/pkg/scheduler/util.(*predicateHelper).PredicateNodes.func1",
    "score": "volcano.sh/volcano/pkg/scheduler/util.PrioritizeNodes.func1",
    "batch": "volcano.sh/volcano/pkg/scheduler/framework.(*Session).BatchNodeOrderFn",
    "open": "volcano.sh/volcano/pkg/scheduler/framework.OpenSession",
    "close": "volcano.sh/volcano/pkg/scheduler/framework.CloseSession",
    "bind": "volcano.sh/volcano/pkg/scheduler/cache.(*SchedulerCache).Bind",
    "collect": "runtime.gcBgMarkWorker",
    "allocate": "runtime.mallocgc",
}


class Profile:
    """Takes the profile of a program for some seconds from now on; `shares` waits for its end."""

    def __init__(self, port: int, seconds: int, binary: Path) -> None:
        self._port, self._seconds, self._binary = port, seconds, binary
        self._taken = b""
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def shares(self) -> dict[str, float]:
        """Percent of the processor time for each of SHARES. Raises TrainyardError where there is no profile."""
        self._thread.join()
        if not self._taken:
            raise TrainyardError("the scheduler gave no profile", hint="see its log")
        with tempfile.NamedTemporaryFile(suffix=".pb.gz") as file:
            file.write(self._taken)
            file.flush()
            return shares(text(Path(file.name), self._binary))

    def _take(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self._seconds + 60)
        try:
            connection.request("GET", f"/debug/pprof/profile?seconds={self._seconds}")
            answer = connection.getresponse()
            self._taken = answer.read() if answer.status == 200 else b""
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()


def of_volcano(port: int, seconds: int) -> Profile:
    """vc-scheduler's profile from now on."""
    return Profile(port, seconds, tools.binary("vc-scheduler"))


def text(profile: Path, binary: Path) -> str:
    """All functions of a profile with the time of what they call."""
    flags = ["-top", "-cum", "-nodefraction=0", "-nodecount=100000"]
    return run([golang.program(), "tool", "pprof", *flags, binary, profile]).stdout


def shares(top: str) -> dict[str, float]:
    """The shares in what `go tool pprof -top -cum` printed, in percent; a function that is not there took nothing."""
    found = {name: float(percent) for percent, name in LINE.findall(top)}
    return {share: found.get(function, 0.0) for share, function in SHARES.items()}
