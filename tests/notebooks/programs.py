"""JupyterHub and configurable-http-proxy as the image has them, in folders of the cache."""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run

IMAGE = ROOT / "charts/notebooks/images/notebook-hub"
PIN = re.compile(r"^([A-Za-z0-9._-]+==[^\s\\]+)", re.MULTILINE)


def python() -> Path:
    """A Python with the hub's packages at the image's versions; made once. The image's hashes are of another."""
    if own := os.environ.get("TRAINYARD_NOTEBOOK_PYTHON"):
        return Path(own)
    text = (IMAGE / "requirements.txt").read_text()
    folder, done = _folder("notebook-hub", text + sys.version)
    if not done.exists():
        run([sys.executable, "-m", "venv", "--clear", folder], timeout=300)
        run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", *PIN.findall(text)], timeout=1800)
        done.touch()
    return folder / "bin" / "python"


def proxy() -> Path:
    """configurable-http-proxy as the lock pins it; made once. Skips where there is no Node.js."""
    if own := os.environ.get("TRAINYARD_NOTEBOOK_PROXY"):
        return Path(own)
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are missing: install Node.js 20 or newer")
    folder, done = _folder("notebook-proxy", (IMAGE / "proxy" / "package-lock.json").read_text())
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(IMAGE / "proxy" / name, folder)
        run(["npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, timeout=900)
        done.touch()
    return folder / "node_modules" / ".bin" / "configurable-http-proxy"


def _folder(name: str, what: str) -> tuple[Path, Path]:
    """Where it is made, and the file that says that it is whole."""
    folder = cache_dir() / name / hashlib.sha256(what.encode()).hexdigest()[:12]
    return folder, folder / ".whole"
