"""Queries of the machine. Checks get all their facts from ``Machine``, so that tests can replace it."""

import functools
import gzip
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from trainyard_dev.tools import golang

ELSEWHERE = f"/usr/sbin:/sbin:/usr/local/sbin:{golang.ELSEWHERE}"


class Machine:
    """This machine, by the queries that the checks need. None of them raises."""

    def uid(self) -> int:
        return os.geteuid()

    def which(self, program: str) -> str | None:
        """The path of a program; also searches the folders that are only in root's PATH."""
        return shutil.which(program) or shutil.which(program, path=ELSEWHERE)

    def run(self, *argv: str) -> tuple[int, str]:
        """Returns exit code and output (both streams) of a command; 127 if it isn't installed, 124 after 15 seconds."""
        return _run([self.which(argv[0]) or argv[0], *argv[1:]])

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def read(self, path: str) -> str:
        """The text of a file, unpacked if it is gzipped; empty where it can't be read."""
        try:
            if path.endswith(".gz"):
                with gzip.open(path, "rt", errors="replace") as file:
                    return file.read()
            return Path(path).read_text(errors="replace")
        except OSError:
            return ""

    def free_gb(self) -> float:
        """Free disk space in GB where the cache is."""
        folder = Path(self.cache())
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        try:
            return shutil.disk_usage(folder).free / 1e9
        except OSError:
            return 0.0

    def cache(self) -> str:
        return os.environ.get("TRAINYARD_CACHE") or str(Path.home() / ".cache" / "trainyard")

    def hard_limit(self, name: str) -> int | None:
        """A hard limit of this process, ``nofile`` or ``nproc``; None for unlimited."""
        value = resource.getrlimit({"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}[name])[1]
        return None if value == resource.RLIM_INFINITY else value

    def python(self) -> tuple[int, int, int]:
        return sys.version_info[:3]

    def has_venv(self) -> bool:
        return _run([sys.executable, "-c", "import venv, ensurepip"])[0] == 0

    @functools.cache  # noqa: B019  (one Machine a process)
    def registry(self) -> bool:
        from trainyard_dev.images.source import registry_answers

        return registry_answers(seconds=3)

    def tools_built(self) -> tuple[int, int]:
        """The number of sets of binaries in the cache, and the number of all sets."""
        from trainyard_dev.tools.build import is_built
        from trainyard_dev.versions import load

        tools = list(load().tools.values())
        return sum(is_built(tool) for tool in tools), len(tools)

    def go_needed(self) -> str:
        """The highest Go version that a go.mod of a tool set requires."""
        from trainyard.paths import ROOT
        from trainyard_dev import folders

        found = ["1.25"]
        for path in folders.each(ROOT, folders.TOOLS, "go.mod"):
            found += [line.split()[1] for line in path.read_text().splitlines() if line.startswith("go ")]
        return max(found, key=lambda text: tuple(int(part) for part in text.split(".") if part.isdigit()))

    def data(self) -> str:
        return self.variable("TRAINYARD_DATA")

    def variable(self, name: str) -> str:
        """The value of an environment variable; empty where it is not set."""
        return os.environ.get(name, "")


def kernel_release() -> str:
    return platform.release()


def _run(argv: Sequence[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            list(argv),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=15,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        return 127, f"{argv[0]} is not installed"
    except subprocess.TimeoutExpired:
        return 124, f"{argv[0]} did not answer within 15 s"
    except OSError as error:
        return 126, str(error)
    return done.returncode, (done.stdout + done.stderr).strip()
