"""Versions that a model has had in service, and the change from one to another without changing anything else.

The ReplicaSets that Kubernetes keeps for a Deployment are the history: each has its version, source and image.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.serving import settings
from trainyard.serving.rollout import LABEL

if TYPE_CHECKING:
    from trainyard.kube import Kube

Object = dict[str, Any]
VERSION, DIGEST, SOURCE = (f"trainyard.io/model-{word}" for word in ("version", "digest", "source"))
REVISION = "deployment.kubernetes.io/revision"
STORE = "s3://"
REPLICAS = 2  # the chart's default


@dataclass(frozen=True)
class Served:
    """A version in a pod template. `source`: `s3://bucket/prefix`, or `claim:path`."""

    version: str
    digest: str
    source: str
    image: str
    revision: int = 0

    def place(self) -> dict[str, str]:
        """The source in the format of the chart's values."""
        if self.source.startswith(STORE):
            return {"bucket": self.source.removeprefix(STORE)}
        claim, _, path = self.source.partition(":")
        return {"claim": claim, "path": path}


def of_template(template: Mapping[str, Any], revision: int = 0) -> Served | None:
    """The version that a pod template serves; None if the template names none."""
    notes = (template.get("metadata") or {}).get("annotations") or {}
    if not notes.get(VERSION):
        return None
    image = next((one["image"] for one in template["spec"]["containers"] if one["name"] == "server"), "")
    return Served(notes[VERSION], notes.get(DIGEST, ""), notes.get(SOURCE, ""), image, revision)


def history(kube: Kube, model: str) -> list[Served]:
    """Versions that were in service, the current one first, each once. Raises KubeError."""
    sets = kube.list(kube.path("apps/v1", "replicasets"), labelSelector=f"{LABEL}={model},trainyard.io/track=stable")
    found = []
    for one in sets:
        revision = int((one["metadata"].get("annotations") or {}).get(REVISION, 0))
        if served := of_template(one["spec"]["template"], revision):
            found.append(served)
    found.sort(key=lambda one: one.revision, reverse=True)
    return list({one.version: one for one in reversed(found)}.values())[::-1]


def before(known: list[Served], now: str, to: str = "") -> Served:
    """The version to roll back to: the one before `now`, or the one named `to`.

    Raises:
        UsageError: there is no earlier version, or none with that name.
    """
    others = [one for one in known if one.version != now]
    if not to:
        if not others:
            what = f"version {now} is the only one that was in service"
            raise UsageError(what, hint="serve another version: trainyard serve MODEL@VERSION")
        return others[0]
    found = [one for one in others if one.version.startswith(to)]
    if len(found) != 1:
        there = ", ".join(one.version for one in others) or "none"
        what = f"several earlier versions begin with {to}" if found else f"no earlier version is {to}"
        raise UsageError(what, hint=f"versions that were in service before: {there}")
    return found[0]


def change(deployment: Mapping[str, Any], to: Served) -> list[Object]:
    """A JSON patch that makes a Deployment serve another version, and updates its stored values.

    Raises:
        TrainyardError: the Deployment was not created by trainyard.
    """
    template, name = deployment["spec"]["template"], deployment["metadata"]["name"]
    now = of_template(template)
    inits = [one["name"] for one in template["spec"].get("initContainers") or []]
    containers = [one["name"] for one in template["spec"]["containers"]]
    if now is None or "model" not in inits or "server" not in containers:
        raise TrainyardError(
            f"{name} is not a server that trainyard made", hint="serve the model again: trainyard serve MODEL"
        )
    if ("claim" in now.place()) != ("claim" in to.place()):
        what = f"{name} has its model from {now.source}, and version {to.version} is at {to.source}"
        raise TrainyardError(what, hint="the volumes also change: use trainyard serve MODEL@VERSION")
    root, at = "/spec/template", inits.index("model")
    words = [
        _word(word, to) for word in template["spec"]["initContainers"][at]["args"] if not word.startswith("--digest=")
    ]
    words += [f"--digest={to.digest}"] if to.digest else []
    server = f"{root}/spec/containers/{containers.index('server')}"
    patch: list[Object] = [
        {"op": "test", "path": f"{root}/metadata/annotations/{_escaped(VERSION)}", "value": now.version},
        {"op": "replace", "path": f"{root}/spec/initContainers/{at}/args", "value": words},
        {"op": "replace", "path": f"{server}/image", "value": to.image or now.image},
    ]
    env = template["spec"]["containers"][containers.index("server")].get("env") or []
    for number, one in enumerate(env):
        if one["name"] == "MODEL_VERSION":
            patch.append({"op": "replace", "path": f"{server}/env/{number}/value", "value": to.version})
    notes = {VERSION: to.version, DIGEST: to.digest, SOURCE: to.source}
    patch += [
        {"op": "add", "path": f"{root}/metadata/annotations/{_escaped(key)}", "value": value}
        for key, value in notes.items()
    ]
    if said := settings.read(deployment):
        said["model"] = {**said.get("model", {}), "version": to.version, "source": to.place(), "digest": to.digest}
        said["image"] = {**said.get("image", {}), "reference": to.image or now.image}
        patch.append(_noted(said))
    return patch


def whole(deployment: Mapping[str, Any]) -> list[Object]:
    """A JSON patch that restores all replicas of the version in service when its canary is removed."""
    said = settings.read(deployment)
    if said.pop("canary", None) is None:
        return []
    patch = [_noted(said)]
    if (said.get("autoscaling") or {}).get("by", "none") == "none":
        patch.append({"op": "replace", "path": "/spec/replicas", "value": int(said.get("replicas", REPLICAS))})
    return patch


def _noted(said: Mapping[str, Any]) -> Object:
    return {"op": "add", "path": f"/metadata/annotations/{_escaped(settings.NOTE)}", "value": settings.text(said)}


def _word(word: str, to: Served) -> str:
    if word.startswith("--version="):
        return f"--version={to.version}"
    if word.startswith("--from="):
        where = to.source if to.source.startswith(STORE) else f"/claim/{to.place()['path']}"
        return f"--from={where}"
    return word


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
