"""Starts server processes of our own and ends them with their owner."""

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep

from trainyard.errors import TrainyardError
from trainyard.shell import last_lines

PR_SET_PDEATHSIG = 1


class Server:
    """One running program with its log in a file; `env` is added to this process's environment."""

    def __init__(self, argv: list[str | Path], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name, self.log = Path(argv[0]).name, log
        libc = ctypes.CDLL(None)  # loaded before the fork
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [str(word) for word in argv],
                env=os.environ | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C in the terminal reaches the owner alone, which then ends this one
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
            )

    def wait(self, ready: Callable[[], bool], seconds: float) -> None:
        """Waits until `ready` returns true. Raises TrainyardError with the end of the log when it ends or is late."""
        end = monotonic() + seconds
        while not ready():
            if self._process.poll() is not None:
                raise TrainyardError(f"{self.name} exited at once: {self._last_words()}", hint="run the command again")
            if monotonic() > end:
                raise TrainyardError(
                    f"{self.name} was not ready within {seconds:.0f} s: {self._last_words()}",
                    hint="free memory and CPU, then run the command again",
                )
            sleep(0.05)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of all processes that do its work."""
        return (self.pid,)

    @property
    def ended(self) -> bool:
        """Whether it has ended, by itself or not."""
        return self._process.poll() is not None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pauses the process while the body runs."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kills the process: no data that it holds is kept."""
        self._process.kill()
        self._process.wait()

    def _last_words(self) -> str:
        return last_lines(self.log.read_text(errors="replace"), 2)


def free_ports(count: int) -> list[int]:
    """Unused ports of 127.0.0.1."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
