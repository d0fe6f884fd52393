"""The image of steps holds a part of the product: every module of that part imports with the packages in the image."""

import shutil
import subprocess
import sys
from pathlib import Path

from trainyard.paths import ROOT
from trainyard_dev.versions import load

ALL = """
import importlib, pkgutil, sys
import trainyard
for found in pkgutil.walk_packages(trainyard.__path__, "trainyard."):
    if "kinds.check" not in found.name:  # settings of a file, which no step reads
        importlib.import_module(found.name)
outside = [name for name, module in sys.modules.items()
           if name.startswith("trainyard") and not str(module.__file__).startswith(sys.argv[1])]
sys.exit(f"from elsewhere: {outside}" if outside else 0)
"""


def test_nothing_that_a_step_imports_is_left_out(tmp_path: Path) -> None:
    for entry in load().images["pipeline"].inputs:
        source, target = ROOT / entry, tmp_path / entry
        if not entry.startswith("scripts/"):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    folder = str(tmp_path / "scripts")
    done = subprocess.run(
        [sys.executable, "-c", ALL, folder], env={"PYTHONPATH": folder}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
