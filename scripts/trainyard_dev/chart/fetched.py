"""Charts that are in no Go module: fetched from a URL with a tag, and accepted only with the pinned checksum."""

import hashlib
import http.client
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir

TIMEOUT_S = 30.0


def fetch(name: str, spec: dict[str, Any], charts: Path) -> bool:
    """Unpacks a chart into `charts/<name>`; an earlier download is reused from the cache.

    Args:
        spec: `url` and `sha256` of its archive, from versions.yaml.

    Returns:
        False if its host does not answer.

    Raises:
        TrainyardError: the archive is not the pinned one, or is no chart.
    """
    url, wanted = str(spec["url"]), str(spec["sha256"])
    kept = cache_dir() / "charts" / f"{name}-{wanted[:16]}.tgz"
    if not kept.exists() or _sum(kept.read_bytes()) != wanted:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                body = bytes(answer.read())
        except (urllib.error.URLError, http.client.HTTPException, OSError):
            return False
        if _sum(body) != wanted:
            hint = f"check what changed; if that is expected, write sha256: {_sum(body)} in versions.yaml under charts"
            raise TrainyardError(f"the chart {name} differs from the pinned archive", where=url, hint=hint)
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_bytes(body)
        part.rename(kept)
    try:
        with tarfile.open(kept) as archive:
            archive.extractall(charts, filter="data")
    except (tarfile.TarError, OSError) as error:
        raise TrainyardError(f"the chart {name} can't be unpacked ({error})", where=str(kept)) from None
    if not (charts / name / "Chart.yaml").exists():
        raise TrainyardError(f"the archive of the chart {name} lacks {name}/Chart.yaml", where=url)
    return True


def _sum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
