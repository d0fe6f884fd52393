"""What a release puts into a registry: our images, the chart, and a wheelhouse for each Python."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainyard.chart import helm
from trainyard.contract.model import OWN
from trainyard.errors import TrainyardError
from trainyard.shell import run
from trainyard_dev.chart import hub, package
from trainyard_dev.engine import Engine
from trainyard_dev.images import build as builder
from trainyard_dev.images import crane, registry, source
from trainyard_dev.progress import Progress
from trainyard_dev.tools.build import binary
from trainyard_dev.versions import Image

SPACE = "release"  # the path of a release in this machine's registry, beside what the test cluster pulls
OTHER = "arm64"  # built in addition for images of Go programs alone
CHARTS, WHEELS = "charts", "trainyard/python"


@dataclass(frozen=True)
class Artifact:
    """One thing in the registry: its path and tag there, its digest, compressed bytes and platforms (none: data)."""

    path: str
    digest: str
    size: int
    platforms: tuple[str, ...] = ()

    @property
    def repository(self) -> str:
        """The path without the tag."""
        return self.path.rpartition(":")[0]

    @property
    def exact(self) -> str:
        """The path by digest."""
        return f"{self.repository}@{self.digest}"


def images(engine: Engine, wanted: Sequence[Image], items: Sequence[crane.Item], space: str) -> list[Artifact]:
    """Puts our images below `space`, HOST/PATH: those of Go programs as an index of two platforms."""
    crane.mirror(items, space, plain=True)
    both = [image for image in wanted if builder.runs_anywhere(image)]
    progress = Progress(len(both), f"Images for {OTHER}")
    base = source.choose("auto").base(engine)
    for image in both:
        with progress.step(image.ref):
            ref = crane.under(space, image.ref)
            registry.push_as(engine, builder.build(engine, image, base, OTHER), f"{ref}-{OTHER}")
            crane.call("index", "append", "-m", f"{ref}@{crane.digest(ref)}", "-m", f"{ref}-{OTHER}", "-t", ref)
    more = {image.name: [f"linux/{OTHER}"] for image in both}
    return [described(space, image.ref.partition("/")[2], "linux/amd64", *more.get(image.name, ())) for image in wanted]


def chart(made: Sequence[Artifact], out: Path, space: str, home: str) -> tuple[Path, Artifact]:
    """Packages the chart with our images by digest, and pushes it; returns the file and what the registry has."""
    pins = {one.path: one.digest for one in made}

    def finish(folder: Path) -> None:
        pin(folder, pins)
        named = [ref for ref in hub.describe(folder, home) if ref.startswith(f"{OWN}/")]
        if tags := [ref for ref in named if "@sha256:" not in ref and "-cuda:" not in ref]:
            raise TrainyardError(
                f"the chart names {', '.join(tags)} without a digest", hint="write it in values.yaml as NAME:TAG"
            )

    file = package.package(out, finish=finish)
    helm.call("push", file, f"oci://{space}/{CHARTS}", "--plain-http")
    return file, described(space, f"{CHARTS}/{helm.NAME}:{package.VERSION}")


def wheels(files: Sequence[Path], space: str) -> list[Artifact]:
    """Pushes each wheelhouse as an image of one layer, which every client of registries can fetch and verify."""
    made = []
    for file in files:
        path = f"{WHEELS}:{package.VERSION}-{file.stem.rpartition('-')[2]}"
        crane.call("append", "--oci-empty-base", "-f", file, "-t", f"{space}/{path}")
        made.append(described(space, path))
    return made


def pin(chart: Path, pins: Mapping[str, str]) -> None:
    """Writes digests in place of the tags of our images in the values of a chart and of its parts.

    Raises:
        TrainyardError: an image has no digest among the pins, given as path:tag -> digest.
    """
    for file in sorted(chart.rglob("values.yaml")):
        text = file.read_text()
        whole = re.sub(r"(?<=: )trainyard/[a-z0-9-]+:[\w.]+$", lambda at: _pinned(at[0], pins), text, flags=re.M)
        split = re.compile(r"(repository: (trainyard/[a-z0-9-]+)\n\s+tag: )(\S+)$", re.M)
        file.write_text(split.sub(lambda at: f"{at[1]}{at[3]}@{_digest(f'{at[2]}:{at[3]}', pins)}", whole))


def _pinned(path: str, pins: Mapping[str, str]) -> str:
    if path not in pins and "-cuda:" in path:
        return path
    return f"{path.partition(':')[0]}@{_digest(path, pins)}"


def _digest(path: str, pins: Mapping[str, str]) -> str:
    if path not in pins:
        raise TrainyardError(f"the release has no image {path}", hint="list it in versions.yaml as one of our own")
    return pins[path]


def described(space: str, path: str, *platforms: str) -> Artifact:
    """What the registry has below `space` under a path with its tag."""
    found = crane.source(f"{space}/{path}")
    return Artifact(path, found.digest, sum(found.blobs.values()), platforms)


def sboms(made: Sequence[Artifact], files: Sequence[Path], space: str, out: Path) -> None:
    """Writes an SBOM, as SPDX in JSON, for each image and each of the files."""
    out.mkdir()
    targets = {one.path.replace("/", "-").replace(":", "-"): f"registry:{space}/{one.exact}" for one in made}
    targets |= {file.name: f"file:{file}" for file in files}
    progress = Progress(len(targets), "SBOMs")
    for name, target in targets.items():
        with progress.step(name):
            run([binary("syft"), "scan", "--quiet", target, "--output", f"spdx-json={out / name}.spdx.json"],
                env={"SYFT_REGISTRY_INSECURE_USE_HTTP": "true", "SYFT_CHECK_FOR_APP_UPDATE": "false"})  # fmt: skip


def layout(repositories: Sequence[str], space: str, out: Path) -> None:
    """Saves everything below `space`, signatures too, as one OCI layout that `trainyard images load` pushes."""
    items = []
    for repository in sorted(set(repositories)):
        for tag in crane.call("ls", f"{space}/{repository}").splitlines():
            if not tag.endswith(f"-{OTHER}"):  # the index has it
                items.append(crane.Item(f"{OWN}/{repository}:{tag}", f"{space}/{repository}:{tag}"))
    crane.save(items, out)


def table(made: Sequence[Artifact]) -> str:
    """Rows of Markdown: each artifact with its platforms, compressed MB, and digest."""
    rows = [
        f"| `{one.path}` | {', '.join(one.platforms) or 'data'} | {one.size / 1e6:.1f} | `{one.digest}` |"
        for one in made
    ]
    return "\n".join(["| artifact | platforms | MB | digest |", "|---|---|---|---|", *rows])
