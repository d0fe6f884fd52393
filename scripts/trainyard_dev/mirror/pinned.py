"""A values file that pins our own images by their digests in a registry."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import CHART

MIRROR, OURS = "imageRegistry", "ownImageRegistry"  # keys of `global`
HEAD = "# Our own images as {prefix} holds them, by digest: a tag that somebody moves there changes nothing.\n"


def text(pushed: Mapping[str, str], prefix: str, key: str = MIRROR, chart: Path = CHART) -> str:
    """The file's text: the registry, and the pushed images of `global.contract.images`.

    Args:
        pushed: reference in the registry -> digest.
        prefix: HOST[/PATH] of the images.
        key: the value that names it: MIRROR if it holds all images, OURS if it holds only ours.

    Raises:
        TrainyardError: none of our own images is among them, or the registry gave no digest of one.
    """
    contract = yaml.safe_load((chart / "values.yaml").read_text())["global"]["contract"]
    found = {table: _pinned(contract[table], pushed, prefix) for table in ("images", "cudaImages")}
    if not found["images"]:
        raise TrainyardError(
            "none of our images was pushed", where=prefix, hint="use a profile that installs some of our images"
        )
    tables = {table: pins for table, pins in found.items() if pins}
    values = {"global": {key: prefix, "contract": tables}}
    return HEAD.format(prefix=prefix) + yaml.safe_dump(values, sort_keys=False, width=200)


def _pinned(ours: Mapping[str, str], pushed: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The pushed images of a table of the contract, by digest. Raises TrainyardError where one has none."""
    keys = {f"{prefix}/{short}": key for key, short in ours.items()}
    mine = {ref: digest for ref, digest in sorted(pushed.items()) if ref in keys}
    if bare := next((ref for ref, digest in mine.items() if not digest), ""):
        raise TrainyardError(f"the registry returned no digest for {bare}", hint="check that the push succeeded")
    images = {keys[ref]: f"{ours[keys[ref]].rpartition(':')[0]}@{digest}" for ref, digest in mine.items()}
    return dict(sorted(images.items()))
