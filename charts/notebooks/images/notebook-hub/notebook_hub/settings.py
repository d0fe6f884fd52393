"""A site's settings for notebooks, as the chart writes them into one JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

Object = dict[str, Any]
MEMORY = re.compile("[1-9][0-9]*(Mi|Gi|Ti)")


class SettingsError(ValueError):
    """Settings with which the hub can't run: what is wrong, where, and what to write."""


@dataclass(frozen=True)
class Team:
    """A team whose namespace has notebooks. Users and groups are named as the API server names them.

    Args:
        queue: of GPU notebooks; priority: their class, or "".
        cpu_labels, gpu_labels: of the nodes for notebooks without GPUs, and with some.
        gpu_tolerations, gpu_resource: of the latter's pool.
    """

    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    queue: str = ""
    priority: str = ""
    cpu_labels: Mapping[str, str] = field(default_factory=dict)
    gpu_labels: Mapping[str, str] = field(default_factory=dict)
    gpu_tolerations: tuple[Object, ...] = ()
    gpu_resource: str = "nvidia.com/gpu"


@dataclass(frozen=True)
class Profile:
    """A size of notebook.

    Args:
        cpu, cpu_limit: cores; a limit of 0 equals the request, and so does an empty one of memory.
        image: "" for the hub's default.
        deadline: seconds until it ends even if active; 0 for one that only idleness ends.
    """

    name: str
    title: str
    cpu: float
    memory: str
    image: str = ""
    cpu_limit: float = 0.0
    memory_limit: str = ""
    gpus: int = 0
    deadline: int = 0


@dataclass(frozen=True)
class Oidc:
    """The issuer, and how the API server maps its claims to names."""

    issuer: str
    client_id: str
    callback: str
    username_claim: str = "email"
    groups_claim: str = "groups"
    username_prefix: str = ""
    groups_prefix: str = ""
    scopes: tuple[str, ...] = ("openid", "email", "profile", "groups", "offline_access")
    authorize_url: str = ""
    token_url: str = ""
    ca_file: str = ""


@dataclass(frozen=True)
class Storage:
    """Claims that a notebook mounts. Empty names are left out."""

    home_class: str = ""
    home_size: str = ""
    workspace: str = "workspace"
    shared: str = "shared"
    store_secret: str = "trainyard-s3"


@dataclass(frozen=True)
class Settings:
    """All settings.

    Args:
        idle: seconds until an idle notebook ends, 0 for never; cull_every: seconds between two readings.
        start: seconds that a pod may take until it runs.
        renew_before: seconds before a person's token ends at which it is renewed.
        kfp_api: folder with service and url of the service behind kfp.Client; no files where the platform has none.
        blocked: people whose tokens the API server refuses, whatever the issuer says; case is ignored.
    """

    url: str
    api_url: str
    oidc: Oidc
    storage: Storage
    teams: tuple[Team, ...]
    profiles: tuple[Profile, ...]
    scheduler: str = "volcano"
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    proxy_api_url: str = "http://127.0.0.1:8001"
    database: str = "sqlite:////data/hub.sqlite"
    subdomains: bool = False
    idle: int = 3600
    cull_every: int = 300
    start: int = 300
    renew_before: int = 300
    port: int = 8888
    kfp_api: str = "/etc/notebook-kfp-api"
    blocked: tuple[str, ...] = ()

    def profile(self, name: str) -> Profile | None:
        """The profile of this name."""
        return next((one for one in self.profiles if one.name == name), None)

    def teams_of(self, person: str, groups: Sequence[str]) -> tuple[Team, ...]:
        """Teams with notebooks that the person is a member of, by the issuer's names of person and groups."""
        if person.casefold() in {one.casefold() for one in self.blocked}:
            return ()
        user = self.oidc.username_prefix + person
        known = {self.oidc.groups_prefix + group for group in groups}
        return tuple(one for one in self.teams if user in one.users or known & set(one.groups))


_PARTS: dict[str, type] = {"oidc": Oidc, "storage": Storage}
_LISTS: dict[str, type] = {"teams": Team, "profiles": Profile}


def read(file: Path, image: str) -> Settings:
    """Reads the settings from a file; `image` is used for sizes that name none. Raises SettingsError.

    Without the file of the issuer's authority the machine's authorities are used.
    """
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise SettingsError(f"the hub's settings can't be read: {error}; {file} is written by the chart") from None
    found = parsed(data, str(file))
    oidc = found.oidc if Path(found.oidc.ca_file or "/").is_file() else replace(found.oidc, ca_file="")
    return replace(found, oidc=oidc, profiles=tuple(replace(one, image=one.image or image) for one in found.profiles))


def parsed(data: Any, where: str = "settings") -> Settings:
    """Parses settings from JSON data. Raises SettingsError."""
    made = _made(Settings, data, where)
    if not made.profiles:
        raise SettingsError(f"{where} has no profile, so that nobody could start a notebook: name one in profiles")
    for profile in made.profiles:
        for memory in filter(None, (profile.memory, profile.memory_limit)):
            if not MEMORY.fullmatch(memory):
                raise SettingsError(f"{where}: profile {profile.name} has memory {memory!r}: write it as 4Gi or 512Mi")
        if profile.gpus and not profile.deadline:
            raise SettingsError(
                f"{where}: profile {profile.name} has GPUs and no deadline, and would hold them forever: set deadline"
            )
    return made


def _made(kind: type, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise SettingsError(f"{where} is not an object: write one with the keys of {kind.__name__}")
    known = {one.name: one for one in fields(kind)}
    if unknown := sorted(set(data) - set(known)):
        raise SettingsError(f"{where} has the key {unknown[0]}, which nothing reads: use {', '.join(sorted(known))}")
    values: Object = {}
    for name, value in data.items():
        if kind is Settings and name in _PARTS:
            values[name] = _made(_PARTS[name], value, f"{where}.{name}")
        elif kind is Settings and name in _LISTS:
            values[name] = tuple(_made(_LISTS[name], one, f"{where}.{name}[{i}]") for i, one in enumerate(value))
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    try:
        return kind(**values)
    except TypeError as error:
        missing = str(error).partition("argument")[2].lstrip("s: ")
        raise SettingsError(f"{where} lacks {missing or error}") from None
