"""What our own images stand on: Debian with the security updates of a pinned day, made once for each such day."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir
from trainyard.shell import run
from trainyard_dev import proxies
from trainyard_dev.engine import Engine
from trainyard_dev.versions import load

# The day is in the name: whoever raises it has every image made anew, with the packages of that time.
SUITE, DAY = load().raw["debian"]["suite"], load().raw["debian"]["packages"]
BUILT_BASE = f"localhost/trainyard/{SUITE}:{DAY}"
UPDATED_BASE = f"localhost/trainyard/{SUITE}-updated:{DAY}"
CLEAN = "rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log"
UPDATE = f"apt-get update && apt-get upgrade -y && {CLEAN}"
HINT = "check that this machine reaches a Debian mirror, and its archive of security updates"


def make_base(engine: Engine) -> str:
    """A minimal Debian made by debootstrap, for machines that reach no image registry. Needs root.

    Later installations in images find the archive of security updates in its list of sources, too.

    Returns:
        the reference in the engine's store.
    """
    if engine.has_image(BUILT_BASE):
        return BUILT_BASE
    if not shutil.which("debootstrap"):
        raise TrainyardError("debootstrap is not installed", hint="apt-get install -y debootstrap")
    (cache_dir() / "work").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="base-", dir=cache_dir() / "work") as folder:
        root = Path(folder) / "root"
        run(
            ["debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, root],
            timeout=900,
            hint="check that this machine reaches a Debian mirror and that you are root",
        )
        _add_updates(root / "etc/apt/sources.list")
        run(["chroot", root, "sh", "-c", UPDATE], timeout=900, env={"DEBIAN_FRONTEND": "noninteractive"}, hint=HINT)
        _slim(root)
        archive = Path(folder) / "base.tar"
        run(["tar", "-C", root, "-cf", archive, "."])
        engine("import", archive, BUILT_BASE)
    return BUILT_BASE


def update_base(engine: Engine) -> str:
    """The pulled base with what its security archive has had since it was published.

    Returns:
        the reference in the engine's store.
    """
    if not engine.has_image(UPDATED_BASE):
        (cache_dir() / "work").mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="base-", dir=cache_dir() / "work") as folder:
            file = Path(folder) / "Containerfile"
            file.write_text(f"FROM {load().exact('base-image')}\nRUN {UPDATE}\n")
            argv = ["--network", "host", *proxies.for_builds(), "-f", file, "-t", UPDATED_BASE, folder]
            engine("build", *argv, timeout=900, hint=HINT)
    return UPDATED_BASE


def _add_updates(sources: Path) -> None:
    """Beside the mirror that debootstrap took and noted: its updates, and its archive of security updates."""
    mirror = sources.read_text().split()[1].rstrip("/")
    places = {
        SUITE: mirror,
        f"{SUITE}-updates": mirror,
        f"{SUITE}-security": f"{mirror.removesuffix('/debian')}/debian-security",
    }
    sources.write_text("".join(f"deb {place} {suite} main\n" for suite, place in places.items()))


def _slim(root: Path) -> None:
    """Drops what no container reads: package caches, manuals, translations."""
    for entry in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / entry, ignore_errors=True)
    for needed in ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial"):
        (root / needed).mkdir(parents=True)
