"""List of a team's models in service."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from trainyard.kube import Kube
from trainyard.observe.listing import columns
from trainyard.serving import apply, by_kserve, versions

TRACK, ACCESS = "trainyard.io/track", "trainyard.io/access"


@dataclass(frozen=True)
class Row:
    """One version in service. `outside`: its address outside the cluster; "" if it has none."""

    model: str
    track: str
    version: str
    ready: int
    replicas: int
    access: str
    address: str
    outside: str = ""

    def document(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self)


def rows(kube: Kube) -> list[Row]:
    """Rows by model, the version in service before its canary. Raises KubeError."""
    found = kube.list(kube.path("apps/v1", "deployments"), labelSelector=apply.LABEL)
    services = {
        one["metadata"]["name"]: one for one in kube.list(kube.path("v1", "services"), labelSelector=apply.LABEL)
    }
    made = [_row(one, services, kube.namespace) for one in found if not by_kserve.owns(one)]
    made += [_by_kserve(one) for one in by_kserve.listed(kube)]
    return sorted(made, key=lambda row: (row.model, row.track == "canary"))


def table(found: Sequence[Row]) -> str:
    """The rows as a table."""
    lines = [["MODEL", "TRACK", "VERSION", "READY", "FROM", "ADDRESS", "OUTSIDE"]]
    for row in found:
        ready = f"{row.ready}/{row.replicas}"
        lines.append([row.model, row.track, row.version, ready, row.access, row.address, row.outside or "-"])
    return columns(lines)


def _row(found: Mapping[str, Any], services: Mapping[str, Any], namespace: str) -> Row:
    meta, template = found["metadata"], found["spec"]["template"]
    model = meta["labels"][apply.LABEL]
    served, labels = versions.of_template(template), (template.get("metadata") or {}).get("labels") or {}
    return Row(
        model=model,
        track=labels.get(TRACK, ""),
        version=served.version if served else "",
        ready=int((found.get("status") or {}).get("readyReplicas", 0)),
        replicas=int(found["spec"].get("replicas", 1)),
        access=labels.get(ACCESS, ""),
        address=f"http://{apply.name_of(model)}.{namespace}.svc",
        outside=_outside(services.get(f"{apply.name_of(model)}-outside")),
    )


def _by_kserve(found: Mapping[str, Any]) -> Row:
    template, replicas = by_kserve.template(found), int(found["spec"]["predictor"].get("minReplicas", 1))
    served, labels = versions.of_template(template), template["metadata"]["labels"]
    return Row(
        model=found["metadata"]["labels"][apply.LABEL],
        track=labels.get(TRACK, ""),
        version=served.version if served else "",
        ready=replicas if by_kserve.is_ready(found) else 0,
        replicas=replicas,
        access=labels.get(ACCESS, ""),
        address=by_kserve.address(found) or "not reported by KServe yet",
    )


def _outside(service: Mapping[str, Any] | None) -> str:
    if service is None:
        return ""
    kind, port = service["spec"].get("type"), service["spec"]["ports"][0]
    if kind == "NodePort":
        return f"every node's port {port.get('nodePort', '?')}"
    if kind == "LoadBalancer":
        given = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        names = [one.get("hostname") or one.get("ip") or "" for one in given]
        return f"http://{names[0]}" if names else "its load balancer is pending"
    return "by its route"
