"""The real NVIDIA device plugin over the mock library: it finds the GPUs, writes their CDI spec, marks one unhealthy.

The plugin runs without a kubelet, in a mount namespace of its own, since the folder of its socket is fixed.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard_dev import versions
from trainyard_dev.gpu import cdi, mock, uuids
from trainyard_dev.gpu.mock import MockGpuSpec
from trainyard_dev.tools import build

NAME = "nvidia-device-plugin"
NAMESPACE = ["unshare", "--mount", "--propagation", "private"]
SCRIPT = f"""mount -t tmpfs tmpfs /var/lib && mount -t tmpfs tmpfs /run && mkdir /run/cdi || exit 1
mount --bind "$3" /run/cdi || exit 1
mkdir -p /var/lib/kubelet/device-plugins /var/lib/driver-root
mount --bind "$1" /var/lib/driver-root && mount -o remount,bind,ro /var/lib/driver-root || exit 1
cd /var/lib/kubelet/device-plugins
exec "$2" --driver-root-ctr-path /var/lib/driver-root --device-discovery-strategy nvml --kubelet-socket= \
  --device-list-strategy cdi-cri --nvidia-cdi-hook-path {cdi.HOOK} \
  --nvidia-driver-root {mock.NODE_ROOT} --nvidia-dev-root /"""


def _plugin() -> str | None:
    """The plugin's binary if it has been built before: `$TRAINYARD_DEVICE_PLUGIN`, the tool cache, or the path."""
    named = os.environ.get("TRAINYARD_DEVICE_PLUGIN")
    if named:
        return named
    tool = versions.load().tools.get("device-plugin")
    built = build.bin_dir(tool) / NAME if tool else None
    return str(built) if built and built.is_file() else shutil.which(NAME)


def _may_mount() -> bool:
    mount = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/var/lib"]
    try:
        tried = subprocess.run(mount, capture_output=True, check=False)
    except OSError:
        return False
    return tried.returncode == 0


class Plugin:
    """A running device plugin and its log."""

    def __init__(self, binary: str, root: Path, log: Path) -> None:
        self.log = log
        with log.open("wb") as out:
            argv = [*NAMESPACE, "sh", "-c", SCRIPT, "sh", str(root), binary, str(log.parent)]
            self.process = subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT)

    def wait_for(self, *words: str, seconds: float = 30) -> str:
        """The first line of the log that holds all the words; fails with the whole log after `seconds`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in self.log.read_text().splitlines():
                if all(word in line for word in words):
                    return line
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        pytest.fail(f"no line with {words} in the plugin's log:\n{self.log.read_text()}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if not (shutil.which("gcc") and shutil.which("make")):
        pytest.skip("needs gcc and make")
    library = mock.build_library(tmp_path / mock.LIBRARY)
    made = mock.prepare_node(tmp_path / "node", "worker", MockGpuSpec(), library=library)
    (made / "dev").mkdir()
    return made


@pytest.fixture
def plugin(tmp_path: Path, root: Path) -> Iterator[Plugin]:
    binary = _plugin()
    if binary is None:
        pytest.skip("the device plugin is not built; TRAINYARD_DEVICE_PLUGIN can name one")
    if not _may_mount():
        pytest.skip("needs the right to mount in a namespace of its own")
    for gpu in range(4):
        os.mknod(root / f"dev/nvidia{gpu}", 0o020666, os.makedev(mock.DEVICE_MAJOR, gpu))
    running = Plugin(binary, root, tmp_path / "log")
    yield running
    running.process.terminate()
    running.process.wait(timeout=20)


def test_plugin_serves_the_gpus_and_marks_one_unhealthy(plugin: Plugin, root: Path) -> None:
    plugin.wait_for("Starting to serve 'nvidia.com/gpu'")
    spec = json.loads((plugin.log.parent / "k8s.device-plugin.nvidia.com-gpu.json").read_text())
    given = {one["name"]: one["containerEdits"]["deviceNodes"] for one in spec["devices"] if one["name"] != "all"}
    assert {uuid: [node["path"] for node in nodes] for uuid, nodes in given.items()} == {
        uuid: [f"/dev/nvidia{gpu}"] for gpu, uuid in enumerate(uuids.node_uuids("worker", 4))
    }
    assert [one["hostPath"] for one in spec["containerEdits"]["mounts"] if "libnvidia-ml" in one["hostPath"]] == [
        f"{mock.NODE_ROOT}/{mock.LIBRARY_FOLDER}/libnvidia-ml.so.550.163.01"
    ]
    assert {hook["path"] for hook in spec["containerEdits"]["hooks"]} == {cdi.HOOK}
    mock.inject_xid(root, 1, 31)
    plugin.wait_for("Skipping event", "EventData:31")
    mock.inject_xid(root, 2, 79)
    plugin.wait_for("Xid=79", uuids.gpu_uuid("worker", 2), "unhealthy")
