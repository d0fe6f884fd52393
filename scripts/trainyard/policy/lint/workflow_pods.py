"""Pods that Argo's controller would create from a workflow's templates."""

from collections.abc import Iterator
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.policy import cel
from trainyard.policy.offline import quantities

Object = dict[str, Any]
OF_POD = ("nodeSelector", "tolerations", "affinity", "schedulerName", "hostNetwork")
MAIN = "main"
# Defaults for pods from the controller's configuration, see charts/argo.
CLOSED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
POD_SECURITY = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}


def of_template(spec: Object, template: Object, team: Team, contract: Contract) -> Iterator[Object]:
    """The pod of a template that runs something, with the workflow's settings for all pods."""
    containers = _main(template, contract)
    if not containers:
        return
    containers += template.get("sidecars") or []
    pod: Object = {key: spec[key] for key in OF_POD if key in spec} | {
        key: template[key] for key in OF_POD if key in template
    }
    pod |= {"containers": containers, "initContainers": template.get("initContainers") or []}
    pod["volumes"] = [*(spec.get("volumes") or []), *(template.get("volumes") or [])]
    pod.setdefault("schedulerName", contract.scheduler)
    pod["securityContext"] = _merged(POD_SECURITY, spec.get("securityContext"), template.get("securityContext"))
    if priority := template.get("priorityClassName") or spec.get("podPriorityClassName"):
        pod["priorityClassName"] = priority
    if account := template.get("serviceAccountName") or spec.get("serviceAccountName"):
        pod["serviceAccountName"] = account
    deadline = template.get("activeDeadlineSeconds")
    if deadline is None and spec.get("onExit") != template["name"]:
        # The workflow's deadline applies; a workflow without one is reported, and judged as if it had the maximum.
        deadline = spec.get("activeDeadlineSeconds", contract.parameters["maxDeadlineSeconds"])
    if str(deadline).isdigit():
        pod["activeDeadlineSeconds"] = int(str(deadline))
    if (token := template.get("automountServiceAccountToken", spec.get("automountServiceAccountToken"))) is not None:
        pod["automountServiceAccountToken"] = token
    for container in containers:
        quantities(container, team.limits)
    given = [one.get(key) or {} for one, key in ((spec, "podMetadata"), (template, "metadata"))]
    meta: Object = {
        key: {**(given[0].get(key) or {}), **(given[1].get(key) or {})} for key in ("labels", "annotations")
    }
    meta = cel.at(meta, (*(cel.path(spec) or ()), "podMetadata"))
    for key in ("labels", "annotations"):
        meta[key] = cel.at(meta[key], (*(cel.path(meta) or ()), key))
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": cel.at(pod, cel.path(template))}
    yield cel.at(made, cel.path(template))


def _main(template: Object, contract: Contract) -> list[Object]:
    """The main containers of a template, with the controller's security context as default."""
    if main := template.get("container") or template.get("script"):
        named = {"name": cel.at(MAIN, (*(cel.path(main) or ()), "name")), **main}
        return [_closed(cel.at(named, cel.path(main)))]
    if template.get("containerSet"):
        return [_closed(one) for one in template["containerSet"].get("containers") or []]
    if work := template.get("resource") or template.get("data"):
        image = contract.images.get("argoexec", "")
        return [_closed(cel.at({"name": MAIN, **({"image": image} if image else {})}, cel.path(work)))]
    return []


def _closed(container: Object) -> Object:
    made = {**container, "securityContext": _merged(CLOSED, container.get("securityContext"))}
    return cel.at(made, cel.path(container))  # type: ignore[no-any-return]


def _merged(*parts: Object | None) -> Object:
    """Merges mappings recursively; later values override earlier ones."""
    found: Object = {}
    for part in parts:
        for key, value in (part or {}).items():
            both = isinstance(value, dict) and isinstance(found.get(key), dict)
            found[key] = {**found[key], **value} if both else value
    return found
