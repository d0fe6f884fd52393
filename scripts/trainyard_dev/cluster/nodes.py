"""Changes to kind's nodes: GPU devices, and an NFS client if the kernel has none."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainyard.paths import cache_dir
from trainyard_dev.engine import Engine
from trainyard_dev.gpu import mock
from trainyard_dev.images.build import build, content_key
from trainyard_dev.versions import load

MOCK_ROOT = "/opt/trainyard/mock-gpu"
NFS_ROOT = "/opt/trainyard/mount-nfs"
CTR = ("ctr", "-n", "k8s.io")  # the kubelet's namespace of images in containerd

_NFS_WRAPPER = f"""#!/bin/sh
exec env LD_LIBRARY_PATH={NFS_ROOT}/lib {NFS_ROOT}/sbin/mount.nfs "$@"
"""


@dataclass(frozen=True)
class Mount:
    """A folder of this machine mounted into a node."""

    host: Path
    node: str
    read_only: bool = True


def kernel_has_nfs(proc: Path = Path("/proc/filesystems")) -> bool:
    """Whether the kernel, which nodes share, can mount NFS."""
    if any(line.split()[-1] in ("nfs", "nfs4") for line in proc.read_text().splitlines() if line.strip()):
        return True
    modules = Path("/lib/modules")
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    return any((modules / release / "kernel/fs/nfs").glob("nfs.ko*")) if modules.is_dir() else False


def mock_gpu_folder(cluster: str, node: str) -> Path:
    """The driver root of one node's mock GPUs; this machine writes its fault file."""
    return cache_dir() / "clusters" / cluster / "gpu" / node


def mock_gpus(cluster: str, node: str, spec: mock.MockGpuSpec) -> Mount:
    """Prepares one node's mock driver root."""
    folder = mock_gpu_folder(cluster, node)
    shutil.rmtree(folder, ignore_errors=True)
    mock.prepare_node(folder, node, spec)
    return Mount(folder, MOCK_ROOT)


def make_devices(engine: Engine, node: str, count: int) -> None:
    """Makes /dev/nvidia* on a node."""
    script = "\n".join(" ".join(f"'{word}'" for word in argv) for argv in mock.device_commands(count))
    engine.exec(node, ["sh", "-euc", script])


def userspace_nfs(engine: Engine, base: str) -> Mount:
    """Builds the userspace mount.nfs and unpacks it into the cache, once per content."""
    image = load().images["mount-nfs"]
    target = cache_dir() / "mount-nfs" / content_key(image, base)
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        local = build(engine, image, base)
        container = engine("create", local, "true").stdout.strip()
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            engine("cp", f"{container}:/out", Path(work) / "out")
            (Path(work) / "out").rename(target)
        engine("rm", container)
    return Mount(target, NFS_ROOT)


def install_userspace_nfs(engine: Engine, node: str) -> None:
    """Makes a node's mount(8) use the userspace client for NFS."""
    script = (
        "for name in mount.nfs mount.nfs4; do rm -f /sbin/$name; cat > /sbin/$name.new < /tmp/mount.nfs;"
        " chmod 0755 /sbin/$name.new; mv /sbin/$name.new /sbin/$name; done"
    )
    engine.exec(node, ["sh", "-euc", f"cat > /tmp/mount.nfs; {script}"], input=_NFS_WRAPPER)


def forget_stale(engine: Engine, node: str, served: Mapping[str, str]) -> list[str]:
    """Removes images from a node if the registry has different content under the same name, or will have.

    Args:
        served: each reference and the digest that the registry serves for it, "" for one that is still being made.

    Returns:
        the removed references: the next pod that uses one pulls it.
    """
    listed = engine.exec(node, [*CTR, "images", "ls"]).stdout.splitlines()[1:]
    stale = [ref for ref, _, digest, *_ in map(str.split, listed) if ref in served and served[ref] != digest]
    if stale:
        engine.exec(node, [*CTR, "images", "rm", "--sync", *stale])
    return stale
