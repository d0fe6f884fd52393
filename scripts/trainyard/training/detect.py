"""Detects the framework of a folder's code by its imports, and the script to run."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from trainyard.kinds.registry import KINDS
from trainyard.kinds.spec import JOB, MPI

# MPI first: Horovod and mpi4py are used with other frameworks, not the other way round.
MODULES = {
    module: kind.framework for kind in sorted(KINDS, key=lambda kind: kind.framework != MPI) for module in kind.modules
}
SCRIPTS = ("train.py", "main.py", "run.py")
LARGEST = 1 << 20  # bytes; larger files are not parsed


def framework(folder: Path, command: Sequence[str] = ()) -> tuple[str, str]:
    """(framework, why): from the script of the command, else from all Python files at the folder's top."""
    named = [folder / word for word in command if word.endswith(".py")]
    files = [path for path in named if path.is_file()] or sorted(folder.glob("*.py"))
    found: dict[str, str] = {}
    for path in files:
        for module in imports(path):
            if module in MODULES:
                found.setdefault(module, path.name)
    for module, kind in MODULES.items():
        if module in found:
            return kind, f"{found[module]} imports {module}"
    return JOB, "no training framework is imported"


def imports(path: Path) -> set[str]:
    """Names of the packages that a file imports anywhere; empty if the file isn't Python."""
    try:
        if path.stat().st_size > LARGEST:
            return set()
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def script(folder: Path) -> str:
    """The script for the command: one with a usual name, else the only one; "" if that is unclear."""
    names = [path.name for path in sorted(folder.glob("*.py"))]
    usual = [name for name in SCRIPTS if name in names]
    return usual[0] if usual else names[0] if len(names) == 1 else ""


def job_name(folder: Path) -> str:
    """The folder's name as a valid job name."""
    text = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    text = re.sub(r"^[^a-z]+", "", text)[:40].strip("-")
    return text or "train"
