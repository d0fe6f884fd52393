"""Images on disk as an OCI image layout: a folder, or the same folder in one tar file."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from trainyard.errors import TrainyardError
from trainyard_dev.images.remote import CHUNK, Manifest

NAME = "org.opencontainers.image.ref.name"
CONTAINERD = "io.containerd.image.name"  # the annotation that `ctr image import` reads
VERSION = {"imageLayoutVersion": "1.0.0"}


class Folder:
    """A layout that is written and read; blobs that are whole stay, so an interrupted save goes on where it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Where a blob lies."""
        kind, _, name = digest.partition(":")
        return self.folder / "blobs" / kind / name

    def has(self, digest: str, size: int) -> bool:
        """Whether the blob is there in full."""
        path = self.path(digest)
        return path.is_file() and path.stat().st_size == size

    def put(self, digest: str, body: IO[bytes]) -> None:
        """Writes a blob. Raises TrainyardError when its bytes are not those of the digest."""
        path = self.path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        part, reckoned = path.with_suffix(".part"), hashlib.sha256()
        with part.open("wb") as file:
            while chunk := body.read(CHUNK):
                reckoned.update(chunk)
                file.write(chunk)
        if f"sha256:{reckoned.hexdigest()}" != digest:
            part.unlink()
            raise TrainyardError(f"a blob arrived broken: {digest}", hint="try again; what is whole stays")
        part.rename(path)

    def put_manifest(self, manifest: Manifest) -> None:
        """Writes a manifest or index among the blobs."""
        path = self.path(manifest.digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(manifest.body)

    def close(self, refs: dict[str, Manifest]) -> None:
        """Writes what makes the folder a layout; `refs` maps each reference to its manifest."""
        entries = [
            {
                "mediaType": manifest.media_type,
                "digest": manifest.digest,
                "size": len(manifest.body),
                "annotations": {NAME: ref, CONTAINERD: ref},
            }
            for ref, manifest in sorted(refs.items())
        ]
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries}
        (self.folder / "index.json").write_text(json.dumps(index, indent=1))
        (self.folder / "oci-layout").write_text(json.dumps(VERSION))

    def open(self, digest: str) -> IO[bytes]:
        """A blob to read."""
        return self._open(f"blobs/{digest.replace(':', '/')}")

    def refs(self) -> dict[str, Manifest]:
        """Each reference with its manifest or index. Raises TrainyardError for a layout that names none."""
        try:
            with self._open("index.json") as file:
                entries = {entry["annotations"][NAME]: entry for entry in json.load(file)["manifests"]}
        except (KeyError, TypeError, ValueError):
            raise TrainyardError(
                f"index.json doesn't say by {NAME} which image is which", where=str(self.folder), hint="save it again"
            ) from None
        return {ref: self.manifest(entry) for ref, entry in entries.items()}

    def manifest(self, descriptor: dict[str, Any]) -> Manifest:
        """What a descriptor points to. Raises TrainyardError when it is not what it was."""
        with self.open(descriptor["digest"]) as file:
            found = Manifest(descriptor["mediaType"], file.read())
        if found.digest != descriptor["digest"]:
            raise TrainyardError(f"{descriptor['digest']} is damaged", where=str(self.folder), hint="save it again")
        return found

    def _open(self, name: str) -> IO[bytes]:
        try:
            return (self.folder / name).open("rb")
        except FileNotFoundError:
            raise TrainyardError(
                f"{name} is missing", where=str(self.folder), hint="finish `trainyard images save` first"
            ) from None


class Archive(Folder):
    """A layout in a tar file, read only."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        try:
            self._tar = tarfile.open(file, "r:")  # noqa: SIM115
        except (tarfile.TarError, OSError) as error:
            raise TrainyardError(
                f"this is no archive of `trainyard images save`: {error}", where=str(file), hint="save it again"
            ) from None
        self._members = {member.name: member for member in self._tar}

    def _open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        if member is None or (found := self._tar.extractfile(member)) is None:
            raise TrainyardError(f"{name} is missing", where=str(self.folder), hint="save it again")
        return found


def read(path: Path) -> Folder:
    """The layout at `path`, a folder or a tar file."""
    return Folder(path) if path.is_dir() else Archive(path)


def pack(folder: Path, file: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """Puts a layout's folder into one tar file, beside first, and removes the folder."""
    part = file.with_name(f"{file.name}.part")
    with tarfile.open(part, "w") as tar:
        for path in sorted(folder.rglob("*"), key=lambda path: ("blobs" in path.parts, path)):
            if path.is_file() and path.suffix != ".part":
                tar.add(path, str(path.relative_to(folder)), filter=_anonymous)
    part.rename(file)
    say(f"{file}: {file.stat().st_size / 1e6:.0f} MB")
    shutil.rmtree(folder)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
