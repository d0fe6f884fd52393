"""The Go compiler: where it is, and which one a module gets."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from trainyard.shell import run

# Where Go's own archive puts it; sudo leaves that folder out of PATH.
ELSEWHERE = "/usr/local/go/bin"
FETCHES_SINCE = (1, 21)  # from here on Go fetches the newer one that a go.mod asks for


def program() -> str:
    """Go's path, of PATH or of where its archive is unpacked; plain `go` where it is not there."""
    return shutil.which("go") or shutil.which("go", path=ELSEWHERE) or "go"


def go(*argv: str | Path, cwd: Path, env: Mapping[str, str], check: bool = True, timeout: float | None = None,
       hint: str = "") -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Runs Go as `shell.run` does."""
    return run([program(), *argv], cwd=cwd, env=env, check=check, timeout=timeout, hint=hint)


def env() -> dict[str, str]:
    """This machine's own compiler where it is new enough, else the release that go.mod asks for, fetched by Go.

    Distributions have an older one than some modules ask for, and Debian's does not fetch unless it is told to.
    """
    return {"GOTOOLCHAIN": os.environ.get("GOTOOLCHAIN") or "auto", "GOWORK": "off"}
