"""Models that KServe serves for a team, from the objects that `trainyard serve --kserve` creates."""

from collections.abc import Mapping
from typing import Any

from trainyard.kube import Kube, KubeError
from trainyard.serving import apply

Object = dict[str, Any]


def listed(kube: Kube) -> list[Object]:
    """A team's InferenceServices; [] if the site has no KServe, or members may not use it. Raises KubeError."""
    try:
        return kube.list(kube.path(apply.KSERVE, "inferenceservices"), labelSelector=apply.LABEL)
    except KubeError as error:
        if error.status not in (apply.FORBIDDEN, apply.MISSING):
            raise
        return []


def template(found: Mapping[str, Any]) -> Object:
    """The predictor as a pod template."""
    predictor = found["spec"]["predictor"]
    notes = {key: predictor.get(key) or {} for key in ("labels", "annotations")}
    return {"metadata": notes, "spec": {"containers": predictor.get("containers") or []}}


def is_ready(found: Mapping[str, Any]) -> bool:
    """Whether KServe reports the InferenceService as ready."""
    said = (found.get("status") or {}).get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in said)


def address(found: Mapping[str, Any]) -> str:
    """Address of the InferenceService, which KServe chooses; "" until then."""
    status = found.get("status") or {}
    return str((status.get("address") or {}).get("url") or status.get("url") or "")


def owns(found: Mapping[str, Any]) -> bool:
    """Whether KServe created the object for an InferenceService."""
    owners = found["metadata"].get("ownerReferences") or []
    return any(one.get("kind") == "InferenceService" for one in owners)
