"""Backs up buckets and workspaces into compressed archives with checksums, and keeps the newest few."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard_agent.say import PlatformError, say
from trainyard_agent.store import archive, connect
from trainyard_agent.store.targets import BucketTarget, FolderTarget, Target

if TYPE_CHECKING:
    from minio import Minio

FORMAT = 1
STAMP = "%Y%m%dT%H%M%SZ"
LEFTOVER = timedelta(days=1)  # an unfinished backup older than this was abandoned
SHARED = "shared"


@dataclass(frozen=True)
class Source:
    """A source of a backup: a bucket by its name, or a folder of the file server."""

    name: str
    bucket: str = ""
    folder: Path = Path()


def sources(contract: dict[str, Any], buckets: list[str], export: Path | None) -> list[Source]:
    """Buckets first, then each team's workspace and the shared volume; `export` is the file server's root."""
    found = [Source(f"bucket-{bucket}", bucket=bucket) for bucket in buckets]
    if export:
        for team in contract.get("teams") or []:
            found.append(Source(f"workspace-{team['name']}", folder=export / team["name"] / "workspace"))
        found.append(Source(SHARED, folder=export / contract["release"]["namespace"] / SHARED))
    return found


def target_of(folder: str, bucket: str, prefix: str) -> Target:
    """The target: a folder, or a bucket of the store in the environment's TARGET_… variables."""
    if bucket:
        return BucketTarget(connect.client(connect.access("TARGET")), bucket, prefix)
    return FolderTarget(Path(folder))


def back_up(
    wanted: list[Source], client: Callable[[], Minio], target: Target, now: datetime
) -> tuple[str, dict[str, Any]]:
    """Back up all sources; returns the backup's name and manifest. Sources that can't be read are in its `failed`.

    Raises PlatformError if the backup would be empty.
    """
    stamp = now.strftime(STAMP)
    if stamp in target.stamps():
        raise PlatformError(f"backup {stamp} already exists")
    archives, failed = dict[str, Any](), dict[str, str]()
    for source in wanted:
        if not source.bucket and not source.folder.is_dir():
            say(f"{source.name}: not created yet")
            continue
        file = f"{source.name}.tar.gz"
        try:
            with target.write(stamp, file) as sink:
                sums = archive.Sums(sink)
                with archive.writing(sums) as tar:  # type: ignore[arg-type]
                    if source.bucket:
                        counts = archive.pack_bucket(client(), source.bucket, tar)
                    else:
                        counts = archive.pack_folder(source.folder, tar)
        except Exception as error:
            failed[source.name] = f"{type(error).__name__}: {error}"
            say(f"{source.name}: FAILED, {failed[source.name]}")
            continue
        archives[source.name] = {
            "file": file,
            "bucket": source.bucket,
            "archiveBytes": sums.size,
            "sha256": sums.sha256,
            **asdict(counts),
        }
        say(f"{source.name}: {counts.entries} entries, {counts.bytes} bytes, {sums.size} in the archive")
        if counts.changed:
            say(f"{source.name}: {counts.changed} files changed while they were read; the manifest names them")
        if counts.left_out:
            say(f"{source.name}: {counts.left_out} left out: no files, or mostly holes; the manifest names them")
    if not archives:
        target.remove(stamp)
        raise PlatformError(f"nothing was backed up{': ' if failed else ''}{'; '.join(failed.values())}")
    manifest = {"format": FORMAT, "created": now.isoformat(), "archives": archives, "failed": failed}
    target.finish(stamp, manifest)
    return stamp, manifest


def thin(target: Target, keep: int, now: datetime) -> list[str]:
    """Remove all but the newest `keep` backups and the newest complete one, and remains of unfinished ones.

    Returns the names of what was removed.
    """
    stamps = target.stamps()
    whole = next((stamp for stamp in reversed(stamps) if not target.manifest(stamp)["failed"]), "")
    old = [stamp for stamp in stamps[:-keep] if stamp != whole]
    stale = [s for s in target.unfinished() if now - datetime.strptime(s, STAMP).replace(tzinfo=UTC) > LEFTOVER]
    for stamp in [*old, *stale]:
        target.remove(stamp)
    return [*old, *stale]


def run(contract_file: str, buckets: list[str], export: str, target: Target, keep: int, now: datetime) -> int:
    """Back up once, and remove the oldest. Raises PlatformError, also if the backup lacks a source."""
    contract = json.loads(Path(contract_file).read_text())
    wanted = sources(contract, buckets, Path(export) if export else None)
    stamp, manifest = back_up(wanted, lambda: connect.client(connect.access()), target, now)
    for gone in thin(target, keep, now):
        say(f"backup {gone} removed")
    if manifest["failed"]:
        raise PlatformError(f"backup {stamp} is complete, except for {', '.join(manifest['failed'])}")
    say(f"backup {stamp} is complete")
    return 0
