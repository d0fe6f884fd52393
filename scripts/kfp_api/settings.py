"""Settings of the service from the environment, and the platform's contract, which the chart mounts."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainyard import contract as contracts
from trainyard.contract import Contract
from trainyard.errors import TrainyardError
from trainyard_agent.store import connect


@dataclass(frozen=True)
class Settings:
    """The service's settings.

    Args:
        server: URL of the API server; `authority` is the file with its CA.
        contract: file contract.yaml of the mounted ConfigMap trainyard-contract.
        store: the account that reads what runs stored; None without one.
    """

    server: str
    authority: str
    contract: Path
    store: connect.Access | None = None
    port: int = 8888


def read(env: Mapping[str, str] | None = None) -> Settings:
    """Reads the settings. Raises TrainyardError, which names the variable."""
    env = os.environ if env is None else env
    needed = ("KUBERNETES_SERVICE_HOST", "KFP_API_CLUSTER_CA", "KFP_API_CONTRACT")
    if missing := [name for name in needed if not env.get(name)]:
        raise TrainyardError(f"{missing[0]} is not set", hint="the chart kfpApi sets it")
    host, port = env["KUBERNETES_SERVICE_HOST"], env.get("KUBERNETES_SERVICE_PORT", "443")
    return Settings(
        f"https://{f'[{host}]' if ':' in host else host}:{port}",
        env["KFP_API_CLUSTER_CA"],
        Path(env["KFP_API_CONTRACT"]),
        connect.access(env=env) if env.get("S3_ENDPOINT") else None,
        int(env.get("KFP_API_PORT", "8888")),
    )


def contract(file: Path, server: str) -> Callable[[], Contract]:
    """A function that returns the contract, and reads the file again only after it has changed.

    A change that can't be read keeps the former contract; the first reading raises TrainyardError.
    """
    lock, held = threading.Lock(), dict[str, Any]()

    def current() -> Contract:
        with lock:
            try:
                at = os.stat(file)
                if held.get("at") != (at.st_mtime_ns, at.st_ino):
                    held.update(found=_parsed(file, server), at=(at.st_mtime_ns, at.st_ino))
            except (TrainyardError, OSError) as error:
                if "found" not in held:
                    raise TrainyardError(f"the contract can't be read: {error}", where=str(file)) from None
            found: Contract = held["found"]
            return found

    return current


def _parsed(file: Path, server: str) -> Contract:
    """The contract of the ConfigMap whose keys are the files of that folder."""
    data = {one.name: one.read_text() for one in file.parent.iterdir() if one.is_file() and one.suffix != ".json"}
    config_map = {"kind": "ConfigMap", "metadata": {"name": contracts.CONFIG_MAP}, "data": data}
    return replace(contracts.of_objects([config_map]), source=f"cluster {server}")
