"""Debian packages in images: which there are, and what Debian says of them."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.shell import CommandError, run
from trainyard_dev.audit import ordering
from trainyard_dev.audit.advisories import Advisory, Part, Span
from trainyard_dev.audit.sources import Answer, Fetch, Open, reason
from trainyard_dev.engine import Engine

TRACKER = "https://security-tracker.debian.org/tracker/data/json"
STATUS, RELEASE = "/var/lib/dpkg/status", "/usr/lib/os-release"
# The archive serves binary packages, the tracker speaks of those that they are built from: two worlds of names.
BINARY, SOURCE = "Debian binary", "Debian"
# Of the tracker: what Debian itself doesn't count as a hole of this release.
NO_HOLE = ("unimportant", "end-of-life")


@dataclass(frozen=True)
class Contents:
    """What an image holds of Debian. `sources` gives the source package and its version of each binary package."""

    image: str
    made: str  # day, as the engine has it
    suite: str
    packages: Mapping[str, str]
    sources: Mapping[str, tuple[str, str]]
    shipped: bool = False

    def binaries(self) -> Iterator[Part]:
        """A part for each installed package, as the archive knows it."""
        kind = f"{BINARY}:{self.suite}"
        return (self._part(kind, *one) for one in sorted(self.packages.items()))

    def of_source(self) -> Iterator[Part]:
        """A part for each source package that something installed was built from, as the tracker knows it."""
        return (self._part(f"{SOURCE}:{self.suite}", *one) for one in sorted(set(self.sources.values())))

    def _part(self, kind: str, name: str, version: str) -> Part:
        return Part(kind, name, version, f"image {self.image}", shipped=self.shipped)


def contents(engine: Engine, image: str, ref: str, shipped: bool = False) -> Contents | None:
    """Reads an image of the engine's own store without running it; None for one without Debian's packages."""
    made = engine("image", "inspect", "--format", "{{.Created}}", ref).stdout.strip()[:10]
    box = engine("create", ref, "none").stdout.strip().splitlines()[-1]
    try:
        with tempfile.TemporaryDirectory() as folder:
            status, release = Path(folder) / "status", Path(folder) / "release"
            if engine("cp", f"{box}:{STATUS}", status, check=False).returncode:
                return None
            suite = ""
            if engine("cp", f"{box}:{RELEASE}", release, check=False).returncode == 0:
                suite = release_name(release.read_text())
            packages, sources = installed(status.read_text(errors="replace"))
            return Contents(image, made, suite, packages, sources, shipped) if packages else None
    finally:
        engine("rm", "-f", box, check=False)


def release_name(os_release: str) -> str:
    """`bookworm`, out of os-release; empty where it names none."""
    match = re.search(r"^VERSION_CODENAME=\"?([a-z]+)", os_release, re.M)
    return match[1] if match else ""


def installed(status: str) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Package -> version, and package -> its source and that one's version, out of dpkg's status."""
    packages, sources = {}, {}
    for entry in status.split("\n\n"):
        field = dict(re.findall(r"^(Package|Status|Version|Source): (.*)$", entry, re.M))
        if not field.get("Status", "").endswith(" installed") or "Version" not in field:
            continue
        name, version = field["Package"], field["Version"]
        match = re.fullmatch(r"(\S+)(?: \((\S+)\))?", field.get("Source", name))
        packages[name] = version
        sources[name] = (match[1], match[2] or version) if match else (name, version)
    return packages, sources


def archive_of_this_machine() -> str:
    """Where apt finds security updates here, as the machine's own sources say; "" where it has none."""
    try:
        said = run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], timeout=60).stdout
    except (CommandError, OSError):
        return ""
    return next((line.rstrip("/") for line in said.splitlines() if "debian-security" in line), "")


def archive(suites: Iterable[str], held: Mapping[str, frozenset[str]], fetch: Fetch, base: str) -> Answer:
    """What Debian's security archive serves for the suites: any older version lacks a security update.

    It knows nothing of holes that have no update yet.

    Args:
        held: suite -> the packages that matter.
        base: where it is; "": nobody knows.
    """
    found: list[Advisory] = []
    left: list[Open] = []
    for suite in suites:
        if not base:
            left.append(Open(f"Debian's security archive, for {suite}", "this machine's apt names none"))
            continue
        try:
            found += _served(suite, held[suite], fetch, base)
        except (OSError, ValueError, lzma.LZMAError, EOFError) as error:
            said = reason(error) if isinstance(error, OSError | ValueError) else "its answer can't be unpacked"
            left.append(Open(f"Debian's security archive, for {suite}", said))
    return Answer(tuple(found), tuple(left))


def _served(suite: str, held: frozenset[str], fetch: Fetch, base: str) -> Iterator[Advisory]:
    top = f"{base}/dists/{suite}-security"
    release = fetch(f"{top}/Release", None).decode()
    index = "main/binary-amd64/Packages.xz"
    match = re.search(rf"^SHA256:\n(?: .*\n)*? ([0-9a-f]{{64}}) +\d+ {re.escape(index)}$", release, re.M)
    packed = fetch(f"{top}/{index}", None)
    if not match or hashlib.sha256(packed).hexdigest() != match[1]:
        raise ValueError(f"{index} is not what Release says of it")
    day = next(iter(re.findall(r"^Date: \S+ (.*?) \d\d:", release, re.M)), "")
    newest: dict[str, str] = {}
    for entry in lzma.decompress(packed).decode().split("\n\n"):
        field = dict(re.findall(r"^(Package|Version): (.*)$", entry, re.M))
        name, version = field.get("Package", ""), field.get("Version", "")
        if name in held and (name not in newest or ordering.debian(newest[name]) < ordering.debian(version)):
            newest[name] = version
    for name, version in sorted(newest.items()):
        yield Advisory(f"{suite}-security", f"{BINARY}:{suite}", name, (Span(fixed=version),),
                       what="A security update is out.", source=f"Debian's archive of {day}")  # fmt: skip


def tracker(parts: Sequence[Part], fetch: Fetch, url: str = TRACKER) -> Answer:
    """What Debian's security tracker knows of source packages: holes with an update, and those that Debian will mend.

    What Debian calls unimportant, or minor without an update (`nodsa`), is no finding.
    """
    if not parts:
        return Answer()
    try:
        packed = fetch(url, None)
        known = json.loads(gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed)
        return Answer(tuple(_tracked(known, sorted({(part.ecosystem, part.name) for part in parts}))))
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        said = reason(error) if isinstance(error, OSError) else f"its answer can't be read ({error})"
        return Answer(open=(Open("Debian's security tracker, for holes without an update", said),))


def _tracked(known: Mapping[str, Any], asked: Sequence[tuple[str, str]]) -> Iterator[Advisory]:
    for ecosystem, name in asked:
        suite = ecosystem.partition(":")[2]
        for cve, entry in known.get(name, {}).items():
            state = entry.get("releases", {}).get(suite)
            if not state or state.get("urgency") in NO_HOLE:
                continue
            fixed = state.get("fixed_version", "") if state.get("status") == "resolved" else ""
            if fixed == "0" or (not fixed and (state.get("status") != "open" or "nodsa" in state)):
                continue
            yield Advisory(cve, ecosystem, name, (Span(fixed=fixed),), what=str(entry.get("description", "")),
                           source="Debian's tracker")  # fmt: skip
