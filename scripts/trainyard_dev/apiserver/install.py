"""Installs a rendered platform on an API server: all that admission and RBAC need, including controllers' additions."""

import json
from collections.abc import Callable, Iterable
from functools import partial
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.apiserver.client import Client

Object = dict[str, Any]
Objects = list[Object]
# Kinds that need nodes, or a program that answers calls.
LEFT_OUT = (
    "APIService", "DaemonSet", "Deployment", "Job", "MutatingWebhookConfiguration", "Pod", "Service", "StatefulSet",
    "ValidatingWebhookConfiguration",
)  # fmt: skip
FIRST = ("CustomResourceDefinition", "Namespace", "PriorityClass", "StorageClass")
LAST = ("ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding")
WAIT_S = 30.0
CANARY = "trainyard-canary"


def install(server: Client, objects: Objects) -> None:
    """Applies all of `objects` that an API server alone can hold, and waits until CRDs and policies are in force.

    Raises:
        TrainyardError: an object is refused, or something is not in force after half a minute.
    """
    wanted = [obj for obj in [*objects, *_by_setup(objects)] if obj["kind"] not in LEFT_OUT and _stays(obj)]
    spaces = {obj["metadata"]["namespace"] for obj in wanted if obj["metadata"].get("namespace")}
    known = {obj["metadata"]["name"] for obj in wanted if obj["kind"] == "Namespace"}
    wanted += [namespace(name) for name in sorted(spaces - known)]
    wanted.sort(key=_rank)
    crds = [obj for obj in wanted if obj["kind"] == "CustomResourceDefinition"]
    for crd in crds:
        if not server.create(crd).ok:  # half the time of applying; existing ones are applied
            _apply(server, [crd])
    for crd in crds:
        await_force(f"the CRD {crd['metadata']['name']}", partial(_serves, server, crd))
    _apply(server, wanted[len(crds) :])
    for name in sorted(spaces | known | {"default"}):
        complete_namespace(server, name)
    policies_in_force(server)
    if any(obj["kind"] == "MutatingAdmissionPolicy" for obj in wanted):
        made = (obj["metadata"] for obj in wanted if obj["kind"] == "Namespace")
        team = next(one["name"] for one in made if "trainyard.io/team" in one.get("labels", {}))
        _fills_in_force(server, crds, team)


def namespace(name: str, team: bool = False) -> dict[str, Any]:
    """A bare namespace; with `team`, labelled as belonging to the team of that name."""
    labels = {"trainyard.io/team": name} if team else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def complete_namespace(server: Client, name: str) -> None:
    """Adds what controllers add to a namespace: the account `default`, and the figures of its quotas."""
    account: dict[str, Any] = {"apiVersion": "v1", "kind": "ServiceAccount"}
    account["metadata"] = {"name": "default", "namespace": name}
    _apply(server, [account])
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": name}}
    for found in server.call("GET", server.path(quota)).body["items"]:
        hard = found["spec"].get("hard", {})
        status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
        answer = server.replace(found | quota | {"metadata": found["metadata"]} | status, sub="status")
        if not answer.ok:
            raise TrainyardError(f"the quota {found['metadata']['name']} of {name} has no usage: {answer.message}")


def policies_in_force(server: Client) -> None:
    """Waits until every policy and binding made so far is in force, by adding a last one, which follows them."""
    spec, bound = {"validations": [{"expression": "false"}]}, {"validationActions": ["Deny"]}
    _in_force(server, "Validating", spec, bound, lambda probe: not server.create(probe, dry_run=True).ok)


def _in_force(server: Client, sort: str, spec: Object, bound: Object, asked: Callable[[Object], bool]) -> None:
    """Waits until a new policy is `asked` about a probe; its name is new, as an old one may still be in force."""
    name = f"{CANARY}-{token_hex(4)}"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    spec["matchConstraints"] = {"resourceRules": [_rule("", "v1", "configmaps")]}
    spec["matchConstraints"]["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    spec["matchConditions"] = [{"name": "probe", "expression": f"object.metadata.name == '{name}'"}]
    policy = kind | {"kind": f"{sort}AdmissionPolicy", "spec": spec}
    binding = kind | {"kind": f"{sort}AdmissionPolicyBinding", "spec": bound | {"policyName": name}}
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    _apply(server, [policy, binding])
    await_force(f"{sort} admission", lambda: asked(probe))
    for obj in (binding, policy):
        server.call("DELETE", f"{server.path(obj)}/{name}")


def _fills_in_force(server: Client, crds: Objects, team: str) -> None:
    """Waits until mutating policies are in force for each kind: the server checks for new kinds every five seconds."""
    add = "[JSONPatch{op: 'add', path: '/data', value: {'filled': 'yes'}}]"
    spec = {"reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": add}}]}
    _in_force(server, "Mutating", spec, {}, lambda probe: "data" in server.create(probe, dry_run=True).body)
    for crd in crds:
        spec = crd["spec"]
        api = f"{spec['group']}/{next(version['name'] for version in spec['versions'] if version['served'])}"
        obj = {"apiVersion": api, "kind": spec["names"]["kind"], "metadata": {"name": CANARY, "namespace": team}}
        if spec["scope"] == "Namespaced":
            name = f"filling in of {spec['names']['plural']}"
            await_force(name, partial(_answers, server, obj))


def _answers(server: Client, obj: dict[str, Any]) -> bool:
    return server.create(obj, dry_run=True).status != 503


def _apply(server: Client, objects: Iterable[dict[str, Any]]) -> None:
    for obj in objects:
        answer = server.apply(obj)
        if not answer.ok:
            name = f"{obj['kind']} {obj['metadata']['name']}"
            raise TrainyardError(f"the API server refused {name}: {answer.message}", hint="correct the chart")


def _by_setup(objects: Objects) -> Objects:
    """The objects that the setup job applies once the operators answer."""
    plans = (obj["data"]["plan.json"] for obj in objects if "plan.json" in obj.get("data", {}))
    made = [json.loads(plan) for plan in plans]
    return [obj for plan in made for obj in [*plan.get("objects", []), *plan.get("quotas", [])]]


def _stays(obj: dict[str, Any]) -> bool:
    """Whether an object stays: not if helm makes it only to remove or to test a release."""
    hook = obj["metadata"].get("annotations", {}).get("helm.sh/hook", "")
    return "delete" not in hook and "test" not in hook


def _rank(obj: dict[str, Any]) -> int:
    kind = obj["kind"]
    return FIRST.index(kind) if kind in FIRST else len(FIRST) + (kind in LAST)


def _serves(server: Client, crd: dict[str, Any]) -> bool:
    """Whether each version of the kind answers and is in discovery, which follows a moment later on a busy machine."""
    spec = crd["spec"]
    plural = spec["names"]["plural"]
    roots = [f"/apis/{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]]
    return all(server.call("GET", f"{root}/{plural}?limit=1").ok and plural in _named(server, root) for root in roots)


def _named(server: Client, root: str) -> set[str]:
    return {resource["name"] for resource in server.call("GET", root).body.get("resources", [])}


def await_force(what: str, ready: Callable[[], bool]) -> None:
    """Waits until `ready` returns true. Raises TrainyardError that names `what`."""
    end = monotonic() + WAIT_S
    while not ready():
        if monotonic() > end:
            raise TrainyardError(f"{what} does not take effect within {WAIT_S:.0f} s", hint="run the command again")
        sleep(0.1)


def _rule(group: str, version: str, resource: str) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["CREATE"]}
