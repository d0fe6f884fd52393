"""Argo's own program: the last judge of a workflow before it is sent, and what tries runs again."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainyard_dev import tools
from trainyard.errors import UsageError
from trainyard.shell import run
from trainyard_dev.tools.build import is_built
from trainyard_dev.versions import load


def program(say: Callable[[str], None]) -> Path:
    """One on PATH of the pinned version, else the one built here. Raises TrainyardError where it can't be built.

    Args:
        say: is told before it is built, which takes minutes.
    """
    found = shutil.which("argo")
    if found and f"v{load().raw['components']['argo']}" in run([found, "version", "--short"], check=False).stdout:
        return Path(found)
    if not is_built(load().tools["argo"]):
        say("building argo, which checks workflows; this happens once and takes some minutes")
    return tools.binary("argo")


def lint(argo: Path, workflow: dict[str, Any]) -> None:
    """Offline, so that no right is needed. Raises UsageError with Argo's words."""
    with tempfile.TemporaryDirectory(prefix="trainyard-lint-") as folder:
        file = Path(folder) / "workflow.json"
        file.write_text(json.dumps(workflow))
        done = run([argo, "lint", "--offline", "--no-color", "-o", "simple", file], check=False, timeout=120)
    if done.returncode:
        said = (done.stdout + done.stderr).replace(str(file), "workflow")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        raise UsageError(
            f"Argo refuses the workflow: {' | '.join(lines[:4]) or f'code {done.returncode}'}",
            mend="see it with --dry-run -o yaml",
        )
