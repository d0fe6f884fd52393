"""Fetches a job's results from the bucket into the step: patiently, for a store may be unavailable for minutes."""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from trainyard.errors import TrainyardError

T = TypeVar("T")
PATIENCE_S = 600.0
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 15.0
PERMANENT = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch")


def fetch(uri: str, folder: Path, env: Mapping[str, str]) -> list[str]:
    """Copies everything below `s3://bucket/key` into `folder`; returns the files' names.

    If TRAINYARD_BUCKETS names a folder, buckets are its sub-folders. Raises TrainyardError if there is nothing, or
    the store is unavailable for ten minutes.
    """
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    folder.mkdir(parents=True, exist_ok=True)
    if env.get("TRAINYARD_BUCKETS"):
        source = Path(env["TRAINYARD_BUCKETS"], bucket, key)
        if source.is_dir():
            shutil.copytree(source, folder, dirs_exist_ok=True)
    else:
        patiently(lambda: _download(bucket, f"{key}/", folder, env), uri)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    if not files:
        hint = "let rank 0 write to {out}, or name the folder it writes to as `results`"
        raise TrainyardError("the job succeeded and left no results", where=uri, hint=hint)
    return files


def _download(bucket: str, prefix: str, folder: Path, env: Mapping[str, str]) -> None:
    from trainyard_agent.store import connect

    client = connect.client(connect.access(env=env))
    for item in client.list_objects(bucket, prefix=prefix, recursive=True):
        target = folder / item.object_name.removeprefix(prefix)
        if not target.resolve().is_relative_to(folder.resolve()):
            raise TrainyardError("a result's name leads out of its folder", where=item.object_name)
        if not item.object_name.endswith("/"):
            client.fget_object(bucket, item.object_name, str(target))


def patiently(action: Callable[[], T], what: str, sleep: Callable[[float], None] = time.sleep) -> T:
    """Runs `action`; retries for ten minutes if the store is unavailable, not if it refuses. Raises TrainyardError."""
    from trainyard_agent.say import PlatformError

    end, wait = time.monotonic() + PATIENCE_S, FIRST_WAIT_S
    while True:
        try:
            return action()
        except PlatformError as error:
            raise TrainyardError(str(error), hint="wrap the task in with_store(…)") from None
        except TrainyardError:
            raise
        except Exception as error:
            code = getattr(error, "code", "") or type(error).__name__
            if code in PERMANENT:
                raise TrainyardError(
                    f"the store refuses ({code})", where=what, hint="ask the platform's engineers"
                ) from None
            if time.monotonic() + wait > end:
                raise TrainyardError(f"the store was unavailable for {PATIENCE_S:.0f} s ({code})", where=what) from None
            print(f"{what}: the store does not answer ({code}); again in {wait:.0f} s", flush=True)
            sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_S)
