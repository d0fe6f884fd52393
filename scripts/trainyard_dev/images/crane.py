"""Copies images between registries and archives with crane, bit by bit the same: digests don't change.

An archive is an OCI image layout: a folder, or the same folder in one tar file.
"""

import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.shell import run
from trainyard_dev.progress import Progress
from trainyard_dev.tools.build import binary

NAME = "org.opencontainers.image.ref.name"
CONTAINERD = "io.containerd.image.name"  # the annotation that `ctr image import` reads


@dataclass(frozen=True)
class Item:
    """An image to copy: its public reference, and the reference from which it is read."""

    ref: str
    at: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[^/]+/[^@]+(:[^/:@]+|@sha256:[0-9a-f]{64})", self.ref):
            raise TrainyardError(f"`{self.ref}` is not a full image reference", hint="write it as HOST/REPOSITORY:TAG")


class MissingError(TrainyardError):
    """The registry has no such image."""


def checked(prefix: str) -> str:
    """HOST[/PATH] without a slash at its end. Raises UsageError for one with a scheme, or without a host."""
    if "://" in prefix or not prefix.strip("/"):
        raise UsageError(f"`{prefix}` is not a registry", hint="write it without a scheme: registry.example.org/mirror")
    return prefix.rstrip("/")


def under(prefix: str, ref: str) -> str:
    """The reference after global.imageRegistry: the prefix in place of the host.

    >>> under("registry.example.org/mirror", "host.example/one/plugin:v1")
    'registry.example.org/mirror/one/plugin:v1'
    """
    return f"{prefix.rstrip('/')}/{ref.partition('/')[2]}"


def digest(ref: str, *, plain: bool = False) -> str:
    """Digest of a tag in the registry, or "" if the tag is missing."""
    try:
        return call("digest", ref, plain=plain)
    except MissingError:
        return ""


def save(items: Sequence[Item], path: Path, *, platform: str = "") -> None:
    """Writes images as an OCI layout: into a folder or, for a name that ends in .tar, into one file.

    An interrupted call can be resumed: complete blobs are not fetched again.
    """
    folder = path.with_name(f"{path.name}.parts") if path.suffix == ".tar" else path
    index, entries, progress = folder / "index.json", [], Progress(len(items), f"Images to {path}")
    for item in sorted(items, key=lambda item: item.ref):
        with progress.step(item.ref):
            index.unlink(missing_ok=True)  # crane adds to it; a layout without it is not finished
            call("pull", "--format", "oci", item.at, folder, platform=platform)
            [entry] = json.loads(index.read_text())["manifests"]
            entries.append(entry | {"annotations": {NAME: item.ref, CONTAINERD: item.ref}})
            index.unlink()
    media = "application/vnd.oci.image.index.v1+json"
    index.write_text(json.dumps({"schemaVersion": 2, "mediaType": media, "manifests": entries}, indent=1))
    call("layout", "gc", folder)  # remains of another save
    if path != folder:
        pack(folder, path)


