"""Entries of a kubeconfig: a cluster, a user that logs in with our program, and their context. It contains no token."""

import base64
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import ROOT

API_VERSION = "client.authentication.k8s.io/v1"
LISTS = ("clusters", "users", "contexts")
OURS = ["login", "--credential"]
MODULE = ["-m", "trainyard"]
INSTALL = "install `trainyard`, which logs you in, with pip from your platform engineer's wheel"


@dataclass(frozen=True)
class Cluster:
    """Address of an API server, and its certificate authority ("": the machine's authorities)."""

    name: str
    server: str
    ca: str = ""  # PEM

    @property
    def entry(self) -> dict[str, Any]:
        """The cluster's entry in a kubeconfig."""
        ca = {"certificate-authority-data": base64.b64encode(self.ca.encode()).decode()} if self.ca else {}
        return {"name": self.name, "cluster": {"server": self.server, **ca}}


def read(place: Path) -> dict[str, Any]:
    """Reads a kubeconfig as data; a missing one is empty. Raises TrainyardError if it can't be read."""
    empty = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    try:
        found = yaml.safe_load(place.read_text())
    except FileNotFoundError:
        return empty
    except (OSError, yaml.YAMLError) as error:
        raise TrainyardError("the kubeconfig can't be read", where=str(place), hint=str(error).split("\n")[0]) from None
    if found is None:
        return empty
    if not isinstance(found, dict) or not all(_is_listed(found.get(key), key[:-1]) for key in LISTS):
        raise TrainyardError("not a kubeconfig", where=str(place), hint="choose another file with -o")
    return empty | {key: value for key, value in found.items() if value is not None}


def _is_listed(entries: Any, kind: str) -> bool:
    """Whether the value is a valid list of a kubeconfig: each entry's `kind` is a mapping, if it exists."""
    mappings = isinstance(entries or [], list) and all(isinstance(one, dict) for one in entries or [])
    return mappings and all(isinstance(one.get(kind) or {}, dict) for one in entries or [])


def chosen(files: list[Path], context: str) -> tuple[Cluster, str]:
    """The cluster of a context in these files ("": the current context), and the context's namespace.

    Raises:
        UsageError: the context or its cluster does not exist.
    """
    held = [read(place) for place in files]
    first = lambda key, name: next((e for one in held for e in one[key] if e.get("name") == name), None)  # noqa: E731
    wanted = context or next((str(one["current-context"]) for one in held if one.get("current-context")), "")
    at = first("contexts", wanted)
    found = first("clusters", ((at or {}).get("context") or {}).get("cluster"))
    said = (found or {}).get("cluster") or {}
    if not at or not found or not said.get("server"):
        raise UsageError(
            f"no kubeconfig has the address of the cluster (context {wanted})" if wanted else
            "no kubeconfig has the address of the cluster",
            hint="pass --server and --certificate-authority, or --kubeconfig and --context",
        )  # fmt: skip
    try:
        ca = base64.b64decode(said.get("certificate-authority-data") or b"").decode()
    except ValueError:
        hint = "encode it in base64, or pass --server and --certificate-authority"
        raise UsageError(f"certificate-authority-data of cluster {found['name']} is not text", hint=hint) from None
    if named := said.get("certificate-authority"):
        base = next(place for place, one in zip(files, held, strict=True) if found in one["clusters"])
        ca = authority(str(base.parent / Path(named).expanduser()))
    return Cluster(str(found["name"]), str(said["server"]), ca), str(at["context"].get("namespace") or "")


def arguments(files: list[Path], context: str) -> list[str]:
    """Arguments of our program for the user of a context ("": the current one); [] if the user has another program."""
    held = [read(place) for place in files]
    wanted = context or next((str(one["current-context"]) for one in held if one.get("current-context")), "")
    contexts = [e.get("context") or {} for one in held for e in one["contexts"] if e.get("name") == wanted]
    for user in (one.get("user") for one in contexts):
        for entry in (e for one in held for e in one["users"] if e.get("name") == user):
            plugin = (entry.get("user") or {}).get("exec")
            found = [str(one) for one in plugin.get("args") or []] if isinstance(plugin, dict) else []
            found = found[len(MODULE) :] if found[: len(MODULE)] == MODULE else found
            if found[: len(OURS)] == OURS:
                return found[len(OURS) :]
    return []


def authority(place: str) -> str:
    """PEM text of a certificate authority's file. Raises UsageError if it is invalid."""
    try:
        text = Path(place).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the CA certificate can't be read: {getattr(error, 'strerror', '') or error}",
            where=place,
            hint="pass the PEM file of the cluster's CA",
        ) from None
    if "BEGIN CERTIFICATE" not in text:
        raise UsageError("not a certificate", where=place, hint="pass the PEM file of the cluster's CA")
    return text


def merged(
    config: dict[str, Any], cluster: Cluster, options: list[str], namespace: str, *, for_others: bool = False
) -> dict[str, Any]:
    """The kubeconfig with our cluster, user and current context added; everything else is unchanged.

    Args:
        options: options of `trainyard login` for the program that logs in.
        for_others: whether the kubeconfig is for machines where our program has another path.
    """
    command, *before = program(for_others)
    user = f"trainyard-login@{cluster.name}"
    plugin = {
        "apiVersion": API_VERSION, "command": command, "args": [*before, *OURS, *options],
        "interactiveMode": "IfAvailable", "provideClusterInfo": False, "installHint": INSTALL,
    }  # fmt: skip
    space = {"namespace": namespace} if namespace else {}
    context = {"cluster": cluster.name, "user": user, **space}
    made = {
        "clusters": cluster.entry,
        "users": {"name": user, "user": {"exec": plugin}},
        "contexts": {"name": user, "context": context},
    }
    rest = {key: [e for e in config[key] if e.get("name") != new["name"]] + [new] for key, new in made.items()}
    return config | rest | {"current-context": user}


def program(for_others: bool) -> list[str]:
    """Command that runs us again: for others its name, here its path, since PATH changes with environments."""
    if for_others:
        return ["trainyard"]
    if found := shutil.which("trainyard"):
        return [found]
    launcher = ROOT / "bin" / "trainyard"
    return [str(launcher)] if launcher.is_file() else [sys.executable, *MODULE]


def write(place: Path, config: dict[str, Any]) -> None:
    """Writes the file atomically; keeps its mode, or uses 0600 if it is new."""
    target = place.resolve() if place.is_symlink() else place
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    descriptor, name = tempfile.mkstemp(prefix=".trainyard-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w") as opened:
            yaml.safe_dump(config, opened, sort_keys=False)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
