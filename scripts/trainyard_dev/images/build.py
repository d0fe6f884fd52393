"""Builds images, each from the Containerfile of its folder, once per content."""

import hashlib
import os
import re
import shutil
import ssl
import tempfile
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT, cache_dir
from trainyard.shell import run
from trainyard_dev import proxies, tools
from trainyard_dev.engine import Engine
from trainyard_dev.images import imports
from trainyard_dev.images.base import under
from trainyard_dev.tools.build import pin
from trainyard_dev.versions import Image, ToolSet, load

SKIP = {"__pycache__", ".ruff_cache", ".pytest_cache"}


def content_key(image: Image, base: str) -> str:
    """A hash over all inputs of an image: its files, binaries, module files and the base's reference."""
    stands_on = local_ref(load().images[image.parent], base) if image.parent else under(image, base)
    digest = hashlib.sha256(f"{image.bin}{sorted(image.files.items())}{stands_on}{image.ref}".encode())
    digest.update(f"{imports.declared(image) or ''}".encode())
    for entry in sorted({image.dir, *image.inputs}):
        for path in _files(ROOT / entry):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    used = tools_of(image)
    for tool in load().tools.values():
        if tool in used or any(source.split(":")[0] == tool.name for source in image.files.values()):
            digest.update(pin(tool).encode())
    return digest.hexdigest()[:12]


def tools_of(image: Image) -> list[ToolSet]:
    """The sets whose binaries are in an image."""
    sets = [tool for tool in load().tools.values() if tool.default]
    return [tool for tool in sets if {name for _, name in tool.packages} & set(image.bin)]


def local_ref(image: Image, base: str) -> str:
    """The tag under which the engine's own store keeps exactly this content."""
    return f"localhost/trainyard/build/{image.name}:{content_key(image, base)}"


def runs_anywhere(image: Image) -> bool:
    """Whether an image holds Go programs and data alone, so that it can be built for another architecture here."""
    file = ROOT / image.dir / "Containerfile"
    return bool(image.bin) and re.findall(r"^FROM (?:--\S+ )?(\S+)", file.read_text(), re.M)[-1] == "scratch"


def build(engine: Engine, image: Image, base: str, arch: str = "") -> str:
    """Builds the image unless the engine has this content already.

    Args:
        base: the image for `BASE` in Containerfiles; images on the older suite use its counterpart.
        arch: another architecture, such as arm64, for an image that `runs_anywhere`.

    Returns:
        the reference in the engine's store.
    """
    tag = f"{local_ref(image, base)}{arch and f'-{arch}'}"
    if engine.has_image(tag):
        return tag
    if not (ROOT / image.dir / "Containerfile").exists():
        raise TrainyardError("the Containerfile is missing", where=image.dir)
    stands_on = build(engine, load().images[image.parent], base) if image.parent else under(image, base)
    (cache_dir() / "work").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{image.name}-", dir=cache_dir() / "work") as folder:
        context = Path(folder)
        containerfile = _stage(image, context, arch)
        # Host networking: package registries may only be reachable from the host.
        engine(
            "build",
            "--network",
            "host",
            "-f",
            containerfile,
            "-t",
            tag,
            *_certificates(),
            *proxies.for_builds(),
            *(["--platform", f"linux/{arch}"] if arch else []),
            "--build-arg",
            f"BASE={stands_on}",
            "--build-arg",
            f"KUBERNETES_VERSION={load().kubernetes}",
            "--build-arg",
            f"IMAGE={image.name}",
            context,
            timeout=1800,
            hint="check the network and the disk (`trainyard doctor`), then try again; finished builds are kept",
        )
    if not arch:
        imports.check(engine, image, tag)
    return tag


def _stage(image: Image, context: Path, arch: str) -> Path:
    """Creates the build context: the inputs, `bin/`, `files/`; returns the Containerfile to use."""
    top = ROOT / image.context
    for entry in sorted({image.dir, *image.inputs}):
        source, target = ROOT / entry, context / (ROOT / entry).relative_to(top)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
        else:
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*SKIP))
    for name in image.bin:
        (context / "bin").mkdir(exist_ok=True)
        shutil.copy2(tools.binary(name, arch=arch), context / "bin" / name)
    for name, place in image.files.items():
        tool, path = place.split(":", 1)
        found, target = tools.module_dir(tool) / path, context / "files" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            run(["cp", "-r", "--no-preserve=mode", found, target])
        else:
            shutil.copyfile(found, target)
    containerfile = context / (ROOT / image.dir).relative_to(top) / "Containerfile"
    if image.bin:
        containerfile.write_text(containerfile.read_text().replace("@BINARY@", image.bin[0]))
    return containerfile


def _certificates() -> list[str]:
    """Passes this machine's certificate authorities to builds, as a secret: a site may have its own."""
    bundle = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
    return ["--secret", f"id=ca-bundle,src={bundle}"] if bundle and Path(bundle).is_file() else []


def _files(folder: Path) -> list[Path]:
    found = [folder] if folder.is_file() else folder.rglob("*")
    return sorted(p for p in found if p.is_file() and not SKIP & set(p.parts))
