"""`make release-test`: a site takes a release by the commands of its page, and refuses what was changed on the way."""

import json
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click

from trainyard.errors import TrainyardError
from trainyard.paths import OUT, ROOT, cache_dir
from trainyard.shell import CommandError, run
from trainyard_dev import campaigns
from trainyard_dev import engine as engines
from trainyard_dev.e2e import walks
from trainyard_dev.images import crane
from trainyard_dev.release import artifacts, signing, site
from trainyard_dev.release.build import LAYOUT, SUMS
from trainyard_dev.tools.build import binary

PAGE = ROOT / "docs" / "release.md"
WALK = "site engineer"
MOST_COMMANDS, MOST_SECONDS = 6, 15 * 60
PYTHON = "py3.11"
RESULT = OUT / "release-test.json"


def newest(top: Path) -> Path:
    """The release below a folder that was built last. Raises TrainyardError if there is none."""
    found = sorted(top.glob(f"trainyard-*/{SUMS}"), key=lambda file: file.stat().st_mtime)
    if not found:
        raise TrainyardError("no release was built", where=str(top), hint="run `make release`")
    return found[-1].parent


def run_all(folder: Path, cluster: str) -> int:
    """Takes the release and attacks it; prints each step with its seconds. Returns the exit code of the campaign."""
    engine = engines.find()
    steps: list[dict[str, str | float]] = []
    (cache_dir() / "work").mkdir(exist_ok=True)
    files = {"site.yaml": (ROOT / "charts/trainyard/profiles/kind.yaml").read_text(),
             "team.yaml": (ROOT / "manifests/teams/first-team.yaml").read_text(),
             signing.PUBLIC: (folder / signing.PUBLIC).read_text()}  # fmt: skip
    check_sums(folder)
    room = tempfile.TemporaryDirectory(prefix="site-", dir=cache_dir() / "work")
    with room as work, site.running(engine, cluster, Path(work), files) as there:
        crane.load(folder / LAYOUT, there.local, plain=True)
        names = exact(there)
        for command in walks.read(PAGE.read_text()).walk(WALK).commands:
            began = time.monotonic()
            there.type(command, **names)
            took = round(time.monotonic() - began, 1)
            steps.append({"command": walks.plain(command), "seconds": took})
            click.echo(f"{took:7.1f} s  {steps[-1]['command']}")
        refusals = {name: attack(there, names) for name, attack in ATTACKS.items()}
    for name, said in refusals.items():
        click.echo(f"refused  {name}: {said}")
    total = sum(float(step["seconds"]) for step in steps)  # of the commands alone: a site has its cluster
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"release": folder.name, "commands": steps, "refusals": refusals}, indent=1))
    click.echo(f"{len(steps)} commands in {total:.0f} s; written: {RESULT}")
    return campaigns.ended("release-test", good=len(steps) <= MOST_COMMANDS and total <= MOST_SECONDS)


def check_sums(folder: Path) -> None:
    """Raises TrainyardError for a file that differs from its checksum, or checksums that the key did not sign."""
    bundle, key = f"--bundle={folder / SUMS}.sigstore.json", f"--key={folder / signing.PUBLIC}"
    run([binary("cosign"), "verify-blob", key, bundle, *signing.VERIFY, folder / SUMS])
    run(["sha256sum", "--check", "--quiet", SUMS], cwd=folder, hint="the release is damaged: copy it again")


def exact(there: site.Site) -> dict[str, str]:
    """The variables of the page: registry, chart and wheels, these by digest."""
    found = {}
    for repository in (f"{artifacts.CHARTS}/trainyard", artifacts.WHEELS):
        ref = f"{there.local}/{repository}:{_tag(there, repository)}"
        found[repository] = f"{repository}@{crane.digest(ref, plain=True)}"
    chart, wheels = found.values()
    return {"REGISTRY": site.PREFIX, "CHART": chart, "WHEELS": wheels}


def _tag(there: site.Site, repository: str) -> str:
    """A release's tag, of the artifact for this site's Python; the other tags are signatures."""
    tags = crane.call("ls", f"{there.local}/{repository}", plain=True).splitlines()
    return next(tag for tag in tags if re.fullmatch(rf"\d+\.\d+\.\d+(-{PYTHON})?", tag))


def _refusal(does: Callable[[], str], what: str, said: str) -> str:
    """The last line of a call that must fail with these words. Raises TrainyardError otherwise."""
    try:
        does()
    except CommandError as error:
        if said in error.output:
            return f"{what}: {error.output.strip().splitlines()[-1].strip()}"
        raise TrainyardError(f"{what} failed for another reason: {error.output}") from None
    raise TrainyardError(f"{what} was taken, though it was changed")


def _blob(there: site.Site, digest: str) -> Path:
    hexadecimal = digest.partition(":")[2]
    return there.storage / "docker/registry/v2/blobs/sha256" / hexadecimal[:2] / hexadecimal / "data"


def tampered(there: site.Site, names: dict[str, str]) -> str:
    """One byte of the chart's archive differs in the registry."""
    manifest = json.loads(crane.call("manifest", f"{there.local}/{names['CHART']}", plain=True))
    layer = manifest["layers"][0]["digest"]
    blob = _blob(there, layer)
    kept = blob.read_bytes()
    try:
        blob.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        ref = f"oci://{site.PREFIX}/{names['CHART']}"
        return _refusal(lambda: there.type(f"helm pull {ref}"), ref, "mismatched digest")
    finally:
        blob.write_bytes(kept)


def swapped(there: site.Site, names: dict[str, str]) -> str:
    """The chart's tag names another chart, which nobody signed."""
    repository, _, wanted = names["CHART"].partition("@")
    tag = _tag(there, repository)
    crane.call("mutate", f"{there.local}/{names['CHART']}", "--annotation", "swapped=yes",
               "-t", f"{there.local}/{repository}:{tag}", plain=True)  # fmt: skip
    verify = f"cosign verify --key {signing.PUBLIC} {' '.join(signing.VERIFY)}"
    ref = f"{site.PREFIX}/{repository}:{tag}"
    said = _refusal(lambda: there.type(f"{verify} {ref}"), ref, "no signatures found")
    there.type(f"{verify} {site.PREFIX}/{repository}@{wanted}")  # the digest still names the signed one
    return said


def missing(there: site.Site, names: dict[str, str]) -> str:
    """An image of two platforms has lost one: a node of that architecture asks for the image by its digest."""
    repository = "trainyard/minio"
    local = f"{there.local}/{repository}"
    tag = _tag(there, repository)
    index = json.loads(crane.call("manifest", f"{local}:{tag}", plain=True))
    [lost] = [one["digest"] for one in index["manifests"] if one["platform"]["architecture"] == artifacts.OTHER]
    exactly = f"{site.PREFIX}/{repository}@{crane.digest(f'{local}:{tag}', plain=True)}"
    crane.call("delete", f"{local}@{lost}", plain=True)
    wanted = f"linux/{artifacts.OTHER}"
    pull = ("ctr", "image", "pull", "--hosts-dir", "/etc/containerd/certs.d", "--platform", wanted, exactly)
    return _refusal(lambda: there.node(*pull), f"{exactly} for {wanted}", lost)


ATTACKS = {"a tampered blob": tampered, "a swapped tag": swapped, "a missing platform": missing}
