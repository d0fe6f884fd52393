"""Packs a folder into an archive that is byte-for-byte the same while the code is unchanged."""

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from trainyard.errors import UsageError
from trainyard.training.ignore import FILE, Ignore, lines_of
from trainyard_agent.store.archive import Sums

MOST = 256 << 20  # bytes of files; anything larger is data, which should not be sent with the code
NAMED = 3


@dataclass(frozen=True)
class Pack:
    """An archive. `left_out`: symbolic links to folders, and entries that are not files.

    `outside`: links to files outside the folder, which are packed.
    """

    path: Path
    sha256: str
    size: int
    files: int
    left_out: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)


def pack(folder: Path, target: Path, *, without: tuple[str, ...] = ()) -> Pack:
    """Writes the archive of a folder's code to `target`.

    Args:
        without: folders below it that are not code: those for results.

    Raises:
        UsageError: there is nothing to pack, too much, or an unreadable file.
    """
    found, left_out, outside = _files(folder, Ignore([*lines_of(ignored(folder)), *(f"/{name}/" for name in without)]))
    if not found:
        hint = f"choose another folder with --dir, or check {FILE}"
        raise UsageError("the folder contains no code", where=str(folder), hint=hint)
    total = sum(size for _, size in found)
    if total > MOST:
        largest = sorted(found, key=lambda item: -item[1])[:NAMED]
        named = ", ".join(f"{name} ({size / 2**20:.0f} MiB)" for name, size in largest)
        what = f"the folder contains {total / 2**20:.0f} MiB, the largest: {named}; code may have {MOST >> 20} MiB"
        hint = f"list data and results in {FILE}; upload data with `trainyard data put`, or mount it"
        raise UsageError(what, where=str(folder), hint=hint)
    with open(target, "wb") as file:
        sums = Sums(cast(IO[bytes], file))
        with (
            gzip.GzipFile(filename="", mode="wb", fileobj=cast(IO[bytes], sums), mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name, _ in found:
                _add(tar, folder / name, name)
    return Pack(target, sums.sha256, sums.size, len(found), left_out, outside)


def ignored(folder: Path) -> str:
    """Text of the folder's ignore file; "" if it has none. Raises UsageError."""
    try:
        return (folder / FILE).read_text()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{FILE} can't be read: {error}", where=str(folder)) from None


def _files(folder: Path, ignore: Ignore) -> tuple[list[tuple[str, int]], list[str], list[str]]:
    """Sorted names and sizes of the files to pack; entries omitted without a rule; links that lead outside."""
    found, left_out, outside = [], [], []
    for where, name, entry in walk(folder, "", ignore):
        if entry.is_file():  # also a symbolic link, whose target is packed
            found.append((where + name, entry.stat().st_size))
            outside += [where + name] if leads_out(folder, entry) else []
        else:
            left_out.append(where + name)
    return sorted(found), sorted(left_out), sorted(outside)


def leads_out(folder: Path, entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a symbolic link to a target outside the folder."""
    return entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(folder.resolve())


def walk(folder: Path, prefix: str, ignore: Ignore) -> Iterator[tuple[str, str, os.DirEntry[str]]]:
    """(prefix, name, entry) of everything that isn't ignored, sorted. Raises UsageError."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise UsageError(f"the folder can't be read: {error.strerror}", where=str(folder)) from None
    for entry in entries:
        below = entry.is_dir(follow_symlinks=False)
        if ignore.leaves_out(prefix + entry.name, folder=below):
            continue
        if below:
            yield from walk(Path(entry.path), f"{prefix}{entry.name}/", ignore)
        else:
            yield prefix, entry.name, entry


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the file can't be read: {error.strerror}", where=str(path), hint=f"make it readable, or list it in {FILE}"
        ) from None
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(data), 0
    info.mode = 0o755 if os.access(path, os.X_OK) else 0o644
    tar.addfile(info, io.BytesIO(data))
