"""Operations on the store through a pod. A place is `bucket/key`; every byte is checked by its digest."""

import hashlib
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError
from trainyard_agent.store import objects

PROGRAM = ("python3", "-m", "trainyard_agent", "objects")
AGAIN, PAUSE_S = 3, 0.5  # what may succeed a moment later is tried again
BLOCK = 1 << 20  # bytes
SILENCE_S = 120.0
Progress = Callable[[int], None]
Names = list[str]  # said here, since a method of Store is called list
T = TypeVar("T")


class StoreUnavailableError(TrainyardError):
    """The object store doesn't answer the pod, or says that it can't just now."""


@dataclass(frozen=True)
class StoredObject:
    """An object that is there. `sha256` is empty for one that something else has put there."""

    size: int
    sha256: str


class Store:
    """What the pod can reach: the team's own folders, as the keys in it allow."""

    def __init__(self, kube: Kube, pod: str) -> None:
        self._kube, self._pod = kube, pod

    def stat(self, place: str) -> StoredObject | None:
        """What lies there, or None. Raises TrainyardError."""
        found = again(lambda: self.run("stat", place))["found"]
        return StoredObject(found["size"], found["sha256"]) if found else None

    def list(self, place: str) -> dict[str, int]:
        """Every object below a place: name below it -> size. Raises TrainyardError."""
        return dict(again(lambda: self.run("list", place))["keys"])

    def folders(self, begun: str) -> Names:
        """Parts of keys that begin so, up to the next slash. Raises TrainyardError."""
        return [str(name) for name in again(lambda: self.run("folders", begun))["folders"]]

    def put(self, source: Path, place: str, *, progress: Progress | None = None) -> bool:
        """Copies a file there unless the same is there; returns whether it was copied. Raises TrainyardError."""
        size = source.stat().st_size
        with open(source, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if self.stat(place) == StoredObject(size, digest):
            return False

        def send() -> None:
            with open(source, "rb") as file:
                counted = cast(IO[bytes], _CountingFile(file, progress))
                self.run("put", place, f"--size={size}", f"--sha256={digest}", stdin=counted)

        again(send)
        return True

    def get(self, place: str, target: Path, *, progress: Progress | None = None) -> StoredObject:
        """Copies an object to a file, which comes to its name whole. Raises TrainyardError."""
        target.parent.mkdir(parents=True, exist_ok=True)

        def fetch() -> StoredObject:
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
                try:
                    found = self.stream("get", place, file, progress)
                    os.chmod(file.name, 0o644)
                    os.replace(file.name, target)
                except BaseException:
                    os.unlink(file.name)
                    raise
            return StoredObject(found["size"], found["sha256"])

        return again(fetch)

    def read(self, place: str) -> bytes:
        """A small object as bytes. Raises TrainyardError."""
        with tempfile.TemporaryDirectory() as folder:
            self.get(place, Path(folder) / "object")
            return (Path(folder) / "object").read_bytes()

    def tree(self, place: str, folder: Path, *, progress: Progress | None = None) -> Names:
        """Copies everything below a place into a folder; returns the names. Raises TrainyardError."""

        def fetch() -> list[str]:
            with tempfile.TemporaryFile() as file:
                self.stream("tree", place, cast(IO[bytes], file), progress)
                file.seek(0)
                return _unpack(cast(IO[bytes], file), folder)

        return again(fetch)

    def stream(
        self,
        operation: str,
        place: str,
        target: IO[bytes],
        progress: Progress | None = None,
        *,
        stdin: IO[bytes] | None = None,
    ) -> dict[str, Any]:
        """An operation whose output is data: compared with the digest that the pod names. Raises TrainyardError."""
        counted = _CountingFile(target, progress)
        found = self.run(operation, place, stdin=stdin, stdout=cast(IO[bytes], counted))
        target.flush()
        if (found["size"], found["sha256"]) != (counted.size, counted.sha256):
            raise KubeError("the data were damaged on their way", where=place, hint="run the command again")
        return found

    def run(
        self, operation: str, place: str, *flags: str, stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None
    ) -> dict[str, Any]:
        """One operation of the pod's program, once; what it reports. Raises TrainyardError."""
        command = (*PROGRAM, operation, place, *flags)
        done = self._kube.exec(self._pod, command, stdin=stdin, stdout=stdout, timeout_s=SILENCE_S)
        last = (done.stderr.strip().splitlines() or [""])[-1]
        if done.code:
            what = last.removeprefix("error: ") or f"the pod's program ended with code {done.code}"
            kind = StoreUnavailableError if done.code == objects.UnavailableError.exit_code else TrainyardError
            raise kind(what, where=place if place not in what else "", hint=_hint(what))
        try:
            return dict(json.loads(last))
        except ValueError:
            raise KubeError(f"the pod answered {last[:100]!r}", where=place, hint="run the command again") from None


class _CountingFile:
    """A file that tells how much went through it, and its digest."""

    def __init__(self, file: IO[bytes], progress: Progress | None) -> None:
        self._file, self._progress, self.size, self._hash = file, progress, 0, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._note(data)
        return data

    def write(self, data: bytes) -> int:
        self._note(data)
        return self._file.write(data)

    def _note(self, data: bytes) -> None:
        self.size += len(data)
        self._hash.update(data)
        if self._progress and data:
            self._progress(len(data))

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def is_retryable(error: TrainyardError) -> bool:
    """Whether the same may succeed a moment later: after a broken connection, a server that can't answer just now."""
    return isinstance(error, StoreUnavailableError) or (isinstance(error, KubeError) and not 0 < error.status < 500)


def again(operation: Callable[[], T]) -> T:
    """Retries, some times, what may succeed a moment later."""
    left = AGAIN
    while True:
        left -= 1
        try:
            return operation()
        except TrainyardError as error:
            if not is_retryable(error) or not left:
                raise
            time.sleep(PAUSE_S)


def _unpack(file: IO[bytes], folder: Path) -> list[str]:
    """The files of an archive below a folder, which nothing in it can leave."""
    names = []
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            if not member.isfile() or any(part in ("", ".", "..") for part in member.name.split("/")):
                raise TrainyardError(f"{member.name!r} can't be a file here", where=str(folder))
            target = folder / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            source = cast(IO[bytes], tar.extractfile(member))
            part = target.with_name(f".{target.name}.part")
            with open(part, "wb") as out:
                while block := source.read(BLOCK):
                    out.write(block)
            os.replace(part, target)
            names.append(member.name)
    return names


def _hint(what: str) -> str:
    if "AccessDenied" in what:
        return "a team reaches its own folders only: <bucket>/<team>/…"
    return ""
