"""Contents of images with CUDA, by their pins and by what Python finds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainyard.paths import ROOT
from trainyard_dev.images import contents
from trainyard_dev.versions import load

CUDA = [name for name in load().images if name.endswith("-cuda")]


@pytest.mark.parametrize("name", CUDA)
def test_an_image_with_cuda_pins_its_cuda(name: str) -> None:
    found = contents.of_pins(ROOT, name)
    assert {"CUDA", "cuDNN", "NCCL"} <= found.keys() and found.keys() & {"torch", "tensorflow"}
    row = next(line for line in (ROOT / contents.PAGE).read_text().splitlines() if line.startswith(f"| `{name}` |"))
    assert all(version in row for version in found.values())


def test_images_with_cuda_are_made_only_where_they_are_named() -> None:
    assert CUDA and all(load().images[name].large and load().images[name].demand for name in CUDA)


def test_an_image_without_requirements_pins_nothing() -> None:
    assert contents.of_pins(ROOT, "base") == {}


def test_python_says_what_it_finds_and_what_it_lacks(tmp_path: Path) -> None:
    """A torch of a few lines stands for the real one, which is not here."""
    (tmp_path / "torch.py").write_text(
        "from types import SimpleNamespace as N\n__version__ = '9.1'\nversion = N(cuda='13.9')\n"
        "backends = N(cudnn=N(version=lambda: 91300))\ncuda = N(nccl=N(version=lambda: (2, 29, 1)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", contents.ASK], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    found = json.loads(done.stdout)
    assert (found["torch"], found["cuda"], found["nccl"]) == ("9.1", "13.9", "2.29.1")
    assert "tensorflow" in found["missing"] or "tensorflow" in found
