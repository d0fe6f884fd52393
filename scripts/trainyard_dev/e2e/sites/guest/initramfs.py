"""The guest's initramfs in the kernel's format (cpio, newc)."""

import re
import stat
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev.e2e.sites.guest.packages import Kernel

HERE = Path(__file__).parent
FOLDERS = ("a", "b", "bin", "c", "dev", "modules", "proc", "sys", "tmp")
WANTED = ("virtio_pci", "virtio_net", "nfsv4")


def build(kernel: Kernel, work: Path) -> Path:
    """Packs init, busybox, the lock program and the modules into `work`/initramfs."""
    locks = work / "locks"
    run(["gcc", "-static", "-O2", "-o", locks, HERE / "locks.c"], hint="on Debian run: apt-get install gcc libc6-dev")
    archive = Archive()
    for folder in FOLDERS:
        archive.add(folder, stat.S_IFDIR | 0o755)
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    for name, path in (("init", HERE / "init.sh"), ("bin/busybox", kernel.busybox), ("bin/locks", locks)):
        archive.add(name, stat.S_IFREG | 0o755, path.read_bytes())
    for number, path in enumerate(in_order(kernel.modules, WANTED)):
        archive.add(f"modules/{number:03}-{path.name}", stat.S_IFREG | 0o644, path.read_bytes())
    target = work / "initramfs"
    target.write_bytes(archive.finish())
    return target


def in_order(modules: list[Path], wanted: tuple[str, ...]) -> list[Path]:
    """The wanted modules and their dependencies, each after its own."""
    by_name = {_name(path.stem): path for path in modules}
    ordered: list[Path] = []

    def add(name: str, asked_by: str) -> None:
        if name not in by_name:
            raise TrainyardError(f"the guest's kernel has no module {name}, which {asked_by} needs")
        path = by_name[name]
        if path in ordered:
            return
        for other in _needs(path):
            add(other, name)
        ordered.append(path)

    for name in wanted:
        add(name, "the guest")
    return ordered


def _name(text: str) -> str:
    return text.replace("-", "_")


def _needs(module: Path) -> list[str]:
    """The dependencies in a module's own metadata."""
    found = re.search(rb"\0depends=([^\0]*)\0", module.read_bytes())
    return [_name(name) for name in found[1].decode().split(",") if name] if found else []


class Archive:
    """A cpio archive in memory."""

    def __init__(self) -> None:
        self._content = bytearray()
        self._entries = 0

    def add(self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        """Appends a file, folder or device that belongs to root."""
        self._entries += 1
        fields = (self._entries, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        self._content += b"070701" + b"".join(b"%08X" % value for value in fields) + name.encode() + b"\0"
        self._pad()
        self._content += data
        self._pad()

    def finish(self) -> bytes:
        """The whole archive with its trailer."""
        self.add("TRAILER!!!", 0)
        return bytes(self._content)

    def _pad(self) -> None:
        self._content += b"\0" * (-len(self._content) % 4)
