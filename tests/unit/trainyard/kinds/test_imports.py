"""Imports of a folder's code: found in its text, through the folder's files; certain only where surely executed."""

from pathlib import Path

import pytest

from trainyard.kinds import imports

RUN = ("python3", "train.py")


def found(folder: Path, *command: str, path: str = "") -> dict[str, bool]:
    """Module -> whether it is sure."""
    made: dict[str, bool] = {}
    for one in imports.of_folder(folder, command or RUN, path):
        made[one.module] = made.get(one.module, False) or one.sure
    return made


def write(folder: Path, **files: str) -> None:
    """Files by their path, with an underscore for each slash; MAIN and INIT are those of packages."""
    for name, text in files.items():
        path = folder / f"{name.replace('_', '/').replace('MAIN', '__main__').replace('INIT', '__init__')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("import os, json\nfrom __future__ import annotations\nimport torch.nn as nn", {"torch.nn": True}),
        ("from horovod import tensorflow as hvd", {"horovod.tensorflow": True}),
        ("try:\n    import apex\nexcept ImportError:\n    apex = None", {"apex": False}),
        ("try:\n    import apex\nexcept (ImportError, OSError):\n    import amp", {"apex": False, "amp": False}),
        ("try:\n    import apex\nexcept KeyError:\n    pass\nelse:\n    import more", {"apex": True, "more": True}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import big", {}),
        ("if __name__ == '__main__':\n    import big", {"big": True}),
        ("import os\nif os.environ:\n    import big\nelse:\n    import small", {"big": False, "small": False}),
        ("def main():\n    import big\nmain()", {"big": False}),
        ("class A:\n    import big", {"big": True}),
        ("with open('x') as f:\n    import big", {"big": True}),
        ("for _ in ():\n    import big", {"big": False}),
        ("match 1:\n    case 1:\n        import big", {"big": False}),
        ("import imp, distutils.core", {"imp": True, "distutils.core": True}),
        ("from keras.layers import *", {"keras.layers": True}),
        ("import sys\nsys.path.append('/shared/lib')\nimport ours", {"ours": False}),
        ("import (", {}),
    ],
)
def test_what_is_sure(text: str, due: dict[str, bool], tmp_path: Path) -> None:
    write(tmp_path, train=text)
    assert found(tmp_path) == due


def test_files_of_the_folder_are_followed_and_are_no_packages(tmp_path: Path) -> None:
    write(
        tmp_path,
        train="import helper\nfrom models import net\nfrom models.deep import layer\nimport lib.thing",
        helper="import pandas",
        models_INIT="from . import deep\nfrom .wide import w",
        models_deep="import keras\nlayer = 1",
        models_wide="import scipy\nfrom .. import train\nw = 2",
        unused="import sklearn",
        src_lib_thing="import yaml",
    )
    assert found(tmp_path) == {"pandas": True, "keras": True, "scipy": True, "yaml": True}
    where = {one.module: f"{one.file}:{one.line}" for one in imports.of_folder(tmp_path, RUN)}
    assert where["keras"] == "models/deep.py:1"


def test_a_file_that_is_surely_run_counts_though_it_was_met_as_unsure_before(tmp_path: Path) -> None:
    write(tmp_path, train="def late():\n    import helper\nimport helper", helper="import pandas")
    assert found(tmp_path)["pandas"]


def test_the_command_says_which_file_is_run(tmp_path: Path) -> None:
    write(tmp_path, train="import torch", other="import jax", pkg_MAIN="import pkg.run", pkg_run="import keras")
    assert found(tmp_path, "torchrun", "--nnodes", "2", "other.py") == {"jax": True}
    assert found(tmp_path, "python3", "-m", "pkg") == {"keras": True}
    assert found(tmp_path, "python3", "-m", "torch.distributed.run", "train.py") == {"torch": True}
    assert found(tmp_path, "sh", "-c", "python3 train.py") == {"torch": False, "jax": False}


def test_what_comes_from_elsewhere_makes_nothing_sure(tmp_path: Path) -> None:
    write(tmp_path, train="import ours\nimport theirs", vendor_ours="import deep")
    assert found(tmp_path, path="vendor") == {"deep": True, "theirs": True}
    assert found(tmp_path, path="/shared/lib") == {"ours": False, "theirs": False}


def test_a_folder_of_data_is_no_module(tmp_path: Path) -> None:
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "weights.bin").write_text("")
    write(tmp_path, train="import keras")
    assert found(tmp_path) == {"keras": True}


def test_a_step_runs_what_stands_in_its_function() -> None:
    text = (
        "import kfp\ndef step(x):\n    import pandas\n    try:\n        import a\n    except ImportError:\n        pass"
    )
    assert {one.module: one.sure for one in imports.of_text(text)} == {"kfp": True, "pandas": True, "a": False}
    assert imports.of_text("echo import x") == []
