"""CPU, memory and accelerators of a step."""

import re
from typing import Any

from trainyard.pipelines.ir.model import Component, Executor
from trainyard.pipelines.translate.context import Context, Object

_INPUT = re.compile(r"\{\{\$\.inputs\.parameters\[(['\"])(.+?)\1\]\}\}$")
_FIELDS = {
    "cpu": (("resourceCpuRequest", "cpuRequest"), ("resourceCpuLimit", "cpuLimit")),
    "memory": (("resourceMemoryRequest", "memoryRequest"), ("resourceMemoryLimit", "memoryLimit")),
}
_DEFAULT = {"cpu": "100m", "memory": "256Mi"}
_BESIDE_GPU = {"cpu": "1", "memory": "4Gi"}
_NAMES = {
    "resourceCpuRequest": "a CPU request",
    "resourceCpuLimit": "a CPU limit",
    "resourceMemoryRequest": "a memory request",
    "resourceMemoryLimit": "a memory limit",
    "resourceType": "an accelerator",
    "resourceCount": "a number of accelerators",
}


def fixed(executor: Executor) -> list[tuple[str, str, dict[str, Any]]]:
    """Amounts that are parameters of the pipeline: path, description, and kfp's reference."""
    found = []
    resources = executor.resources
    for field, value in [*resources.items(), *resources.get("accelerator", {}).items()]:
        match = _INPUT.match(value) if isinstance(value, str) else None
        if match:
            found.append((f"resources.{field}", _NAMES.get(field, field), {"componentInputParameter": match[2]}))
    return found


def apply(ctx: Context, component: Component, executor: Executor, known: dict[str, Any], template: Object) -> None:
    """Writes resources and, for GPUs, what the platform requires: nodes, toleration, deadline."""
    resources = {**executor.resources, **_given(known)}
    name, count = _accelerator(ctx, component, resources.get("accelerator", {}), known)
    defaults = _BESIDE_GPU if count else _DEFAULT
    requests: Object = {}
    limits: Object = {}
    for resource, (request_fields, limit_fields) in _FIELDS.items():
        request = _amount(resources, request_fields, resource)
        limit = _amount(resources, limit_fields, resource)
        requests[resource] = request or limit or defaults[resource]
        # A request above the namespace's default limit would be refused, so a limit is set with it.
        if limit or request or count:
            limits[resource] = limit or requests[resource]
    if count:
        requests[name] = limits[name] = str(count)
        template["tolerations"] = ctx.settings.tolerations(name)
        pool = ctx.settings.team.gpu_pool(name)
        if pool is not None and pool.labels:
            template["nodeSelector"] = dict(pool.labels)
        template["activeDeadlineSeconds"] = ctx.settings.ends(ctx.pipeline.config)
    template["container"]["resources"] = {"requests": requests, **({"limits": limits} if limits else {})}


def _given(known: dict[str, Any]) -> dict[str, Any]:
    prefix = "resources."
    return {key.removeprefix(prefix): str(value) for key, value in known.items() if key.startswith(prefix)}


def _amount(resources: dict[str, Any], fields: tuple[str, str], resource: str) -> str:
    """The newer field as it is written; the older one is a number: cores, or 10⁹ bytes."""
    newer, older = fields
    if resources.get(newer):
        return str(resources[newer])
    if resources.get(older):
        return f"{resources[older]}G" if resource == "memory" else str(resources[older])
    return ""


def _accelerator(ctx: Context, component: Component, given: dict[str, Any], known: dict[str, Any]) -> tuple[str, int]:
    name = str(known.get("resources.resourceType") or given.get("resourceType") or given.get("type") or "")
    text = str(known.get("resources.resourceCount") or given.get("resourceCount") or given.get("count") or "0")
    if not name:
        return "", 0
    if "/" not in name or "{{" in name:
        raise ctx.refuse(
            f"the accelerator {name}",
            component,
            reason="which no node offers",
            hint="use nvidia.com/gpu, or what the site has",
        )
    if not text.isdigit():
        raise ctx.refuse(f"{text} accelerators", component, hint="give a whole number")
    return name, int(text)
