"""What a kind node gets of this machine's GPU driver: NVIDIA's toolkit finds it, over the mock library."""

import os
import shutil
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev import tools
from trainyard_dev.gpu import cdi, mock
from trainyard_dev.gpu.mock import MockGpuSpec

NAME = "libnvidia-ml.so.550.163.01"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine's driver: the mock library, and CUDA's device file."""
    made = mock.prepare_node(tmp_path, "worker", MockGpuSpec())
    (made / "dev").mkdir()
    try:
        os.mknod(made / cdi.UVM[1:], 0o020666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("needs the right to make device files")
    return made


@pytest.mark.parametrize("folder", [mock.LIBRARY_FOLDER, Path("usr/lib64")])
def test_a_node_has_the_drivers_files_where_debian_has_them(root: Path, folder: Path) -> None:
    if folder != mock.LIBRARY_FOLDER:
        shutil.copy(root / mock.CONF, root / mock.LIBRARY_FOLDER)  # the mock library finds it beside itself
        (root / mock.LIBRARY_FOLDER).rename(root / folder)
    assert cdi.files(root) == {
        cdi.HOOK: tools.binary("nvidia-cdi-hook"),
        f"/usr/lib/x86_64-linux-gnu/{NAME}": root / folder / NAME,
    }


def test_a_driver_that_lacks_something_is_refused(root: Path) -> None:
    (root / cdi.UVM[1:]).unlink()
    with pytest.raises(TrainyardError, match=r"^the device file of CUDA, /dev/nvidia-uvm, is missing"):
        cdi.files(root)
    (root / mock.LIBRARY_FOLDER / NAME).unlink()
    with pytest.raises(TrainyardError, match=r"nvidia-ctk"):
        cdi.files(root)
