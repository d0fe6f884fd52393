"""The guest's kernel and its tools, from Debian packages unpacked into the cache. Nothing is installed."""

import platform
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir
from trainyard.pipelines.local import debian
from trainyard.shell import run

# Debian's smallest kernel with virtio and NFS; this package depends on the current one.
KERNEL = "linux-image-cloud-amd64"
TOOLS = "busybox-static"


@dataclass(frozen=True)
class Kernel:
    """A bootable kernel with its modules, and a static busybox."""

    root: Path

    @property
    def image(self) -> Path:
        """The path of the kernel."""
        return next((self.root / "boot").glob("vmlinuz-*"))

    @property
    def version(self) -> str:
        """Its version, such as 6.1.0-56-cloud-amd64."""
        return self.image.name.removeprefix("vmlinuz-")

    @property
    def modules(self) -> list[Path]:
        """The paths of all its loadable modules."""
        return sorted((self.root / "lib" / "modules" / self.version).rglob("*.ko"))

    @property
    def busybox(self) -> Path:
        """The path of a static program with the usual commands."""
        return self.root / "bin" / "busybox"


def find() -> Kernel:
    """The kernel in the cache, downloaded if necessary (28 MB).

    Raises:
        TrainyardError: it is not available here.
    """
    if platform.machine() != "x86_64":
        raise TrainyardError(f"the guest's kernel is for x86_64, this machine is {platform.machine()}")
    target = cache_dir() / "guest" / "root"
    if not target.is_dir():
        _unpack(target)
    return Kernel(target)


def _unpack(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        work = Path(folder)
        listed = run(["apt-cache", "depends", KERNEL], hint="on Debian run: apt-get update").stdout
        named = re.search(r"Depends: (linux-image-\S+)", listed)
        if not named:
            raise TrainyardError(f"no package {KERNEL} is known here", hint="on Debian run: apt-get update")
        root = debian.unpack([named[1], TOOLS], work, hint="run: apt-get update")
        kernel = Kernel(root)
        if not (kernel.modules and kernel.busybox.is_file()):
            raise TrainyardError(f"{named[1]} or {TOOLS} lacks what the guest needs")
        shutil.move(root, target)
