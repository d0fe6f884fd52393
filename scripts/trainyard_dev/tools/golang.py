"""The Go compiler: its path, and the version for a module."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from trainyard.shell import run

# Where Go's own archive installs it; sudo drops that folder from PATH.
ELSEWHERE = "/usr/local/go/bin"
FETCHES_SINCE = (1, 21)  # since this version Go downloads the newer one that a go.mod requires


def program() -> str:
    """Go's path, from PATH or the folder of its archive; plain `go` where it is in neither."""
    return shutil.which("go") or shutil.which("go", path=ELSEWHERE) or "go"


def go(*argv: str | Path, cwd: Path, env: Mapping[str, str], check: bool = True, timeout: float | None = None,
       hint: str = "") -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Runs Go as `shell.run` does."""
    return run([program(), *argv], cwd=cwd, env=env, check=check, timeout=timeout, hint=hint)


def env() -> dict[str, str]:
    """Variables that select this machine's compiler if new enough, else the release that go.mod requires.

    Distributions have an older one than some modules require, and Debian's does not download one by default.
    """
    return {"GOTOOLCHAIN": os.environ.get("GOTOOLCHAIN") or "auto", "GOWORK": "off"}
