"""Registered models in the team's folder of the bucket: `models/<name>/<version>/`, the version made of the content.

`models/<name>/newest.json` names the version that was registered last.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnist import store
from mnist.errors import TrainError

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
CARD, NEWEST = "model.json", "newest.json"


def register(folder: str, name: str, about: Mapping[str, Any], env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Puts a trained model's files into the registry, once for each content; returns its card, with `uri`.

    Args:
        about: further fields of the card: accuracy, data, parameters.
        env: TRAINYARD_BUCKET and TRAINYARD_TEAM give the place, TRAINYARD_RUN the origin.
    """
    env = os.environ if env is None else env
    if not NAME.fullmatch(name):
        raise TrainError(f"{name!r} can't be a model's name", hint="take lower-case letters, digits, dots and hyphens")
    blobs = {
        path.name: path.read_bytes()
        for path in sorted(Path(folder).iterdir())
        if path.is_file() and path.suffix != ".json"
    }
    if not blobs:
        raise TrainError("there is nothing to register", where=folder, hint="let training write its model to {out}")
    digests = {file: hashlib.sha256(blob).hexdigest() for file, blob in blobs.items()}
    version = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16]
    uri = f"{_place(name, env)}/{version}"
    target, above = store.open_store(uri, env), store.open_store(_place(name, env), env)
    try:
        card = json.loads(target.get(CARD))  # the same content exists: its card stays
        above.put(NEWEST, _json({"version": version}))
        return card
    except TrainError as error:
        if not error.missing:
            raise
    files = {file: {"sha256": digests[file], "bytes": len(blob)} for file, blob in blobs.items()}
    card = {"name": name, "version": version, "uri": uri, "files": files, "run": env.get("TRAINYARD_RUN", ""), **about}
    for file, blob in blobs.items():
        target.put(file, blob)
    target.put(CARD, _json(card))  # last: a card means that all files exist
    above.put(NEWEST, _json({"version": version}))
    return card


def find(wanted: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The card of a registered model: `name`, the one that was registered last, or `name@version`.

    Raises:
        TrainError: no model has that name or version.
    """
    env = os.environ if env is None else env
    name, _, version = wanted.partition("@")
    if not NAME.fullmatch(name):
        raise TrainError(f"invalid model name: {wanted!r}", hint="write it as mnist or mnist@<version>")
    place = _place(name, env)
    try:
        version = version or str(json.loads(store.open_store(place, env).get(NEWEST))["version"])
        return json.loads(store.open_store(f"{place}/{version}", env).get(CARD))
    except TrainError as error:
        if not error.missing:
            raise
        hint = "run a pipeline that registers it, such as pipelines/mnist.py; an older one is named by name@version"
        raise TrainError(f"no model {wanted} is registered", where=place, hint=hint) from None


def fetch(card: Mapping[str, Any], folder: str, env: Mapping[str, str] | None = None) -> None:
    """Copies the files of a registered model into a folder. Raises TrainError when one doesn't match its card."""
    source, target = store.open_store(card["uri"], env), Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for file, facts in card["files"].items():
        blob = source.get(file)
        if hashlib.sha256(blob).hexdigest() != facts["sha256"]:
            raise TrainError(f"{file} is not what was registered", where=card["uri"], hint="take another version")
        (target / file).write_bytes(blob)


def _place(name: str, env: Mapping[str, str]) -> str:
    bucket, team = env.get("TRAINYARD_BUCKET") or "runs", env.get("TRAINYARD_TEAM", "")
    if not team:
        raise TrainError("TRAINYARD_TEAM is not set", hint="run this as a step of a pipeline")
    return f"s3://{bucket}/{team}/models/{name}"


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()
