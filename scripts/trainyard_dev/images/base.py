"""The base of our own images: two suites of Debian with the security updates of a pinned day, made once for each."""

import shutil
import tempfile
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir
from trainyard.shell import run
from trainyard_dev import proxies
from trainyard_dev.engine import Engine
from trainyard_dev.versions import Image, load

# The day is part of the name: another day rebuilds every image, with that day's packages.
SUITE, OLDER, DAY = (load().raw["debian"][key] for key in ("suite", "older", "packages"))
PULLED = {SUITE: "base-image", OLDER: "older-base-image"}  # the image to pull for a suite
BUILT_BASE = f"localhost/trainyard/{SUITE}:{DAY}"
UPDATED_BASE = f"localhost/trainyard/{SUITE}-updated:{DAY}"
CLEAN = "rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log"
UPDATE = f"apt-get update && apt-get upgrade -y && {CLEAN}"
HINT = "check that this machine reaches a Debian mirror, and its archive of security updates"


def of_suite(base: str, suite: str) -> str:
    """BUILT_BASE or UPDATED_BASE with the name for a suite; any other reference unchanged."""
    return base.replace(f"/{SUITE}", f"/{suite}", 1)


def under(image: Image, base: str) -> str:
    """The plain base of an image, if that of most images is `base`."""
    return of_suite(base, OLDER) if image.older else base


def make_base(engine: Engine, suite: str = SUITE) -> str:
    """A minimal Debian made by debootstrap, for machines that reach no image registry. Needs root.

    Later installations in images find the archive of security updates in its list of sources, too.

    Returns:
        the reference in the engine's store.
    """
    made = of_suite(BUILT_BASE, suite)
    if engine.has_image(made):
        return made
    if not shutil.which("debootstrap"):
        raise TrainyardError("debootstrap is not installed", hint="apt-get install -y debootstrap")
    (cache_dir() / "work").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="base-", dir=cache_dir() / "work") as folder:
        root = Path(folder) / "root"
        run(
            ["debootstrap", "--variant=minbase", "--include=ca-certificates", suite, root],
            timeout=900,
            hint="check that this machine reaches a Debian mirror and that you are root",
        )
        _add_updates(root / "etc/apt/sources.list", suite)
        run(["chroot", root, "sh", "-c", UPDATE], timeout=900, env={"DEBIAN_FRONTEND": "noninteractive"}, hint=HINT)
        _slim(root)
        archive = Path(folder) / "base.tar"
        run(["tar", "-C", root, "-cf", archive, "."])
        engine("import", archive, made)
    return made


def update_base(engine: Engine, suite: str = SUITE) -> str:
    """The pulled base with the updates from its security archive since its publication.

    Returns:
        the reference in the engine's store.
    """
    made = of_suite(UPDATED_BASE, suite)
    if not engine.has_image(made):
        (cache_dir() / "work").mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="base-", dir=cache_dir() / "work") as folder:
            file = Path(folder) / "Containerfile"
            file.write_text(f"FROM {load().exact(PULLED[suite])}\nRUN {UPDATE}\n")
            argv = ["--network", "host", *proxies.for_builds(), "-f", str(file), "-t", made, folder]
            engine("build", *argv, timeout=900, hint=HINT)
    return made


def _add_updates(sources: Path, suite: str) -> None:
    """Add the suite's updates and security archive to the mirror that debootstrap used and recorded."""
    mirror = sources.read_text().split()[1].rstrip("/")
    places = {
        suite: mirror,
        f"{suite}-updates": mirror,
        f"{suite}-security": f"{mirror.removesuffix('/debian')}/debian-security",
    }
    sources.write_text("".join(f"deb {place} {name} main\n" for name, place in places.items()))


def _slim(root: Path) -> None:
    """Remove files that no container reads: package caches, manuals, translations."""
    for entry in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / entry, ignore_errors=True)
    for needed in ("var/cache/apt/archives/partial", "var/lib/apt/lists/partial"):
        (root / needed).mkdir(parents=True)
