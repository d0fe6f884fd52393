"""Manifests that lack what the cluster fills in, sent to a server that does, and what it says of them."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.policy import fill
from trainyard_dev import tools
from trainyard_dev.apiserver import Answer, ApiServer
from trainyard_dev.policy.cases import WHO

PLAIN_FILE = Path(__file__).with_name("plain.yaml")
SERVES = [f"{fill.API}/{fill.KIND}"]
SETS = [
    "policies.fill.images.example\\.org/well/known=trainerTorch",
    "policies.fill.images.docker\\.io/well/known=trainerTorch",
    "policies.fill.images.well/known:2\\.15=trainerJax",
    "policies.fill.clusterStorageClasses={cluster-own}",
]
IMAGE = "site.invalid/trainyard/trainer-torch:0.4.0"

NEEDS_MUTATING = pytest.mark.skipif(
    tuple(int(part) for part in tools.tested_kubernetes().number.split(".")[:2]) < (1, 36),
    reason="MutatingAdmissionPolicy is served from Kubernetes 1.36 on",
)


def closed(server: ApiServer, namespace: str, name: str) -> None:
    """A service account whose pods get no token unless they ask for it."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    assert server.apply(account | {"automountServiceAccountToken": False}).ok


def plain() -> list[dict[str, Any]]:
    """The manifests of plain.yaml, without anchors."""
    return [copy.deepcopy(one) for one in yaml.safe_load_all(PLAIN_FILE.read_text())]


def titled(obj: dict[str, Any]) -> str:
    return f"{obj['kind']}-{obj['metadata'].get('name') or obj['metadata']['generateName']}"


def create(server: ApiServer, obj: dict[str, Any], who: str = "member", namespace: str = "vision") -> Answer:
    made = copy.deepcopy(obj)
    made["metadata"]["namespace"] = namespace
    return server.create(made, identity=WHO[who], dry_run=True)


def told(answer: Answer) -> list[str]:
    """What an object says to have been filled in."""
    words = answer.body["metadata"].get("annotations", {}).get(fill.TOLD, "")
    return [one for one in words.split(", ") if one]
