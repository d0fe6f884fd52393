"""kfp-kubernetes' settings of a step."""

import json
from typing import Any

from trainyard.pipelines.ir.model import Component, Executor
from trainyard.pipelines.translate import volumes
from trainyard.pipelines.translate.context import Context, Object
from trainyard.pipelines.translate.references import References

Specs = list[tuple[str, str, dict[str, Any]]]


def fixed(executor: Executor) -> Specs:
    """Settings given as JSON parameters that Argo has no place for: path, description, and kfp's reference."""
    own, found = executor.kubernetes, []
    if spec := own.get("nodeSelector", {}).get("nodeSelectorJson"):
        found.append(("nodeSelector", "a node selector", spec))
    for field, key, what in (
        ("tolerations", "tolerationJson", "a toleration"),
        ("nodeAffinity", "nodeAffinityJson", "a node affinity"),
        ("imagePullSecret", "secretNameParameter", "a pull secret"),
    ):
        found += [(f"{field}.{at}", what, one[key]) for at, one in enumerate(own.get(field, ())) if one.get(key)]
    return found


def apply(
    ctx: Context, component: Component, executor: Executor, known: dict[str, Any], template: Object
) -> list[tuple[str, dict[str, Any]]]:
    """Writes every setting into `template`. Returns the parameters that it needs, each with kfp's reference."""
    references = References()
    container = template["container"]
    for field, value in executor.kubernetes.items():
        if field == "imagePullPolicy":
            container["imagePullPolicy"] = value
        elif field == "activeDeadlineSeconds":
            template["activeDeadlineSeconds"] = int(value)
        elif field == "podMetadata":
            template["metadata"] = {kind: dict(value[kind]) for kind in ("labels", "annotations") if value.get(kind)}
        elif field == "nodeSelector":
            chosen = value.get("labels") or _parsed(ctx, component, known.get("nodeSelector"), dict)
            template["nodeSelector"] = {**template.get("nodeSelector", ctx.settings.team.home), **chosen}
        elif field == "tolerations":
            template.setdefault("tolerations", []).extend(_tolerations(ctx, component, value, known))
        elif field == "nodeAffinity":
            template["affinity"] = {"nodeAffinity": _affinity(ctx, component, value, known)}
        elif field == "imagePullSecret":
            _pull_secrets(ctx, value, known)
        elif field == "fieldPathAsEnv":
            for one in value:
                reference = {"fieldRef": {"fieldPath": one["fieldPath"]}}
                _set(container, one["name"], {"valueFrom": reference})
        elif field == "securityContext":
            container["securityContext"] = {**container["securityContext"], **_security(value)}
        elif field in ("secretAsEnv", "configMapAsEnv"):
            for one in value:
                _keys_as_environment(references, container, field, one)
        elif field in volumes.FIELDS:
            for one in value if isinstance(value, list) else [value]:
                volumes.add(ctx, component, references, template, field, one)
        else:
            raise ctx.refuse(f"the setting {field}", component, hint="leave it out")
    return references.found


def _set(container: Object, name: str, value: Object) -> None:
    container["env"] = [one for one in container["env"] if one["name"] != name] + [{"name": name, **value}]


def _security(value: dict[str, Any]) -> Object:
    """A security context with 64-bit numbers as numbers: they are text in protobuf's JSON."""
    found: Object = {key: int(value[key]) for key in ("runAsUser", "runAsGroup") if key in value}
    return {**found, **({"runAsNonRoot": value["runAsNonRoot"]} if "runAsNonRoot" in value else {})}


def _keys_as_environment(references: References, container: Object, field: str, one: dict[str, Any]) -> None:
    secret = field == "secretAsEnv"
    kind, key = ("secret", "secretKey") if secret else ("configMap", "configMapKey")
    named = references.name(one.get(f"{kind}NameParameter"), one.get(f"{kind}Name", ""))
    for pair in one.get("keyToEnv", ()):
        reference: Object = {"name": named, "key": pair[key]}
        if "optional" in one:
            reference["optional"] = one["optional"]
        _set(container, pair["envVar"], {"valueFrom": {f"{kind}KeyRef": reference}})


def _tolerations(
    ctx: Context, component: Component, value: list[dict[str, Any]], known: dict[str, Any]
) -> list[Object]:
    found: list[Object] = []
    for index, one in enumerate(value):
        if "tolerationJson" in one:
            given = _parsed(ctx, component, known.get(f"tolerations.{index}"), (dict, list))
            found += given if isinstance(given, list) else [given] if given else []
            continue
        entry: Object = {key: one[key] for key in ("key", "operator", "value", "effect") if one.get(key)}
        if "tolerationSeconds" in one:
            entry["tolerationSeconds"] = int(one["tolerationSeconds"])
        found.append(entry)
    return found


def _affinity(ctx: Context, component: Component, value: list[dict[str, Any]], known: dict[str, Any]) -> Object:
    required: list[Object] = []
    preferred: list[Object] = []
    found: Object = {}
    for index, one in enumerate(value):
        if "nodeAffinityJson" in one:
            found = {**found, **_parsed(ctx, component, known.get(f"nodeAffinity.{index}"), dict)}
            continue
        term = {key: one[key] for key in ("matchExpressions", "matchFields") if one.get(key)}
        if "weight" in one:
            preferred.append({"weight": one["weight"], "preference": term})
        else:
            required.append(term)
    if required:
        # KFP requires each of them; Kubernetes requires one of several terms, so they are merged into one.
        merged = {
            key: [e for term in required for e in term.get(key, ())] for key in ("matchExpressions", "matchFields")
        }
        terms = [{key: all_ for key, all_ in merged.items() if all_}]
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if preferred:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return found


def _pull_secrets(ctx: Context, value: list[dict[str, Any]], known: dict[str, Any]) -> None:
    for index, one in enumerate(value):
        name = str(known.get(f"imagePullSecret.{index}") or one.get("secretName", ""))
        if name and name not in ctx.pull_secrets:
            ctx.pull_secrets.append(name)


def _parsed(ctx: Context, component: Component, value: Any, kind: type | tuple[type, ...]) -> Any:
    """A JSON setting, given as JSON text or as its value."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ctx.refuse(f"a setting that is not JSON: {value[:60]}", component) from None
    if not isinstance(value, kind):
        raise ctx.refuse(f"a setting of the wrong shape: {json.dumps(value)[:60]}", component)
    return value
