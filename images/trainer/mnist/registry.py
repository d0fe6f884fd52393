"""Registered models in the team's folder of the bucket: `models/<name>/<version>/`, the version made of the content."""

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
CARD = "model.json"


def register(folder: str, name: str, about: Mapping[str, Any], env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Puts a trained model's files into the registry, once for each content; returns its card, with `uri`.

    Args:
        about: what the card says beside the files: accuracy, data, parameters.
        env: TRAINYARD_BUCKET and TRAINYARD_TEAM say where, TRAINYARD_RUN where it comes from.
    """
    env = os.environ if env is None else env
    if not NAME.fullmatch(name):
        raise TrainError(f"{name!r} can't be a model's name", hint="take small letters, digits, dots and hyphens")
    blobs = {
        path.name: path.read_bytes()
        for path in sorted(Path(folder).iterdir())
        if path.is_file() and path.suffix != ".json"
    }
    if not blobs:
        raise TrainError("there is nothing to register", where=folder, hint="let training write its model to {out}")
    digests = {file: hashlib.sha256(blob).hexdigest() for file, blob in blobs.items()}
    version = hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16]
    bucket, team = env.get("TRAINYARD_BUCKET") or "runs", env.get("TRAINYARD_TEAM", "")
    if not team:
        raise TrainError("TRAINYARD_TEAM is not set", hint="run this as a step of a pipeline")
    uri = f"s3://{bucket}/{team}/models/{name}/{version}"
    target = store.open_store(uri, env)
    try:
        return json.loads(target.get(CARD))  # the same content is there: its card stays
    except TrainError as error:
        if not error.missing:
            raise
    files = {file: {"sha256": digests[file], "bytes": len(blob)} for file, blob in blobs.items()}
    card = {
        "name": name,
        "version": version,
        "uri": uri,
        "files": files,
        "run": env.get("TRAINYARD_RUN", ""),
        **about,
    }
    for file, blob in blobs.items():
        target.put(file, blob)
    target.put(CARD, (json.dumps(card, indent=2, sort_keys=True) + "\n").encode())  # last: a card means all is there
    return card
