"""The Python package of a release: its wheel, and a wheelhouse for each Python that pip installs from offline."""

import shutil
import sys
import tempfile
from pathlib import Path

from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev.images import crane

PYTHONS = ("3.11", "3.13")
LOCK = ROOT / "requirements.lock"
_PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_28_x86_64")  # what pip takes on glibc 2.28 and newer
_NO_WHEEL = ("kfp-server-api",)  # published as source alone, in pure Python


def wheel(folder: Path) -> Path:
    """Builds the wheel of the commit into the folder: a build in the tree would keep files that the tree has lost."""
    with tempfile.TemporaryDirectory() as room:
        run(["git", "-C", ROOT, "archive", "--output", f"{room}/tree.tar", "HEAD"])
        shutil.unpack_archive(f"{room}/tree.tar", f"{room}/tree", filter="data")
        pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, f"{room}/tree")
    [ours] = folder.glob("trainyard_platform-*.whl")
    return ours


def wheelhouses(ours: Path, out: Path) -> list[Path]:
    """Packs our wheel and what it needs at the pins of requirements.lock, for each Python on x86-64 Linux.

    Raises:
        CommandError: pip cannot reach its index, or the pins contradict each other.
    """
    pins = [line for line in LOCK.read_text().splitlines() if line.partition("==")[0] in _NO_WHEEL]
    pip("wheel", "--no-deps", "--wheel-dir", ours.parent, *pins)
    given, files = [flag for one in _PLATFORMS for flag in ("--platform", one)], []
    for version in PYTHONS:
        room = out / f"wheelhouse-py{version}"
        pip("download", "--dest", room / "wheelhouse", "--python-version", version, "--only-binary=:all:", *given,
            "--find-links", ours.parent, "--constraint", LOCK, ours)  # fmt: skip
        files.append(out / f"{room.name}.tar")
        crane.pack(room, files[-1])
    return files


def pip(verb: str, *argv: str | Path) -> None:
    """Runs a command of pip."""
    run([sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", *argv],
        hint="check the network; the pins are in requirements.lock")  # fmt: skip