def load(path: Path, prefix: str, *, plain: bool = False) -> dict[str, str]:
    """Pushes all images of an archive or folder below HOST[/PATH]; returns each new reference with its digest.

    A tar file is unpacked first, to where temporary files lie.
    """
    with tempfile.TemporaryDirectory() as room:
        folder, one = path if path.is_dir() else _unpacked(path, Path(room) / "all"), Path(room) / "one"
        entries = _entries(folder)
        _check_blobs(folder)
        one.mkdir()
        (one / "blobs").symlink_to((folder / "blobs").resolve())
        progress, done = Progress(len(entries), f"Images to {prefix}"), {}
        for ref, entry in entries.items():
            to = under(checked(prefix), ref)
            with progress.step(to):
                # crane pushes a layout of one image.
                (one / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
                call("push", one, to, plain=plain)
                done[to] = _arrived(to, entry["digest"], plain)
    return done


def mirror(items: Sequence[Item], prefix: str, *, plain: bool = False, platform: str = "") -> dict[str, str]:
    """Copies images from their registries to HOST[/PATH], through this machine's memory only.

    Prints their sizes first. An interrupted call can be resumed: neither complete images nor complete blobs are sent
    again.
    """
    targets = {under(checked(prefix), item.ref): item for item in items}
    with ThreadPoolExecutor(8) as pool:
        sources = dict(zip(targets, pool.map(lambda item: source(item.at, platform), targets.values()), strict=True))
        there = dict(zip(targets, pool.map(lambda to: digest(to, plain=plain), targets), strict=True))
    done = {to: one.digest for to, one in sources.items() if there[to] == one.digest}
    for to, one in sources.items():
        print(f"{_megabytes(one.blobs):>10}  {to}{'  there already' if to in done else ''}")
    due = {to: one for to, one in sources.items() if to not in done}
    whole, part = (_megabytes(dict(ChainMap(*(one.blobs for one in some.values())))) for some in (sources, due))
    print(f"{len(sources)} images, {whole}; to copy: {len(due)} images, {part}")
    progress = Progress(len(due), f"Images to {prefix}")
    for to, one in due.items():
        with progress.step(to):
            call("copy", one.ref, to, plain=plain)
            done[to] = _arrived(to, one.digest, plain)
    return done


@dataclass(frozen=True)
class Source:
    """An image to copy, by digest, since crane contacts every registry without TLS if one of them has none.

    `blobs` has the bytes of each layer, of all platforms.
    """

    ref: str
    digest: str
    blobs: dict[str, int]


def source(at: str, platform: str = "") -> Source:
    """What a registry has under a reference. Raises MissingError."""
    found, where = call("digest", at, platform=platform), repository(at)
    manifest = json.loads(call("manifest", f"{where}@{found}"))
    blobs = {one["digest"]: one["size"] for one in manifest.get("layers", ())}
    for one in manifest.get("manifests", ()):
        blobs |= source(f"{where}@{one['digest']}").blobs
    return Source(f"{where}@{found}", found, blobs)


def repository(ref: str) -> str:
    """A reference without tag and digest."""
    name = ref.partition("@")[0]
    return name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name


def _megabytes(blobs: Mapping[str, int]) -> str:
    return f"{sum(blobs.values()) / 1e6:,.1f} MB"


def _arrived(ref: str, wanted: str, plain: bool) -> str:
    found = digest(ref, plain=plain)
    if found != wanted:
        raise TrainyardError(f"{ref} has the digest {found or 'of nothing'}, not {wanted}", hint="try again")
    return found


def call(*argv: str | Path, plain: bool = False, platform: str = "") -> str:
    """crane's output. Raises MissingError or another TrainyardError, depending on its message."""
    flags = [*(["--insecure"] if plain else []), *(["--platform", platform] if platform else [])]
    with _logins() as env:
        done = run([binary("crane"), *flags, *argv], env=env, check=False)
    if done.returncode:
        raise _error(" ".join(done.stderr.rpartition("Error: ")[2].split()))
    return done.stdout.strip()


def _error(said: str) -> TrainyardError:
    named = re.findall(r'https?://([^/"\s]+)(?:/v2/([^\s"?]*))?', said)
    host, path = named[-1] if named else ("the registry", "")
    if re.search(r"dial tcp|tls:|x509:|server gave HTTP response|i/o timeout|proxyconnect", said):
        hint = "check the name, and --plain-http if it has no TLS"
        return TrainyardError(f"cannot reach {host}: {said}", hint=hint)
    if re.search(r"UNAUTHORIZED|DENIED|\b40[13] ", said):
        hint = f"log in to it with `docker login {host}` or `podman login {host}`"
        return TrainyardError(f"{host} refuses: {said}", hint=hint)
    if re.search(r"_UNKNOWN|\b404 ", said):
        return MissingError(f"{host} has no {path.rstrip(':')}")
    if found := re.search(r"no child with platform (\S+) in index (\S+)", said):
        return TrainyardError(f"{found[2]} is not published for {found[1]}", hint="omit --platform")
    if "checksum" in said:
        return TrainyardError(f"a blob is corrupt: {said}", hint="try again; complete files are kept")
    if "no such file" in said:
        return TrainyardError(f"a blob is missing: {said}", hint="save it again")
    return TrainyardError(f"crane failed: {said}", hint="see the registry's log")


@contextmanager
def _logins() -> Iterator[dict[str, str]]:
    """Variables with which crane finds podman's log-ins, too, which it ignores if docker has a file."""
    podman = [Path(os.environ.get("REGISTRY_AUTH_FILE", ""))]
    podman += [Path(os.environ.get("XDG_RUNTIME_DIR", "")) / "containers/auth.json"]
    docker = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    if not any(file.is_file() for file in podman):
        yield {}
        return
    logins: dict[str, Any] = {}
    for file in (*podman, docker):
        try:
            logins = json.loads(file.read_text()).get("auths", {}) | logins
        except (OSError, ValueError):
            continue
    if hub := logins.get("docker.io"):
        logins["https://index.docker.io/v1/"] = hub
    with tempfile.TemporaryDirectory() as folder:  # no other user may read it
        (Path(folder) / "config.json").write_text(json.dumps({"auths": logins}))
        yield {"DOCKER_CONFIG": folder}


def _entries(folder: Path) -> dict[str, dict[str, Any]]:
    """A layout's entries by reference. Raises TrainyardError for one that names none."""
    try:
        found = json.loads((folder / "index.json").read_text())["manifests"]
        if found:
            return {entry["annotations"][NAME]: entry for entry in found}
    except FileNotFoundError:
        pass
    except (KeyError, TypeError, ValueError):
        said = f"index.json lacks the image names in {NAME}"
        raise TrainyardError(said, where=str(folder), hint="save it again") from None
    hint = "finish `trainyard images save` first"
    raise TrainyardError("index.json is missing or empty", where=str(folder), hint=hint)


def _check_blobs(folder: Path) -> None:
    """Raises TrainyardError for a damaged blob, before anything is pushed."""
    for path in folder.glob("blobs/sha256/*"):
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != path.name:
                raise TrainyardError(f"sha256:{path.name} is damaged", where=str(folder), hint="save it again")


def pack(folder: Path, file: Path) -> None:
    """Packs a folder into one tar file, under a temporary name first, and removes the folder."""
    part = file.with_name(f"{file.name}.part")
    anonymous = lambda member: member.replace(mtime=0, uid=0, gid=0, uname="", gname="", deep=False)  # noqa: E731
    with tarfile.open(part, "w") as tar:
        for path in sorted(folder.rglob("*"), key=lambda path: ("blobs" in path.parts, path)):
            if path.is_file():
                tar.add(path, str(path.relative_to(folder)), filter=anonymous)
    part.rename(file)
    print(f"{file}: {file.stat().st_size / 1e6:.0f} MB")
    shutil.rmtree(folder)


def _unpacked(file: Path, folder: Path) -> Path:
    try:
        with tarfile.open(file, "r:") as tar:
            tar.extractall(folder, filter="data")
    except (tarfile.TarError, OSError) as error:
        said = f"not an archive of `trainyard images save`: {error}"
        raise TrainyardError(said, where=str(file), hint="save it again, with enough free space in $TMPDIR") from None
    return folder
