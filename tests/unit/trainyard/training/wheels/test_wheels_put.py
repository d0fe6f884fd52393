"""Wheels supplied by the platform engineer: those that the images' Python can install."""

from pathlib import Path

import pytest

from trainyard.errors import UsageError
from trainyard.training.wheels import collect, tags

FITS = [
    "six-1.17.0-py2.py3-none-any.whl",
    "numpy-2.4.6-cp313-cp313-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    "cryptography-46.0.3-cp311-abi3-manylinux_2_34_x86_64.whl",
    "grpcio-1.85.1-cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    "own-1.0-1-cp313-cp313-linux_x86_64.whl",
]
MISFITS = [
    ("numpy-2.4.6-cp312-cp312-manylinux_2_28_x86_64.whl", "it is for cp312-cp312, but the images have Python 3.13"),
    ("cryptography-46.0.3-cp314-abi3-manylinux_2_34_x86_64.whl", "it is for cp314-abi3"),
    ("numpy-2.4.6-cp313-cp313-manylinux_2_28_aarch64.whl", "the images are x86-64 Linux with glibc 2.41"),
    ("numpy-2.4.6-cp313-cp313-macosx_14_0_arm64.whl", "it is for macosx_14_0_arm64"),
    ("numpy-2.4.6-cp313-cp313t-manylinux_2_28_x86_64.whl", "it is for cp313-cp313t"),
    ("new-1.0-cp313-cp313-manylinux_2_42_x86_64.whl", "glibc 2.41"),
]


@pytest.mark.parametrize("file", FITS)
def test_what_the_images_can_install_is_taken(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_bytes(b"wheel")
    [found] = collect.folder(tmp_path, tags.PYTHON)
    assert (found.wheel.file, found.size) == (file, 5)


@pytest.mark.parametrize(("file", "says"), MISFITS)
def test_what_no_run_could_install_is_refused_by_name(tmp_path: Path, file: str, says: str) -> None:
    (tmp_path / file).write_bytes(b"wheel")
    with pytest.raises(UsageError) as refused:
        collect.folder(tmp_path, tags.PYTHON)
    assert says in str(refused.value) and file in str(refused.value)


def test_another_python_of_the_images_is_another_choice(tmp_path: Path) -> None:
    (tmp_path / MISFITS[0][0]).write_bytes(b"wheel")
    assert len(collect.folder(tmp_path, "3.12")) == 1


def test_a_folder_without_wheels_and_a_bad_name_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the folder contains no wheel"):
        collect.folder(tmp_path, tags.PYTHON)
    (tmp_path / "thing.whl").write_bytes(b"")
    with pytest.raises(UsageError, match="invalid name of a wheel"):
        collect.folder(tmp_path, tags.PYTHON)
