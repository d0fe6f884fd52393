"""Sidecar of a training command: brings code and checkpoints into the pod, and uploads what the command writes.

`.trainyard.json` beside the files lists what `upload` has stored: the last version has `"complete": true`, which tells
clients that fetch results that nothing more will come.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from trainyard_agent.rounds import told_to_stop
from trainyard_agent.runs import run_metrics
from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import connect, objects
from trainyard_agent.store.archive import Sums
from trainyard_agent.store.cache import listing

if TYPE_CHECKING:
    from minio import Minio

T = TypeVar("T")
INDEX = ".trainyard.json"
SETTLED_S = 2.0  # a file written less than this ago is left for the next round
BLOCK = 1 << 20  # bytes
PATIENCE_S, FIRST_WAIT_S, LONGEST_WAIT_S = 600.0, 1.0, 15.0  # a pod waits as long for an unavailable store as Argo does


def fetch(into: str, code: str, sha256: str, folders: Sequence[str], restore: Sequence[str]) -> int:
    """Unpack the code, create folders, restore checkpoints. `restore` holds `bucket/prefix=folder`."""
    root, client = Path(into), connect.client(connect.access())
    root.mkdir(parents=True, exist_ok=True)
    if code:
        bucket, _, key = code.partition("/")
        files = patiently(lambda: unpack(client, bucket, key, sha256, root))
        say(f"code: {files} files of s3://{code}")
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for pair in restore:
        place, _, folder = pair.partition("=")
        bucket, _, prefix = place.partition("/")
        if found := patiently(partial(bring, client, bucket, prefix, root / folder)):
            say(f"checkpoints: {found} files of s3://{place}")
    return 0


def patiently(action: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Runs `action`; retries for ten minutes if the store is unavailable, not if it refuses. Raises PlatformError."""
    waited, wait = 0.0, FIRST_WAIT_S
    while True:
        try:
            return action()
        except objects.UnavailableError as error:
            if waited >= PATIENCE_S:
                raise
            say(f"{error}; again in {wait:.0f} s")
            sleep(wait)
            waited, wait = waited + wait, min(wait * 2, LONGEST_WAIT_S)


def unpack(client: Minio, bucket: str, key: str, sha256: str, root: Path) -> int:
    """Unpack an archive with this digest; returns the number of its files. Raises PlatformError."""
    with tempfile.TemporaryFile(dir=root) as file:
        sums = Sums(cast(IO[bytes], file))
        objects.get(client, bucket, key, cast(IO[bytes], sums))
        if sums.sha256 != sha256:
            raise PlatformError(f"s3://{bucket}/{key} is not what was sent: its digest differs")
        file.seek(0)
        try:
            with tarfile.open(fileobj=file, mode="r:gz") as tar:
                return sum(_place(tar, member, root) for member in tar)
        except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
            raise PlatformError(f"the code of s3://{bucket}/{key} can't be unpacked: {error}") from None


def _place(tar: tarfile.TarFile, member: tarfile.TarInfo, root: Path) -> int:
    """Write one entry of an archive; returns 1 for a file. Accepts only plain files and folders below `root`."""
    parts = member.name.split("/")
    if any(part in ("", ".", "..") for part in parts) or not (member.isfile() or member.isdir()):
        raise PlatformError(f"the archive holds {member.name!r}, which is not a file or leads out of the folder")
    target = root / member.name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file:
        shutil.copyfileobj(cast(IO[bytes], tar.extractfile(member)), file, BLOCK)
    target.chmod(member.mode & 0o777 | 0o600)
    return 1


def bring(client: Minio, bucket: str, prefix: str, folder: Path) -> int:
    """Copy objects below a prefix into a folder; existing files stay. Returns how many came. Raises PlatformError."""
    count = 0
    with objects.store_errors(f"s3://{bucket}/{prefix}"):
        for entry in listing(client, bucket, prefix):
            target = folder / entry.key
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            with open(part, "wb") as file:
                objects.get(client, bucket, f"{prefix}/{entry.key}", file)
            os.replace(part, target)
            count += 1
    return count


