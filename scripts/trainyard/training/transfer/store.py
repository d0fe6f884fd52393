"""Operations on the store through a pod. A place is `bucket/key`; all data are verified by digest."""

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
AGAIN, PAUSE_S = 3, 0.5  # number and interval of retries
BLOCK = 1 << 20  # bytes
SILENCE_S = 120.0
Progress = Callable[[int], None]
Names = list[str]  # an alias, since Store has a method named list
T = TypeVar("T")


class StoreUnavailableError(TrainyardError):
    """The object store doesn't answer the pod, or is temporarily unavailable."""


@dataclass(frozen=True)
class StoredObject:
    """An object in the store. `sha256` is empty if another program uploaded it."""

    size: int
    sha256: str


class Store:
    """The store as the pod can access it: the team's own folders, with the pod's keys."""

    def __init__(self, kube: Kube, pod: str) -> None:
        self._kube, self._pod = kube, pod

    def stat(self, place: str) -> StoredObject | None:
        """The object at the place, or None. Raises TrainyardError."""
        found = again(lambda: self.run("stat", place))["found"]
        return StoredObject(found["size"], found["sha256"]) if found else None

    def list(self, place: str) -> dict[str, int]:
        """All objects below a place: relative name -> size. Raises TrainyardError."""
        return dict(again(lambda: self.run("list", place))["keys"])

    def folders(self, begun: str) -> Names:
        """Prefixes of keys that begin with `begun`, up to the next slash. Raises TrainyardError."""
        return [str(name) for name in again(lambda: self.run("folders", begun))["folders"]]

    def put(self, source: Path, place: str, *, progress: Progress | None = None) -> bool:
        """Uploads a file unless it exists unchanged; returns whether it was uploaded. Raises TrainyardError."""
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
        """Downloads an object to a file, which is replaced atomically. Raises TrainyardError."""
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
        """Content of a small object. Raises TrainyardError."""
        with tempfile.TemporaryDirectory() as folder:
            self.get(place, Path(folder) / "object")
            return (Path(folder) / "object").read_bytes()

    def tree(self, place: str, folder: Path, *, progress: Progress | None = None) -> Names:
        """Downloads everything below a place to a folder; returns the names. Raises TrainyardError."""

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
        """Runs an operation that outputs data, and verifies the digest that the pod reports. Raises TrainyardError."""
        counted = _CountingFile(target, progress)
        found = self.run(operation, place, stdin=stdin, stdout=cast(IO[bytes], counted))
        target.flush()
        if (found["size"], found["sha256"]) != (counted.size, counted.sha256):
            raise KubeError("the data was damaged in transit", where=place, hint="run the command again")
        return found

    def run(
        self, operation: str, place: str, *flags: str, stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None
    ) -> dict[str, Any]:
        """Runs one operation of the pod's program once; returns its report. Raises TrainyardError."""
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
    """A file that counts the bytes passing through it, and computes their digest."""

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
    """Whether a retry may succeed: after a broken connection, or if a server is temporarily unavailable."""
    return isinstance(error, StoreUnavailableError) or (isinstance(error, KubeError) and not 0 < error.status < 500)


def again(operation: Callable[[], T]) -> T:
    """Runs an operation, with a few retries of retryable errors."""
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
    """Extracts an archive's files into a folder, and returns their names. Rejects entries outside the folder."""
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
