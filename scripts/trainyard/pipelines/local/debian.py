"""Files from Debian packages, without installing them."""

from pathlib import Path

from trainyard.shell import run


def unpack(packages: list[str], work: Path, hint: str) -> Path:
    """Downloads packages into `work` and unpacks them into one tree, which it returns.

    Args:
        hint: how to fix it if they can't be downloaded.
    """
    run(["apt-get", "download", *packages], cwd=work, hint=hint)
    root = work / "root"
    for archive in sorted(work.glob("*.deb")):
        run(["dpkg", "-x", archive, root])
    return root
