"""A Python environment that runs the model server: the pins of the image server-sklearn, made once into the cache.

`TRAINYARD_SERVER_PYTHON` names another Python, such as one that has PyTorch or TensorFlow, too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run
from trainyard_dev.images import packages

IMAGE = "server-sklearn"
HOW = "make serving-env"
_INSTALL_S = 1200


def python() -> Path:
    """The Python that has the server's packages. Raises TrainyardError where it isn't made yet."""
    named = os.environ.get("TRAINYARD_SERVER_PYTHON")
    found = Path(named) if named else _folder() / "bin" / "python3"
    if not found.exists():
        raise TrainyardError("no environment has the model server's packages", where=str(found), hint=HOW)
    return found


def make() -> Path:
    """Makes the environment unless it exists; the same versions as the image's, as wheels of this Python."""
    target = _folder()
    if (target / "bin" / "python3").exists():
        return target / "bin" / "python3"
    fresh = target.with_name(f"{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    venv.create(fresh, with_pip=True, symlinks=True)
    pins = [f"{name}=={version}" for name, version in _pins().items()]
    argv = [
        str(fresh / "bin" / "python3"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    run([*argv, "--only-binary=:all:", *pins], timeout=_INSTALL_S, hint=f"check the network, then run {HOW} again")
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    return target / "bin" / "python3"


@cache
def lacks(module: str) -> str:
    """Returns a message if the environment can't import a module, "" if it can."""
    found = subprocess.run([python(), "-c", f"import {module}"], capture_output=True, text=True)
    return f"{python()} lacks {module}: set TRAINYARD_SERVER_PYTHON to a Python that has it" if found.returncode else ""


def _pins() -> dict[str, str]:
    text = (ROOT / packages.file_of(ROOT, IMAGE)).read_text()
    return {name: version for name, (version, _) in packages.pins(text).items()}


def _folder() -> Path:
    said = f"{sys.version_info[:2]} {sorted(_pins().items())}"
    return cache_dir() / "serving" / hashlib.sha256(said.encode()).hexdigest()[:12]


if __name__ == "__main__":
    print(make())
