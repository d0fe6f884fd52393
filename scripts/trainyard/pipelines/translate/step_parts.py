"""Parts that the templates of all steps share: retries, cache, environment, the store's keys."""

import json
import math
from typing import Any

from trainyard.kinds.environment import tracking
from trainyard.kinds.team_config import SECRET
from trainyard.pipelines.ir.model import Component, Retry
from trainyard.pipelines.translate import values
from trainyard.pipelines.translate.context import Context, Object, digest

PROGRAM = "/var/run/argo/trainyard-step"
# Replacement of kfp's installer: its runtime is next to the program, after the image's packages in the path.
WITH_KFP = 'PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}/var/run/argo/kfp.whl" exec "$0" "$@"'
# A step that exceeded its deadline has the pod's message and no attempt; a stopped run has none in any case.
LOST = (
    "lastRetry.status == 'Error' || (lastRetry.exitCode == '143' && lastRetry.message startsWith 'main:')"
    " || lastRetry.message matches '(?i)low on resource|evict|preempt|node shutdown'"
)


def retry_strategy(retry: Retry) -> Object:
    """kfp's retries, for failures of the command and of the infrastructure alike."""
    found: Object = {"limit": str(retry.count), "retryPolicy": "Always"}
    if retry.backoff:
        found["backoff"] = {"duration": _seconds(retry.backoff)}
        if retry.factor:
            # Argo only accepts whole numbers; the wait grows a little faster then, up to the same maximum.
            found["backoff"]["factor"] = str(math.ceil(retry.factor))
        if retry.longest:
            found["backoff"]["cap"] = _seconds(retry.longest)
    return found


def _seconds(amount: float) -> str:
    return f"{int(amount)}s" if float(amount).is_integer() else f"{amount}s"


def infrastructure() -> Object:
    """Retries after the pod was lost or the store was unavailable, an error to Argo, and after it was preempted or
    evicted, a failure to Argo. Without a wait: Argo also waits before it sees that a command has no retries left,
    and the executor has already waited for the store.
    """
    return {"limit": "4", "retryPolicy": "Always", "expression": LOST}


def memoize(ctx: Context, component: Component, content: Any, inputs: list[str], own_key: str = "") -> Object:
    """Argo's cache: the same component with the same values and content gives the earlier result."""
    if own_key:
        key = f"c-{digest([ctx.pipeline.name, own_key])}"
    else:
        key = f"k-{digest(content)}"
        if inputs:
            listed = ", ".join(f"inputs.parameters[{values.quoted(name)}]" for name in sorted(inputs))
            key += "-{{=sprig.sha256sum(toJson([" + listed + "]))}}"
    name = f"{ctx.settings.team.name}.{_dns(ctx.pipeline.name)}.{_dns(component.name.removeprefix('comp-'))}"
    return {"key": key, "maxAge": "720h", "cache": {"configMap": {"name": name}}}


def _dns(name: str) -> str:
    """A part of a ConfigMap's name, which has at most 253 characters in all."""
    clean = "".join(c if c.isalnum() and c.isascii() else "-" for c in name.lower()).strip("-") or "x"
    return clean if len(clean) <= 80 else f"{clean[:67].rstrip('-')}-{digest(name)}"


def environment(
    ctx: Context, component: Component, parameters: dict[str, str], cache: bool, task: str = "{{tasks.name}}"
) -> list[Object]:
    """The step program's environment. `parameters`: code of each input's text, by name."""
    step = {
        "task": task,
        "component": component.name,
        "pipeline": ctx.pipeline.name,
        "cache": cache,
        "inputs": _interface(component.inputs),
        "outputs": _interface(component.outputs),
    }
    settings, contract = ctx.settings, ctx.settings.contract
    pairs = ", ".join(f"{json.dumps(name)}: {{{{=toJson({code})}}}}" for name, code in parameters.items())
    variables = {
        "TRAINYARD_STEP": json.dumps(step, separators=(",", ":")),
        "TRAINYARD_PARAMS": "{" + pairs + "}" if pairs else "",
        "TRAINYARD_RUN": "{{workflow.name}}",
        "TRAINYARD_RUN_UID": "{{workflow.uid}}",
        "TRAINYARD_CREATED": "{{workflow.creationTimestamp.RFC3339}}",
        "TRAINYARD_NAMESPACE": settings.team.name,
        "TRAINYARD_TEAM": settings.team.name,
        "TRAINYARD_QUEUE": settings.queue,
        "TRAINYARD_PRIORITY": settings.priority,
        "TRAINYARD_BUCKET": settings.bucket,
        "TRAINYARD_EXPERIMENT": settings.experiment,
        "TRAINYARD_SYSTEM": "" if contract.assumed else contract.namespace,
        "HOME": "/tmp",
    }
    tracked = tracking(contract.tracking_uri, settings.team.name, ctx.pipeline.name)
    return [{"name": name, "value": value} for name, value in variables.items() if value] + tracked


def store_keys() -> list[Object]:
    """The team's keys, for our own containers of a step."""
    keys = {"ACCESS_KEY": ("access-key", False), "SECRET_KEY": ("secret-key", False), "CA": ("ca.crt", True)}
    found = []
    for name, (key, optional) in keys.items():
        reference = {"name": SECRET, "key": key, **({"optional": True} if optional else {})}
        found.append({"name": f"TRAINYARD_S3_{name}", "valueFrom": {"secretKeyRef": reference}})
    return found


def _interface(interface: Any) -> Object:
    artifacts: Object = {}
    for one in interface.artifacts.values():
        flags = {"list": one.is_list, "optional": one.optional}
        artifacts[one.name] = {"type": one.type, **{name: True for name, on in flags.items() if on}}
    return {"parameters": {one.name: one.type for one in interface.parameters.values()}, "artifacts": artifacts}
