"""Files of published traces: from the data folder, else from the cache, else from their public source, checked."""

import hashlib
import http.client
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import cache_dir, data_dir

HOST = "https://raw.githubusercontent.com"
WAIT_S = 60.0
OPENB = "alibaba/clusterdata/{}/cluster-trace-gpu-v2023/csv/{}"
MURI = "Rivendile/Muri/{}/simulator/trace-data/{}"
AT_50, AT_0C, AT_B9 = (
    "50a91c7c74abe3b658188dc78ac1dd302970d40c",
    "0c9677bb156ded9c63ca40d9aa54cd31d3e75061",
    "b937928cf81f0edb6fe33634d01f2069a8d6ab17",
)
AT_MURI = "7264b1aee900029236051058242e6de6f93e166d"


@dataclass(frozen=True)
class Source:
    """A file's source, below `HOST`, and its expected content."""

    path: str
    sha256: str


def _openb(commit: str, name: str, sha256: str) -> tuple[str, Source]:
    return f"openb/{name}", Source(OPENB.format(commit, name), sha256)


def _muri(name: str, sha256: str) -> tuple[str, Source]:
    return f"philly/{name}", Source(MURI.format(AT_MURI, name), sha256)


SOURCES: dict[str, Source] = dict([
    _openb(AT_0C, "openb_node_list_all_node.csv", "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15"),
    _openb(AT_0C, "openb_pod_list_cpu050.csv", "747f43247bffc2b0bb081d7f61f0705ca8d390dafc0b647e642c92f3baf3ba1e"),
    _openb(AT_50, "openb_pod_list_default.csv", "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8"),
    _openb(AT_0C, "openb_pod_list_gpushare40.csv", "d83ce79a4eb6987524bedbb0c65e41aed3a36bf6c1b78b86234c3687a07e1d40"),
    _openb(AT_B9, "openb_pod_list_gpuspec33.csv", "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652"),
    _openb(AT_B9, "openb_pod_list_multigpu20.csv", "d9ec6f6c74fb980cc0b81239470c6353fceea077ea9abd610003b604c7cc2b01"),
    _openb(AT_50, "openb_pod_list_multigpu30.csv", "a5e479c6444b1d83eef848159cf00c3cfa13441b2d1e2c113c391b91f1cc5b11"),
    _muri("trace1.csv", "534d02a4ebe53aee1f60d3fb33e3b2207550bb28813e677c962051058ebafbc5"),
    _muri("trace1_pr.csv", "dfa7a6b0f5ff6fe4aae4e51a948f05bc229d1883a779e9721f181b7270190945"),
    _muri("trace3.csv", "fc8d59783486122d9f522b430c1d5a59fbee119b41feb67a3f67e0751340ce93"),
    _muri("trace3_pr.csv", "af45628e89017a4faf20e75c586320643c08a5dd4f2f952502c6fcb25aba5e6c"),
])  # fmt: skip


def commits(of: str) -> list[str]:
    """The commits of a repository (`owner/name`) at which its files are read."""
    places = (source.path.split("/") for source in SOURCES.values())
    return sorted({parts[2] for parts in places if "/".join(parts[:2]) == of})


def trace(name: str) -> Path:
    """Returns the file of a trace, e.g. `philly/trace3.csv`, from `$TRAINYARD_DATA` or the cache, else downloads it.

    Raises:
        TrainyardError: no source has it, its source doesn't answer, or the download has other content.
    """
    here = data_dir()
    if here and (here / name).is_file():
        return here / name
    kept = cache_dir() / "traces" / name
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f"{kept.name}.part")
        try:
            part.write_bytes(_download(name))
            part.replace(kept)
        finally:
            part.unlink(missing_ok=True)
    return kept


def _download(name: str) -> bytes:
    hint = f"set TRAINYARD_DATA to a folder that contains {name}"
    source = SOURCES.get(name)
    if source is None:
        raise TrainyardError(f"unknown trace {name}", hint=f"{hint}, or use one of {', '.join(SOURCES)}")
    url = f"{HOST}/{source.path}"
    try:
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            found: bytes = answer.read()
    except (OSError, http.client.HTTPException) as error:
        why = getattr(error, "reason", None) or error
        raise TrainyardError(f"the trace {name} can't be downloaded: {why}", where=url, hint=hint) from None
    if hashlib.sha256(found).hexdigest() != source.sha256:
        raise TrainyardError(f"the file for trace {name} has a wrong checksum", where=url, hint=hint)
    return found
