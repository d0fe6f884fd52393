"""Runs the guest once and reads its output."""

import re
import shutil
import tempfile
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.shell import CommandError, last_lines, run
from trainyard_dev.e2e.sites.guest import initramfs, packages

QEMU = "qemu-system-x86_64"
MEMORY = "256M"


def missing() -> str:
    """The reason why no guest can run here; empty if one can. Downloads the kernel if the cache lacks it."""
    if not shutil.which(QEMU):
        run([ROOT / "bin" / "bootstrap", "--guest"], check=False, timeout=300)
    if not shutil.which(QEMU):
        return f"{QEMU} is not installed (bin/bootstrap --guest installs it on Debian)"
    try:
        packages.find()
    except TrainyardError as error:
        return f"the guest's kernel is not available: {error}"
    return ""


def boot(variables: dict[str, str], timeout: float = 600) -> dict[str, str]:
    """Boots the guest, with these variables for its init, and waits until it powers itself off.

    QEMU emulates the processor (TCG): it needs no rights and no virtualization, and its times are no benchmark.

    Args:
        timeout: seconds after which the guest is ended.

    Returns:
        the facts that the guest printed, by name.

    Raises:
        TrainyardError: it did not complete; the message has the last lines of its console.
    """
    kernel = packages.find()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        console, facts = work / "console", work / "facts"
        words = [f"{name}={value}" for name, value in variables.items()]
        try:
            run(
                [
                    *(QEMU, "-accel", "tcg", "-machine", "pc", "-m", MEMORY),
                    *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
                    *("-kernel", kernel.image, "-initrd", initramfs.build(kernel, work)),
                    *("-append", " ".join(["console=ttyS0", "quiet", "panic=-1", *words])),
                    *("-serial", f"file:{console}", "-serial", f"file:{facts}"),
                    *_interface("first"),
                    *_interface("second"),
                ],
                timeout=timeout,
            )
        except CommandError as error:
            raise TrainyardError(f"{error.what}; the guest's console ends: {_tail(console, facts)}") from None
        stated = parse(facts.read_text(errors="replace"))
        if "end" not in stated:
            raise TrainyardError(f"the guest stopped half-way; its console ends: {_tail(console, facts)}")
        return stated


def parse(text: str) -> dict[str, str]:
    """The facts in the init's output; other lines are ignored."""
    found = re.findall(r"^FACT (\S+) ?(.*?)\r?$", text, re.MULTILINE)
    return {name: value.strip() for name, value in found}


def _interface(name: str) -> list[str]:
    """A network card on its own network, on which the host is 10.0.2.2."""
    return ["-netdev", f"user,id={name}", "-device", f"virtio-net-pci,netdev={name},romfile="]


def _tail(*files: Path) -> str:
    return last_lines("\n".join(file.read_text(errors="replace") for file in files if file.exists()), 6)
