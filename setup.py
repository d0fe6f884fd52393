"""Packs the folders that commands read (charts, policies, examples, …) beside the code, for machines without a
checkout: `trainyard.paths` finds them there. Everything else about the package is in pyproject.toml.
"""

import shutil
from collections.abc import Collection
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

TREE = ("charts", "images/trainer", "pipelines", "policies")
SKIP = shutil.ignore_patterns("__pycache__", ".ruff_cache", ".pytest_cache", "*.pyc", "conftest.py")
BESIDE = {"images", "patches", "tests", "tools"}  # of a component's folder: only a checkout uses them


def skipped(folder: str, names: list[str]) -> Collection[str]:
    """What is left out of a folder's copy."""
    return SKIP(folder, names) | (BESIDE & {*names} if Path(folder).parent.name == "charts" else set())


class WithTree(build_py):
    """build_py, and the tree in `trainyard/tree`."""

    def run(self) -> None:
        """Copies the code, then the tree."""
        super().run()
        if self.editable_mode:
            return
        root = Path(__file__).resolve().parent
        target = Path(self.build_lib) / "trainyard" / "tree"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for name in TREE:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, target / name, ignore=skipped)
            else:
                shutil.copy2(source, target / name)


setup(cmdclass={"build_py": WithTree})
