"""A run's packages in the store: fetched into a pod or, if its requirements are new, saved for later runs.

Packages are in `<base>/packages`; the installer, which runs in the job's own image, is in `<base>/.packages`. Each
combination of requirements and image has one archive: `<team>/packages/<digest>.tar.gz`. It appears complete, so
several pods that install the same at the same time don't harm each other: the later one uses what is there.
"""

from __future__ import annotations

import html
import importlib.util
import json
import os
import shutil
import ssl
import tarfile
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlparse

from trainyard_agent.runs import install_packages, requirements, run_files
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import archive, connect, objects
from trainyard_agent.store.cache import Entry, listing

if TYPE_CHECKING:
    from minio import Minio

PACKAGES, TOOLS, PLAN = "packages", ".packages", "plan.json"
SIGNED = timedelta(hours=12)  # how long pip may take to get the wheels
LEFT_OUT = ("__pycache__",)


def fetch(base: str, code: str, name: str, place: str, wheels: str) -> int:
    """Write the installer for the code's requirements, and fetch packages installed before. Raises PlatformError.

    Args:
        base: folder for the packages and for the installer.
        code: the folder with the requirements file `name`; without code they are in the environment.
        place: `bucket/key` of the archive.
        wheels: `bucket/prefix` of the platform's wheels.
    """
    access = connect.access()
    client, root = connect.client(access), Path(base)
    found = requirements.read(_reader(Path(code)), name)
    bucket, _, key = place.partition("/")
    have = run_files.patiently(lambda: _take(client, bucket, key, root / PACKAGES))
    say(f"packages: {f'{have} files of s3://{place}' if have else 'new requirements, they are installed now'}")
    links = run_files.patiently(lambda: _links(client, *wheels.partition("/")[::2]))
    _lay(root / TOOLS, found, access, links)
    return 0


def keep(base: str, place: str) -> int:
    """Put newly installed packages into the store; if another pod was first, use its packages. Raises PlatformError."""
    root, mark = Path(base), Path(base) / TOOLS / install_packages.NEW
    if not mark.exists():
        return 0
    client = connect.client(connect.access())
    bucket, _, key = place.partition("/")

    def put() -> None:
        if mark.read_text() == "first" and objects.stat(client, bucket, key):
            shutil.rmtree(root / PACKAGES)
            say(f"packages: another pod was first, {_take(client, bucket, key, root / PACKAGES)} files of s3://{place}")
            return
        with tempfile.TemporaryFile(dir=root) as file:
            sums = archive.Sums(cast(IO[bytes], file))
            pack(root / PACKAGES, cast(IO[bytes], sums))
            file.seek(0)
            objects.put(client, bucket, key, cast(IO[bytes], file), sums.size, sums.sha256)
            say(f"packages: {sums.size / 2**20:.1f} MiB to s3://{place}")

    run_files.patiently(put)
    return 0


def pack(folder: Path, target: IO[bytes]) -> None:
    """Write a folder as an archive that is identical, byte by byte, as long as the files are."""
    with archive.writing(target) as tar:
        for where, folders, files in os.walk(folder):
            folders[:] = sorted(one for one in folders if one not in LEFT_OUT)
            for name in sorted(files):
                path = Path(where) / name
                if path.is_symlink():
                    continue
                info = tarfile.TarInfo(str(path.relative_to(folder)))
                info.size = path.stat().st_size
                info.mode = 0o755 if os.access(path, os.X_OK) else 0o644
                with open(path, "rb") as file:
                    tar.addfile(info, file)


def _reader(code: Path) -> requirements.Read:
    """A function that returns a requirements file's text; it raises FileNotFoundError for a missing file."""
    if not (told := os.environ.get("REQUIREMENT_FILES")):
        return lambda name: (code / name).read_text(encoding="utf-8")
    texts: dict[str, str] = json.loads(told)

    def text(name: str) -> str:
        if name not in texts:
            raise FileNotFoundError(name)
        return texts[name]

    return text


def _take(client: Minio, bucket: str, key: str, folder: Path) -> int:
    """Fetch the packages from the store; returns how many files, 0 if there are none."""
    found = objects.stat(client, bucket, key)
    if not found:
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    return run_files.unpack(client, bucket, key, found[objects.SHA256], folder)


def _links(client: Minio, bucket: str, prefix: str) -> str:
    """An HTML page with a presigned link to each of the platform's wheels; "" if there are none.

    Wheels are at `<prefix>/<sha256>/<file>`, so pip compares each with the digest under which it was sent.
    """
    with objects.store_errors(f"s3://{bucket}/{prefix}"):
        found: list[Entry] = listing(client, bucket, prefix)
        lines = []
        for entry in found:
            digest, _, name = entry.key.partition("/")
            url = client.presigned_get_object(bucket, f"{prefix}/{entry.key}", expires=SIGNED)
            lines.append(f'<a href="{html.escape(url)}#sha256={quote(digest)}">{html.escape(name)}</a>')
    return "<!DOCTYPE html><html><body>\n" + "<br>\n".join(lines) + "\n</body></html>\n" if lines else ""


def _lay(folder: Path, found: requirements.Requirements, access: connect.Access, links: str) -> None:
    """Write all files that the installation in the job's own image needs."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = importlib.util.find_spec("pip")
    if pip is None or not pip.submodule_search_locations:
        raise PlatformError("the platform's image has no pip: its version is older than the chart's")
    source = Path(pip.submodule_search_locations[0])
    shutil.copytree(source, folder / "pip", ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
    shutil.copy(install_packages.__file__, folder / "install_packages.py")
    (folder / "requirements.txt").write_text(found.text(), encoding="utf-8")
    (folder / "constraints.txt").write_text("".join(f"{one.text}\n" for one in found.constraints), encoding="utf-8")
    if links:
        (folder / "wheels.html").write_text(links, encoding="utf-8")
    index = os.environ.get("INDEX_URL", "")
    plain = [urlparse(url).netloc for url in filter(None, (index, access.endpoint)) if url.startswith("http://")]
    if ours := "\n".join(filter(None, (os.environ.get("INDEX_CA", ""), access.ca))):
        (folder / "ca.pem").write_text(_authorities(source) + ours + "\n", encoding="utf-8")
    plan: dict[str, Any] = {**found.plan(), "index": index, "plain": plain, "wheels": bool(links)}
    (folder / PLAN).write_text(json.dumps(plan, indent=1), encoding="utf-8")


def _authorities(pip: Path) -> str:
    """The public certificate authorities, for pip uses one file: the index may be public while the store isn't."""
    known = ssl.get_default_verify_paths().cafile
    for path in (pip / "_vendor/certifi/cacert.pem", *filter(None, [Path(known) if known else None])):
        if path.exists():
            return path.read_text(encoding="utf-8") + "\n"
    return ""
