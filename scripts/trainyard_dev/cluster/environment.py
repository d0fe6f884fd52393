"""Shell settings for a cluster of this machine, as its administrator or as a member of a team."""

import os
import shlex
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev import tools
from trainyard_dev.cluster import lifecycle

MEMBER = "ada"
PROGRAMS = ("kubectl", "helm")


def lines(name: str, team: str = "") -> list[str]:
    """Lines for `eval`. Raises TrainyardError if there is no such cluster.

    Args:
        team: act as a member of it, with a second kubeconfig; "": as the administrator.
    """
    own = lifecycle.kubeconfig(name)
    if not own.is_file():
        raise TrainyardError(f"no cluster named {name}", hint="create one with `make cluster-up`")
    chosen = member(own, team) if team else own
    folders = ":".join(dict.fromkeys(str(tools.binary(program).parent) for program in PROGRAMS))
    return [f"export KUBECONFIG={shlex.quote(str(chosen))}", f'export PATH={shlex.quote(folders)}:"$PATH"']


def member(own: Path, team: str) -> Path:
    """The administrator's kubeconfig, impersonating a member of a team in its namespace; returns its path."""
    config: dict[str, Any] = yaml.safe_load(own.read_text())
    for user in config["users"]:
        user["user"] |= {"as": MEMBER, "as-groups": [f"{team}-members", "system:authenticated"]}
    for context in config["contexts"]:
        context["context"]["namespace"] = team
    target = own.with_name(f"member-{team}")
    with open(target, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        yaml.safe_dump(config, file)
    return target