class Uploader:
    """Uploads changed files of some folders to the store, again and again."""

    def __init__(self, client: Minio, root: Path, folders: Sequence[str], bucket: str, prefix: str) -> None:
        self.client, self.root, self.folders, self.bucket, self.prefix = client, root, folders, bucket, prefix
        self.taken: dict[str, dict[str, Any]] = {}
        self._seen: dict[str, tuple[int, int]] = {}  # path -> size and time of change (ns) of uploaded files

    def round(self, *, last: bool = False) -> int:
        """Upload new and changed files; returns how many. Raises PlatformError."""
        count = 0
        for path in self._files():
            name = str(path.relative_to(self.root))
            with suppress(FileNotFoundError):  # removed meanwhile
                status = path.stat()
                state = (status.st_size, status.st_mtime_ns)
                settled = last or time.time() - status.st_mtime > SETTLED_S
                if settled and self._seen.get(name) != state and self._take(path, name):
                    self._seen[name] = state
                    count += 1
        if count or last:
            text = json.dumps({"complete": last, "files": self.taken}, indent=1, sort_keys=True).encode()
            digest = hashlib.sha256(text).hexdigest()
            objects.put(self.client, self.bucket, f"{self.prefix}/{INDEX}", io.BytesIO(text), len(text), digest)
        return count

    def _files(self) -> list[Path]:
        """Every file below the folders; symbolic links are not followed."""
        found = []
        for folder in self.folders:
            for where, names, files in os.walk(self.root / folder):
                names.sort()
                found += [Path(where) / name for name in sorted(files)]
        return [path for path in found if path.is_file() and not path.is_symlink()]

    def _take(self, path: Path, name: str) -> bool:
        """Upload one file; False if it changed while it was read."""
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                file.seek(0)
                objects.put(self.client, self.bucket, f"{self.prefix}/{name}", file, size, digest)
        except PermissionError:
            say(f"{name} can't be read, it is left out")
            return True
        except objects.DamagedError:
            return False
        self.taken[name] = {"size": size, "sha256": digest}
        return True


def upload(root: str, to: str, folders: Sequence[str], every: float, only: str, params: Sequence[str] = ()) -> int:
    """Upload what is written until the pod ends, and then once more; only in pods whose name ends with `only`.

    Metrics of the first folder go to MLflow, too, if the environment names a server, with `params` (`name=value`).
    """
    stop = told_to_stop([signal.SIGTERM])
    if not os.environ.get("POD_NAME", "").endswith(only):
        stop.wait()
        return 0
    bucket, _, prefix = to.partition("/")
    uploader = Uploader(connect.client(connect.access()), Path(root), folders, bucket, prefix)
    metrics = run_metrics.sender(os.environ, dict(one.split("=", 1) for one in params), Path(root))
    results = Path(root) / folders[0]
    while not stop.wait(every):
        try:
            if count := uploader.round():
                say(f"{count} files to s3://{to}")
        except PlatformError as error:
            say(f"not copied yet: {error}")
        if metrics:
            metrics.round(results)
    code = _finish(uploader, to)
    if metrics:
        metrics.end(results, _exit_code(os.environ.get("TRAINYARD_EXIT", "")))
    return code


def _exit_code(file: str) -> str | None:
    """The exit code that the command's parent process left in the file; None without one."""
    try:
        return Path(file).read_text() if file else None
    except OSError:
        return None


def _finish(uploader: Uploader, to: str) -> int:
    """The last round, repeated while the store doesn't answer, within the pod's grace period."""
    while True:
        try:
            count = uploader.round(last=True)
        except objects.RefusedError:
            raise
        except PlatformError as error:
            say(f"not copied yet: {error}")
            time.sleep(SETTLED_S)
            continue
        say(f"{count} more files to s3://{to}, {len(uploader.taken)} in all")
        return 0
