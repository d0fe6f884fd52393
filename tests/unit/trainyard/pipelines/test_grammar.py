"""Code copied into a step's own image compiles there, with any Python from 3.9 on."""

import ast
from importlib import metadata
from pathlib import Path

import pytest

from trainyard.paths import ROOT

BROUGHT = ("runs/install_packages.py",)  # run by the image's own Python


def _files() -> list[Path]:
    kfp = metadata.distribution("kfp")
    runtime = [Path(str(kfp.locate_file(one))) for one in kfp.files or () if one.suffix == ".py"]
    return [*runtime, *(ROOT / "scripts" / "trainyard_agent" / name for name in BROUGHT)]


def test_there_is_something_to_look_at() -> None:
    assert len(_files()) > 50


@pytest.mark.parametrize("minor", [9, 10, 12])
def test_every_file_compiles(minor: int) -> None:
    for file in _files():
        ast.parse(file.read_text(), str(file), feature_version=(3, minor))
