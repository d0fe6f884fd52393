"""Values of charts/model-server from a request: with the contract's images, classes and nodes, and the values of the
model in service."""

import copy
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard.contract import Contract
from trainyard.errors import TrainyardError, UsageError
from trainyard.kinds import TeamConfig
from trainyard.serving.cards import Card

Values = dict[str, Any]
OWN = "model-server"  # runtime of the platform's own images
KEY = "ty-"  # prefix of all keys, by which scanners of logs and code find them


@dataclass(frozen=True)
class ServeRequest:
    """Options of a command. Options that are empty or None keep their previous value.

    Args:
        canary: share of requests in percent for this version, next to the one in service; 0: it replaces that version.
        keys: digests of keys to add; `only`: remove the previous keys.
        values: further values of the chart, which override all others.
    """

    replicas: int | None = None
    cpu: str = ""
    memory: str = ""
    gpus: int | None = None
    scale_by: str = ""
    minimum: int | None = None
    maximum: int | None = None
    target: int | None = None
    source: str = ""
    access: str = ""
    by: str = ""
    host: str = ""
    keys: tuple[str, ...] = ()
    only: bool = False
    canary: int = 0
    runtime: str = ""
    image: str = ""
    kserve: bool | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


def new_key() -> tuple[str, str]:
    """A key of 32 random bytes, and its SHA-256; the cluster only gets the latter."""
    key = KEY + secrets.token_urlsafe(32)
    return key, hashlib.sha256(key.encode()).hexdigest()


def part(contract: Contract) -> dict[str, Any]:
    """Settings of serving in the contract. Raises TrainyardError if the option is off."""
    found = contract.raw.get("serving")
    if not found:
        what = "this platform serves no models"
        raise TrainyardError(what, where=contract.source, hint="ask your platform engineer to set serving.enabled")
    return dict(found)


def values(contract: Contract, team: str, card: Card, wish: ServeRequest, before: Values) -> Values:
    """Values of the chart for this version.

    Args:
        before: values of the model in service, from `settings.read`; {} for a new service.

    Raises:
        UsageError: the card can't be served, or there is no version in service for a canary.
        TrainyardError: serving is off.
    """
    option, config = part(contract), TeamConfig.of(contract, team)
    if wish.gpus and not option.get("gpus"):
        what = "this platform gives no GPUs to servers, which would hold them as long as the model is in service"
        raise UsageError(
            what, where=contract.source, hint="omit --gpus, or ask your platform engineer for serving.gpus"
        )
    made: Values = copy.deepcopy(before)
    runtime = wish.runtime or made.get("runtime") or OWN
    kept = str((made.get("image") or {}).get("reference") or "") if runtime == made.get("runtime") else ""
    image = wish.image or (image_of(option, contract, card) if runtime == OWN else kept)
    if not image:
        raise UsageError(
            f"the platform has no image for {runtime}", hint="pass an image with --image, pinned by digest"
        )
    version = {"version": card.version, "source": {"bucket": card.place}, "digest": card.digest}
    if wish.canary:
        if not (before.get("model") or {}).get("version"):
            hint = f"serve it without --canary-share first: trainyard serve {card.name}"
            raise UsageError(f"{card.name} is not in service, so a canary has nothing to run beside", hint=hint)
        made["canary"] = {**version, "image": image, "share": wish.canary}
    else:
        made["model"] = {"name": card.name, **version}
        made["image"] = {"reference": image}
        made.pop("canary", None)
    made |= {"runtime": runtime, "fetch": {"image": config.platform_image}, "storeSecret": config.secret}
    _nodes(made, config, wish, str((option.get("priorityClass") or {}).get("name") or ""))
    _scaling(made, wish, option)
    _access(made, wish)
    if wish.kserve is not None:
        made["inferenceService"] = {**made.get("inferenceService", {}), "enabled": wish.kserve}
    return merged(made, wish.values)


def image_of(option: Mapping[str, Any], contract: Contract, card: Card) -> str:
    """Image that serves a card's framework. Raises UsageError."""
    if card.lacks:
        what = f"{card.title} can't be served: its card lacks {', '.join(card.lacks)}"
        raise UsageError(
            what,
            hint="register it again: trainyard models register FOLDER NAME --framework … --input … --output-tensor …",
        )
    images = option.get("images") or {}
    if card.framework not in images:
        what = f"{card.title} uses {card.framework}, for which the platform has no server"
        raise UsageError(what, hint=f"use one of {', '.join(sorted(images))}, or pass an image with --image")
    return contract.reference(images[card.framework])


def merged(base: Values, over: Mapping[str, Any]) -> Values:
    """Merges a tree into another; lists are replaced."""
    found = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merged(dict(found[key]), value) if both else value
    return found


def _nodes(made: Values, config: TeamConfig, wish: ServeRequest, usual: str) -> None:
    """Sets the nodes and resources of its pods; pods with GPUs use the team's queue.

    Args:
        usual: priority class of serving, which is for Kubernetes' own scheduler.
    """
    made.setdefault("priorityClassName", usual)
    resources = made.setdefault(
        "resources", {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "1Gi"}}
    )
    if wish.replicas is not None:
        made["replicas"] = wish.replicas
    if wish.cpu:
        resources["requests"]["cpu"] = wish.cpu
    if wish.memory:
        resources["requests"]["memory"] = resources["limits"]["memory"] = wish.memory
    held = any("/" in name for name in resources["limits"])
    if wish.gpus is None and held:
        return
    gpus = wish.gpus or 0
    pool = config.team.pool("", gpus=gpus > 0)
    for amounts in resources.values():
        for name in [name for name in amounts if "/" in name]:
            del amounts[name]
        if gpus:
            amounts[pool.resource] = gpus
    made["nodeSelector"] = dict(pool.labels)
    made["tolerations"] = [dict(one) for one in pool.tolerations] if gpus else []
    made["schedulerName"] = config.contract.scheduler if gpus else ""
    made["queue"] = config.team.queues[0] if gpus else ""
    if gpus:
        made["priorityClassName"] = config.team.priority
    elif held:
        made["priorityClassName"] = usual


def _scaling(made: Values, wish: ServeRequest, option: Mapping[str, Any]) -> None:
    asked = {"by": wish.scale_by or None, "min": wish.minimum, "max": wish.maximum, "target": wish.target,
             "source": wish.source or None}  # fmt: skip
    given = {key: value for key, value in asked.items() if value is not None}
    if wish.scale_by and "target" not in given:
        given["target"] = 0  # another unit: the previous number is meaningless
    if given:
        made["autoscaling"] = {**made.get("autoscaling", {}), **given}
    scaling = made.get("autoscaling") or {}
    if scaling.get("source") == "keda" and not scaling.get("prometheus"):
        scaling["prometheus"] = str(option.get("prometheus") or "")


def _access(made: Values, wish: ServeRequest) -> None:
    asked = {"from": wish.access, "by": wish.by, "host": wish.host}
    access = {**made.get("access", {}), **{key: value for key, value in asked.items() if value}}
    if wish.keys or wish.only:
        access["keys"] = sorted({*([] if wish.only else access.get("keys", [])), *wish.keys})
    if access:
        made["access"] = access
