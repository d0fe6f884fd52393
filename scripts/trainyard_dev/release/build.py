"""`make release`: builds everything that a site takes, into one folder."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev import engine as engines
from trainyard_dev import publish
from trainyard_dev.chart import hub, package
from trainyard_dev.chart import images as listing
from trainyard_dev.images import registry
from trainyard_dev.mirror import sources
from trainyard_dev.progress import Progress
from trainyard_dev.release import artifacts, python, signing
from trainyard_dev.versions import load

SUMS = "SHA256SUMS"
LAYOUT = "registry"  # everything that goes to a registry, as an OCI layout


def release(top: Path, *, key: str = "", cuda: bool = False, home: str = "", tree: Path = ROOT) -> Path:
    """Builds the release of this tree in `top`/trainyard-VERSION, which it replaces, and returns that folder.

    Args:
        key: as for `Signer`.
        home: the project's public address; left out: that of the clone's origin, if it is one.

    Raises:
        TrainyardError: the tree differs from its commit, or a part cannot be built.
    """
    commit = _commit(tree)
    out = top / f"trainyard-{package.VERSION}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    wanted = [image for image in load().ours if cuda or not image.large]
    progress = Progress(8, f"Release {package.VERSION} of commit {commit[:12]} in {out}")
    with sources.readable(engines.find(), [image.ref for image in wanted], "auto") as items:
        space = f"{items[0].at.partition('/')[0]}/{artifacts.SPACE}"
        shutil.rmtree(registry.repositories() / artifacts.SPACE, ignore_errors=True)  # those of an earlier build
        with progress.step("images"):
            made = artifacts.images(engines.find(), wanted, items, space)
        with progress.step("chart"):
            file, chart = artifacts.chart(made, out, space, home or _origin(tree))
        with progress.step(f"wheel, and wheelhouses for Python {' and '.join(python.PYTHONS)}"):
            wheel = python.wheel(out / "wheels")
            houses = python.wheelhouses(wheel, out)
            wheel = Path(shutil.move(wheel, out))
            shutil.rmtree(out / "wheels")
            made += [chart, *artifacts.wheels(houses, space)]
        with progress.step("SBOMs"):
            artifacts.sboms([one for one in made if one.platforms], [file, wheel], space, out / "sbom")
        signer = signing.Signer(out, key)
        with progress.step(f"signatures of {len(made)} artifacts"):
            signer.sign([f"{space}/{one.exact}" for one in made])
        with progress.step("all of them as one layout"):
            artifacts.layout([one.repository for one in made], space, out / LAYOUT)
    with progress.step("pages and results"):
        publish.write(out / "publish")
        (out / "NOTES.md").write_text(_notes(made, commit, signer.own))
        (out / "images.txt").write_text(_listed(made))
    with progress.step("checksums"):
        (out / SUMS).write_text(_sums(out))
        signer.sign_file(out / SUMS)
        signer.close()
    return out


def _commit(tree: Path) -> str:
    if changed := run(["git", "status", "--porcelain"], cwd=tree).stdout.split("\n")[0].strip():
        raise TrainyardError(
            f"the tree differs from its commit: {changed}", hint="commit, or release from a clean clone"
        )
    return run(["git", "rev-parse", "HEAD"], cwd=tree).stdout.strip()


def _origin(tree: Path) -> str:
    url = run(["git", "remote", "get-url", "origin"], cwd=tree, check=False).stdout.strip()
    return url.removesuffix(".git") if url.startswith("https://") and "@" not in url else ""


def _notes(made: Sequence[artifacts.Artifact], commit: str, own_key: bool) -> str:
    changes = "\n".join(f"- {kind}: {text}" for kind, text in hub.changes())
    key = "the maintainers' key" if own_key else "a key made for this release alone, which no longer exists"
    return f"""# trainyard {package.VERSION}

Built from commit {commit}, signed with {key}. docs/release.md of that commit says how to take it.
Sizes are compressed. Images of Go programs alone also run on arm64.

{artifacts.table(made)}

## Changes

{changes}
"""


def _listed(made: Sequence[artifacts.Artifact]) -> str:
    """Every image that a site's installation can start, one a line: ours by path and digest, upstream's by tag."""
    theirs = [image.ref for image in listing.listed("on-prem") if not image.own]
    return "".join(f"{line}\n" for line in [*theirs, *(one.exact for one in made if one.platforms)])


def _sums(out: Path) -> str:
    lines = []
    for file in sorted(out.rglob("*")):
        if file.is_file() and file.name != SUMS:
            with file.open("rb") as opened:
                lines.append(f"{hashlib.file_digest(opened, 'sha256').hexdigest()}  {file.relative_to(out)}\n")
    return "".join(lines)
