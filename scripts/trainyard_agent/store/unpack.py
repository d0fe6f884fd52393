"""Restores an archive's entries: files to a folder, objects to a bucket. Newer ones stay unless `overwrite` is set.

Files are placed through open directories, never through symbolic links, and get their names when complete.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from trainyard_agent.say import PlatformError
from trainyard_agent.store.archive import ETAG, FOLDER, KEY, META, TYPE

if TYPE_CHECKING:
    from minio import Minio

BLOCK = 1 << 20  # bytes
PART = ".trainyard-restore"


@dataclass
class Outcome:
    """Result of a restoration. `kept`: existing entries that were newer, or of another kind, and stay."""

    restored: int = 0
    same: int = 0
    kept: list[str] = field(default_factory=list)


def below(path: str, subtree: str) -> bool:
    """Whether `path` is the subtree or in it. Everything is in ""."""
    return not subtree or path == subtree or path.startswith(f"{subtree}/")


class Folder:
    """A folder to which archived files are restored, with owner, mode and time."""

    def __init__(self, root: Path, *, overwrite: bool, subtree: str = "") -> None:
        self.root, self.overwrite, self.subtree = root, overwrite, subtree
        self.outcome = Outcome()
        self._made: list[tuple[str, tarfile.TarInfo]] = []  # folders that we made; their times are set at the end
        self._top = -1

    def restore(self, tar: tarfile.TarFile) -> Outcome:
        """Restore every entry. Raises OSError and PlatformError; entries restored before stay."""
        try:
            for info in tar:
                path = info.name
                if path == ".":
                    self._open_top(info)
                elif any(part in ("", ".", "..") for part in path.split("/")):
                    raise PlatformError(f"the archive holds {path!r}, which leads out of the folder")
                elif below(path, self.subtree) or (info.isdir() and below(self.subtree, path)):
                    self._place(tar, info, path)
            for path, info in reversed(self._made):
                self._in_parent(path, partial(_stamp, info=info))
        finally:
            if self._top >= 0:
                os.close(self._top)
        return self.outcome

    def _open_top(self, info: tarfile.TarInfo) -> None:
        """Open the folder itself; a missing one is created with the archived attributes."""
        made = not os.path.lexists(self.root)
        if made:
            self.root.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            self.root.mkdir(mode=0o700)
        self._top = os.open(self.root, FOLDER)
        if made:
            _own(self._top, info)

    def _in_parent(self, path: str, act: Callable[[int, str], None]) -> None:
        """Call `act(directory, name)` with the open directory of an entry; missing folders are created."""
        folder, opened = self._top, list[int]()
        parts = path.split("/")
        try:
            for part in parts[:-1]:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
                folder = os.open(part, FOLDER, dir_fd=folder)
                opened.append(folder)
            act(folder, parts[-1])
        finally:
            for descriptor in reversed(opened):
                os.close(descriptor)

    def _place(self, tar: tarfile.TarFile, info: tarfile.TarInfo, path: str) -> None:
        try:
            self._in_parent(path, lambda folder, name: self._entry(tar, info, path, folder, name))
        except NotADirectoryError:  # a file or a link has the name of the archive's folder
            self.outcome.kept.append(path)

    def _entry(self, tar: tarfile.TarFile, info: tarfile.TarInfo, path: str, folder: int, name: str) -> None:
        there = None
        with suppress(FileNotFoundError):
            there = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if info.isdir():
            if there is None:
                os.mkdir(name, 0o700, dir_fd=folder)
                made = os.open(name, FOLDER, dir_fd=folder)
                _own(made, info)
                os.close(made)
                self._made.append((path, info))
                self.outcome.restored += 1
            elif not stat.S_ISDIR(there.st_mode):
                self.outcome.kept.append(path)
            return
        if there is not None and not self._may_replace(there, info, path):
            return
        part = f".{os.getpid()}{PART}"
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=folder)
        if info.issym():
            os.symlink(info.linkname, part, dir_fd=folder)
            os.chown(part, info.uid, info.gid, dir_fd=folder, follow_symlinks=False)
        elif info.islnk():
            self._link(info.linkname, part, folder)
        elif info.isreg():
            _write(cast(IO[bytes], tar.extractfile(info)), part, folder, info)
        else:
            raise PlatformError(f"the archive holds {path!r}, which is not a file, folder or link")
        os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
        with suppress(FileNotFoundError):  # renaming one name of a file to another does nothing
            os.unlink(part, dir_fd=folder)
        self.outcome.restored += 1

    def _may_replace(self, there: os.stat_result, info: tarfile.TarInfo, path: str) -> bool:
        if stat.S_ISDIR(there.st_mode):
            self.outcome.kept.append(path)
            return False
        if info.isreg() and there.st_size == info.size and abs(there.st_mtime - info.mtime) < 0.001:
            self.outcome.same += 1
            return False
        if there.st_mtime > info.mtime + 0.001 and not self.overwrite:
            self.outcome.kept.append(path)
            return False
        return True

    def _link(self, target: str, name: str, folder: int) -> None:
        """Create a hard link to an earlier entry."""
        if any(part in ("", ".", "..") for part in target.split("/")):
            raise PlatformError(f"the archive holds a link to {target!r}, which leads out of the folder")
        self._in_parent(
            target, lambda source, old: os.link(old, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        )


def _write(source: IO[bytes], name: str, folder: int, info: tarfile.TarInfo) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        while block := source.read(BLOCK):
            file.write(block)
        file.flush()
        _own(descriptor, info)
        os.utime(descriptor, (info.mtime, info.mtime))


def _own(descriptor: int, info: tarfile.TarInfo) -> None:
    """Set owner and mode of the open file, whatever has its name by now. Owner first: changing it clears mode bits."""
    os.fchown(descriptor, info.uid, info.gid)
    os.fchmod(descriptor, info.mode)


def _stamp(folder: int, name: str, info: tarfile.TarInfo) -> None:
    os.utime(name, (info.mtime, info.mtime), dir_fd=folder, follow_symlinks=False)


def beside(key: str, into: str, *, per_team: bool) -> str:
    """The key for an object that must not replace the original: below `into`, within its team's prefix if any."""
    if not into:
        return key
    team, slash, rest = key.partition("/")
    return f"{team}/{into}/{rest}" if per_team and slash else f"{into}/{key}"


def restore_bucket(
    client: Minio, bucket: str, tar: tarfile.TarFile, *, overwrite: bool, place: Callable[[str], str], subtree: str = ""
) -> Outcome:
    """Restore objects; `place` returns each one's key. An existing object that differs stays, unless told to overwrite.

    Raises the store's errors.
    """
    from minio.error import S3Error

    outcome = Outcome()
    for info in tar:
        key = info.pax_headers.get(KEY, info.name)
        if not below(key, subtree):
            continue
        name = place(key)
        try:
            there: Any = client.stat_object(bucket, name)
        except S3Error as error:
            if error.code != "NoSuchKey":
                raise
            there = None
        if there is not None and str(there.etag) == info.pax_headers.get(ETAG):
            outcome.same += 1
            continue
        if there is not None and not overwrite:
            outcome.kept.append(name)
            continue
        meta: dict[str, Any] = {
            header.removeprefix(META): value for header, value in info.pax_headers.items() if header.startswith(META)
        }
        client.put_object(
            bucket,
            name,
            cast(Any, tar.extractfile(info)),
            info.size,
            content_type=info.pax_headers.get(TYPE, "application/octet-stream"),
            metadata=meta,
        )
        outcome.restored += 1
    return outcome
