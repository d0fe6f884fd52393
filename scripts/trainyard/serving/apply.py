"""Applies a model's objects to the cluster, deletes its obsolete ones, and waits until the model answers."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError
from trainyard.observe import pods as seen
from trainyard.observe import refusals
from trainyard.serving.rollout import LABEL, name_of, ready

Object = dict[str, Any]
Say = Callable[[str], None]
POLL_INTERVAL_S = 1.0
FORBIDDEN, MISSING = 403, 404
KSERVE = "serving.kserve.io/v1beta1"
# All kinds of objects that a model may consist of.
KINDS = (
    ("v1", "configmaps", "ConfigMap"),
    ("v1", "services", "Service"),
    ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    ("apps/v1", "deployments", "Deployment"),
    ("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    ("networking.k8s.io/v1", "ingresses", "Ingress"),
    ("gateway.networking.k8s.io/v1", "httproutes", "HTTPRoute"),
    ("keda.sh/v1alpha1", "scaledobjects", "ScaledObject"),
    ("http.keda.sh/v1alpha1", "httpscaledobjects", "HTTPScaledObject"),
    (KSERVE, "inferenceservices", "InferenceService"),
)
BROUGHT = KINDS[-4:]  # custom resources: a site without them answers 404, or 403 to members
ORDER = ("ConfigMap", "Service", "PodDisruptionBudget", "Deployment")


def deployment(kube: Kube, model: str, *, canary: bool = False) -> Object | None:
    """The Deployment that serves a model, or its canary; None if there is none. Raises KubeError."""
    return kube.find(kube.path("apps/v1", "deployments", name_of(model) + ("-canary" if canary else "")))


def served(kube: Kube, model: str) -> Object | None:
    """The object with the values of a model in service: its Deployment, else KServe's object. Raises KubeError."""
    found = deployment(kube, model)
    if found is not None:
        return found
    try:
        return kube.find(kube.path(KSERVE, "inferenceservices", name_of(model)))
    except KubeError as error:
        if error.status != FORBIDDEN:
            raise
        return None  # members may not read it, so they can't have created one


def send(kube: Kube, wanted: Sequence[Object], model: str) -> list[str]:
    """Applies the objects and deletes others of the same model; returns the deleted ones, as kind/name.

    A number of replicas that an autoscaler maintains is unchanged.

    Raises:
        KubeError: an object is rejected; those applied before it remain.
    """
    scaled = {str(obj["spec"]["scaleTargetRef"]["name"]) for obj in wanted if "scaleTargetRef" in obj.get("spec", {})}
    for obj in sorted(wanted, key=lambda one: ORDER.index(one["kind"]) if one["kind"] in ORDER else len(ORDER)):
        if obj["kind"] == "Deployment" and obj["metadata"]["name"] in scaled:
            live = kube.find(kube.path("apps/v1", "deployments", obj["metadata"]["name"]))
            if live is not None:
                obj = {**obj, "spec": {**obj["spec"], "replicas": live["spec"].get("replicas", 1)}}
        kube.apply(obj)
    kept = {(obj["kind"], obj["metadata"]["name"]) for obj in wanted}
    return list(_delete(kube, model, kept))


def stop(kube: Kube, model: str) -> list[str]:
    """Removes a model from service; returns the deleted objects. Its versions stay registered."""
    return list(_delete(kube, model, set()))


def _delete(kube: Kube, model: str, kept: set[tuple[str, str]]) -> Iterator[str]:
    for known in reversed(KINDS):
        version, plural, usual = known
        place = kube.path(version, plural)
        try:
            found = kube.list(place, labelSelector=f"{LABEL}={model},app.kubernetes.io/managed-by=trainyard")
        except KubeError as error:
            if known in BROUGHT and error.status in (FORBIDDEN, MISSING):
                continue
            raise
        for obj in found:
            name = obj["metadata"]["name"]
            kind = obj.get("kind") or usual
            if obj["metadata"].get("ownerReferences") or (kind, name) in kept:
                continue
            if kube.delete(f"{place}/{name}"):
                yield f"{kind.lower()}/{name}"


def wait(kube: Kube, model: str, seconds: float, say: Say, *, canary: bool = False) -> None:
    """Waits until the new version serves, with all its replicas.

    Raises:
        TrainyardError: the version isn't ready in time; the message includes the state of its newest pod.
    """
    end, said = time.monotonic() + seconds, ""
    while True:
        found = deployment(kube, model, canary=canary)
        if found is None:
            raise TrainyardError(f"{name_of(model)} was deleted during the wait")
        try:
            good, text = ready(found)
        except TrainyardError as error:
            raise _failed(kube, model, error.what) from None
        if text != said:
            say(text)
            said = text
        if good:
            return
        if time.monotonic() > end:
            raise _failed(kube, model, f"{found['metadata']['name']} is not ready after {seconds:.0f} s: {text}")
        time.sleep(POLL_INTERVAL_S)


def _failed(kube: Kube, model: str, what: str) -> TrainyardError:
    why = blamed(kube, model)
    hint = f"the earlier version still serves; remove the new one with `trainyard serve rollback {model}`"
    return TrainyardError(f"{what}{f'; {why}' if why else ''}", where=kube.namespace, hint=hint)


def blamed(kube: Kube, model: str) -> str:
    """The problem of the newest pod that is not ready; "" if unknown."""
    pods = kube.list(kube.path("v1", "pods"), labelSelector=f"{LABEL}={model}")
    pods.sort(key=lambda pod: str(pod["metadata"].get("creationTimestamp")), reverse=True)
    for pod in pods:
        for one in seen.containers(pod):
            waiting, over = seen.state(one, "waiting"), seen.state(one, "terminated")
            last = (one.get("lastState") or {}).get("terminated") or over
            if last.get("exitCode"):
                return _last_words(kube, pod["metadata"]["name"], str(one["name"]), last)
            if waiting.get("reason") in seen.STUCK:
                return f"{one['name']}: {waiting['reason']} {waiting.get('message', '')}".strip()
        if told := seen.unplaced(pod):
            return f"no node fits: {told.get('message', '')}"
    events = kube.list(kube.path("v1", "events"), fieldSelector="type=Warning,involvedObject.kind=ReplicaSet")
    events = [one for one in events if one["involvedObject"]["name"].startswith(f"{name_of(model)}-")]
    return refusals.refusal(events) or ""


def _last_words(kube: Kube, pod: str, container: str, ended: Mapping[str, Any]) -> str:
    try:
        lines = [line.decode(errors="replace") for line in kube.logs(pod, container, tail=3)]
    except KubeError:
        lines = []
    said = " | ".join(line.strip() for line in lines if line.strip())
    return f"{container} ended with code {ended['exitCode']}{f': {said}' if said else ''}"
