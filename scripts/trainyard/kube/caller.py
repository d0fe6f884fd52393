"""The caller's identity in the cluster, and its annotation on the objects that the caller creates."""

from typing import Any

from trainyard.kube.client import Kube, KubeError
from trainyard.names import SUBMITTER


def name(kube: Kube) -> str:
    """Name under which the cluster authenticates the caller; empty if the cluster doesn't tell."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = kube.create(review)
    except KubeError:
        return ""
    return str(answer.get("status", {}).get("userInfo", {}).get("username", ""))


def sign(kube: Kube, obj: dict[str, Any]) -> None:
    """Annotates an object with its creator, for people and metrics."""
    if who := name(kube):
        obj["metadata"].setdefault("annotations", {})[SUBMITTER] = who
