"""A model server as a process of this machine, on its own ports."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.apiserver.processes import free_ports
from trainyard_dev.serving import environment

START_S = 120.0
_LOOK_S = 0.05


@dataclass
class Server:
    """A running server; `log`: its output."""

    process: subprocess.Popen[bytes]
    port: int
    admin: int
    log: Path

    def output(self) -> str:
        """The server's whole output."""
        return self.log.read_text()

    def admin_page(self, path: str) -> tuple[int, str]:
        """Status and text from the second port; 0 where it doesn't answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_ready(self) -> None:
        """Returns once the server is ready. Raises TrainyardError with its output when it ends or takes longer."""
        end = time.monotonic() + START_S
        while self.admin_page("/readyz")[0] != 200:
            if self.process.poll() is not None or time.monotonic() > end:
                state = "ended" if self.process.poll() is not None else f"is not ready after {START_S:g} s"
                raise TrainyardError(f"the server {state}: {self.output()[-2000:]}", where=str(self.log))
            time.sleep(_LOOK_S)

    def stop(self, timeout: float = 60.0) -> int:
        """Asks the server to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self) -> None:
        """Kills the server at once, in any state."""
        self.process.kill()
        self.process.wait()


def start(folder: Path, log: Path, **env: str) -> Server:
    """Starts a server of a model's folder, without waiting until it is ready.

    Args:
        env: further variables, such as MAX_BATCH.
    """
    port, admin = free_ports(2)
    said = {
        "MODEL_DIR": str(folder),
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "ADMIN_PORT": str(admin),
        "PYTHONPATH": str(ROOT / "scripts"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DRAIN_S": "0.2",
    }
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LD_LIBRARY_PATH", "LANG")}
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [environment.python(), "-m", "model_server"], env=kept | said | env, stdout=stream, stderr=stream
        )
    return Server(process, port, admin, log)
