"""Places of a raw workflow's data: artifacts below the team's prefix of the store, claims of the team's class."""

from collections.abc import Callable, Iterator
from typing import Any

from trainyard.kinds.team_config import SECRET
from trainyard.pipelines.translate.settings import Settings

Object = dict[str, Any]
Say = Callable[[str], None]
CLASS = "storageClassName"


def complete(spec: Object, settings: Settings, say: Say) -> None:
    """Fills gaps of artifacts and claims, in place; `say` reports keys that were changed."""
    for artifact in list(artifacts(spec)):
        _artifact(artifact, settings, say)
    for claim in _claims(spec):
        if not settings.contract.assumed and not claim.get(CLASS):
            claim[CLASS] = settings.contract.shared_class


def artifacts(value: Any) -> Iterator[Object]:
    """Every artifact at any depth: those of arguments, inputs, outputs and data sources."""
    if isinstance(value, list):
        for one in value:
            yield from artifacts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key == "artifacts" and isinstance(one, list):
                yield from (artifact for artifact in one if isinstance(artifact, dict))
            elif key == "artifactPaths" and isinstance(one, dict):
                yield one
            else:
                yield from artifacts(one)


def _artifact(artifact: Object, settings: Settings, say: Say) -> None:
    place = artifact.get("s3")
    if not isinstance(place, dict):
        return
    if place.get("bucket"):
        if not place.get("endpoint"):  # Argo would silently use the run's own bucket in its place
            place.update(_access(settings) | place)
        return
    key, own = place.get("key"), f"{settings.team.name}/"
    if not isinstance(key, str) or key.startswith(own):
        return
    # Placeholders that the run fills in may include the team's name already.
    if not key.startswith("{{") or key.startswith("{{workflow."):
        place["key"] = own + key.lstrip("/")
        name = artifact.get("name", "?")
        say(f"artifact {name}: the key {key} is {place['key']}, for the team's objects lie below {own}")


def _access(settings: Settings) -> Object:
    """The store and the team's keys, in Argo's form; {} if the contract has no store."""
    store = settings.contract.store
    url = str(store.get("endpoint") or "")
    if settings.contract.assumed or not url:
        return {}
    secure = not url.startswith("http://")
    keys = {"accessKeySecret": "access-key", "secretKeySecret": "secret-key"}
    if secure and store.get("mode") != "external":
        keys["caSecret"] = "ca.crt"
    access: Object = {"endpoint": url.partition("://")[2].rstrip("/"), "insecure": not secure}
    if region := store.get("region"):
        access["region"] = region
    return access | {field: {"name": SECRET, "key": key} for field, key in keys.items()}


def _claims(spec: Object) -> Iterator[Object]:
    """The specs of claims that the workflow makes: its own, and those of ephemeral volumes."""
    for claim in spec.get("volumeClaimTemplates") or []:
        if isinstance(claim, dict) and isinstance(claim.get("spec"), dict):
            yield claim["spec"]
    for holder in [spec, *(spec.get("templates") or [])]:
        for volume in (holder.get("volumes") if isinstance(holder, dict) else None) or []:
            found: Any = volume
            for key in ("ephemeral", "volumeClaimTemplate", "spec"):
                found = found.get(key) if isinstance(found, dict) else None
            if isinstance(found, dict):
                yield found
