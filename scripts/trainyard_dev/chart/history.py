"""Trees of earlier commits, laid out in the cache, and what their own code makes of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run

RENDER = """
import sys
from pathlib import Path
from trainyard_dev.chart import package
Path(sys.argv[1]).write_text(package.template(sys.argv[2], values=[Path(sys.argv[3])]))
"""
RENDER_S = 900


def missing(version: str, commit: str, root: Path = ROOT) -> str:
    """Why a commit can't be had here, or ""."""
    try:
        known = run(["git", "-C", root, "cat-file", "-e", f"{commit}^{{commit}}"], check=False)
    except TrainyardError as error:
        return error.what
    if known.returncode:
        return f"version {version} is commit {commit[:7]}, which this clone lacks (git fetch --unshallow)"
    return ""


def tree(version: str, commit: str) -> Path:
    """A version's source tree in the cache, laid out on the first call. Raises TrainyardError."""
    reason = missing(version, commit)
    if reason:
        raise TrainyardError(reason)
    folder = cache_dir() / "previous" / commit[:12]
    if not folder.exists():
        aside = folder.with_name(f"{folder.name}.{os.getpid()}")
        aside.mkdir(parents=True)
        with subprocess.Popen(["git", "-C", ROOT, "archive", commit], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", aside], stdin=archive.stdout, check=True)
        aside.rename(folder)
    return folder


def rendered(version: str, commit: str, profile: str, values: Path) -> str:
    """What a version's own packager renders of a profile and a file of values; kept in the cache by both.

    Raises:
        TrainyardError: the clone lacks the commit, or its packager fails.
    """
    folder = tree(version, commit)
    digest = hashlib.sha256(profile.encode() + b"\0" + values.read_bytes()).hexdigest()[:12]
    file = folder / "out" / f"rendered-{digest}.yaml"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        # KUBECONFIG: helm must not find the cluster of whoever runs this.
        env = {"PYTHONPATH": str(folder / "scripts"), "KUBECONFIG": "/dev/null"}
        run([sys.executable, "-c", RENDER, part, profile, values.resolve()], env=env, timeout=RENDER_S)
        part.rename(file)
    return file.read_text()
