"""`trainyard audit`: queries osv-scanner for everything that we ship; adds our own list and ends of support."""

import datetime
import json
import os
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import OUT, ROOT
from trainyard.shell import run
from trainyard_dev import engine as engines
from trainyard_dev import folders
from trainyard_dev.images import source
from trainyard_dev.images.build import local_ref
from trainyard_dev.matrix import support
from trainyard_dev.tools import build
from trainyard_dev.versions import Versions, load

ASSETS = Path(__file__).parent / "assets"
COPY = "OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY"  # names a folder with <ecosystem>/all.zip, as osv.dev exports them
ECOSYSTEMS = ("PyPI", "Go", "Debian")
COPY_DAYS = 14  # an older copy of a database counts as not queried
PACKAGES_DAYS = 30  # that security updates of Debian may wait, as docs/support.md states
PACKAGES = """. /usr/lib/os-release && echo $VERSION_ID
dpkg-query --show --showformat='${db:Status-Status} ${source:Package} ${source:Version}\\n'"""
NO_SHELL = 127  # exit code for an image without a shell, and so without Debian's packages
CLEAN, FOUND, UNASKED = 0, 1, 3


@click.command()
def audit() -> int:
    """Find known vulnerabilities in everything we ship. Asks osv.dev, or the copies in
    $OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY, and our own list of advisories, about all that is pinned, compiled and
    installed. Also finds what has left its support since support.yaml was reviewed.

    Exit code 0: no problems, everything asked. 1: something found. 3: no problems, but not everything asked.
    """
    work, versions, today = OUT / "audit", load(), datetime.date.today()
    shutil.rmtree(work, ignore_errors=True)
    files, left = held(versions, work)
    found = ask(files, left, work, os.environ.get(COPY, ""), today)
    over = list(past_support(ROOT, versions.raw, today))
    for line in (*over, *(f"open: {one}" for one in left)):
        click.echo(line)
    return FOUND if found or over else UNASKED if left else CLEAN


def held(versions: Versions, work: Path) -> tuple[list[str], list[str]]:
    """What we pin, compile and install, in the form of osv-scanner's option `--lockfile`; and what can't be checked."""
    locks = [ROOT / "requirements.lock", *folders.each(ROOT, folders.IMAGES, "requirements.txt")]
    files, left = [f"requirements.txt:{file}" for file in locks], []
    work.mkdir(parents=True, exist_ok=True)
    for tool in versions.tools.values():
        files.append(f"go.mod:{build.source_dir(tool) / 'go.mod'}")
        if build.is_built(tool):  # a binary names every module that was compiled into it
            files += [str(build.bin_dir(tool) / name) for _, name in tool.packages]
        else:
            left.append(f"dependencies of {build.source_dir(tool).relative_to(ROOT)}: not built here")
    try:
        engine, base = engines.find(), source.choose("build").base_ref
        for image in versions.images.values():
            if not engine.has_image(ref := local_ref(image, base)):
                left.append(f"packages of the image {image.name}: not built here")
            elif packages := debian(engine, ref):
                files.append(str(file := work / f"{image.name}.cdx.json"))
                file.write_text(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "components": packages}))
    except TrainyardError as error:
        left.append(f"packages of images: {error.what}")
    return files, left


def debian(engine: engines.Engine, ref: str) -> list[dict[str, str]]:
    """The source packages, by which OSV knows Debian, of an image, as components of a CycloneDX file."""
    done = engine("run", "--rm", "--network=none", "--entrypoint=sh", ref, "-c", PACKAGES, check=False)
    if done.returncode not in (CLEAN, NO_SHELL):
        raise TrainyardError(f"{ref} does not say it: {done.stderr.strip()}")
    release, *lines = done.stdout.splitlines() or [""]
    found = sorted({tuple(line.split()[1:]) for line in lines if line.startswith("installed ")})
    url = f"pkg:deb/debian/{{}}@{{}}?distro=debian-{release}"
    return [{"type": "library", "name": n, "purl": url.format(quote(n), quote(v))} for n, v in found]


def ask(files: list[str], left: list[str], work: Path, copy: str, today: datetime.date) -> bool:
    """Whether our own list, the copy or, without one, osv.dev finds anything; adds to `left` what wasn't queried."""
    records = yaml.load((ASSETS / "advisories.yaml").read_text(), yaml.BaseLoader)["advisories"]
    for ecosystem in ECOSYSTEMS:
        file = work / "osv-scalibr" / ecosystem / "all.zip"
        file.parent.mkdir(parents=True)
        if copy and (why := take(Path(copy), ecosystem, file, today)):
            left.append(f"{ecosystem}, of {copy}: {why}")
        with zipfile.ZipFile(file, "a") as archive:
            for one in records:
                if one["affected"][0]["package"]["ecosystem"] == ecosystem:
                    archive.writestr(f"{one['id']}.json", json.dumps(one))
    found = scan(files, left, "--offline", f"--local-db-path={work}")
    try:
        return (not copy and scan(files, left)) or found
    except TrainyardError as error:
        left.append(f"osv.dev, for {', '.join(ECOSYSTEMS)}: {error.what}")
    return found


def take(copy: Path, ecosystem: str, target: Path, today: datetime.date) -> str:
    """Copies an ecosystem's export to `target`; returns why it does not count as queried, "" where it does."""
    if not (found := next(copy.rglob(f"{ecosystem}/all.zip"), None)):
        return "all.zip is missing"
    shutil.copyfile(found, target)
    with zipfile.ZipFile(found) as archive:
        days = [json.loads(archive.read(name))["modified"][:10] for name in archive.namelist()]
    newest = max(days, default="0001-01-01")
    age = (today - datetime.date.fromisoformat(newest)).days
    return f"the newest entry is of {newest}; at most {COPY_DAYS} days are allowed" if age > COPY_DAYS else ""


def scan(files: list[str], left: list[str], *how: str) -> bool:
    """Runs osv-scanner, which prints its findings; returns whether there are any. A file without packages is `left`.

    Raises:
        TrainyardError: it could not send its query, or could not read a file.
    """
    argv = ["scan", "source", "--no-resolve", "--no-call-analysis=go", "--experimental-plugins=go/binary",
            f"--config={ASSETS / 'osv-scanner.toml'}", *how, *(f"--lockfile={one}" for one in files)]  # fmt: skip
    done = run([build.binary("osv-scanner"), *argv], check=False)
    click.echo(said := done.stdout + done.stderr)
    if done.returncode not in (CLEAN, FOUND):
        raise TrainyardError(f"osv-scanner exited with {done.returncode}: {done.stderr.strip()}")
    left += [f"{file}: osv-scanner found no packages" for file in re.findall(r"Scanned (.*) file and found 0 ", said)]
    return done.returncode == FOUND


def past_support(root: Path, raw: dict[str, Any], today: datetime.date) -> Iterator[str]:
    """Yields what is out of support on a day without a reason to stay, and too old Debian packages."""
    known, have = support.read(root), support.pinned(raw)
    for line in (*known.lines.values(), *known.kubernetes.values()):
        if line.over(today) and not line.past:
            yield f"{line.name} {have.get(line.name, line.line)}: support ended ({line.ends}); {line.source}"
    day = raw["debian"]["packages"]
    if today > (last := datetime.date.fromisoformat(day) + datetime.timedelta(PACKAGES_DAYS)):
        yield f"Debian's packages of {day}: an update was due by {last}"
