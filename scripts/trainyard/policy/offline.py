"""Evaluates the admission policies without a cluster: their own expressions, with a site's parameters.

Omits what only an API server can check: permissions beyond the queues of a team, quotas, Pod Security, schemas.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.contract import Contract, Team
from trainyard.kinds import registry
from trainyard.policy import cel, rules

Object = dict[str, Any]
LIMIT_RANGER = "kubernetes.io/limit-ranger"  # annotation in which the API server lists defaults from a LimitRange
Path = tuple[str | int, ...]
# (group, kind) -> resource, for everything that policies match.
RESOURCES = {
    ("", "Pod"): "pods",
    ("", "PersistentVolumeClaim"): "persistentvolumeclaims",
    ("", "PersistentVolume"): "persistentvolumes",
    ("", "Namespace"): "namespaces",
    ("", "Secret"): "secrets",
    ("apps", "Deployment"): "deployments",
    ("apps", "StatefulSet"): "statefulsets",
    ("", "Service"): "services",
    ("autoscaling", "HorizontalPodAutoscaler"): "horizontalpodautoscalers",
    ("policy", "PodDisruptionBudget"): "poddisruptionbudgets",
    ("networking.k8s.io", "Ingress"): "ingresses",
    ("gateway.networking.k8s.io", "HTTPRoute"): "httproutes",
    ("keda.sh", "ScaledObject"): "scaledobjects",
    ("http.keda.sh", "HTTPScaledObject"): "httpscaledobjects",
    ("serving.kserve.io", "InferenceService"): "inferenceservices",
    ("batch", "CronJob"): "cronjobs",
    **{(kind.group, kind.kind): kind.plural for kind in registry.KINDS},
    ("scheduling.volcano.sh", "PodGroup"): "podgroups",
    ("argoproj.io", "Workflow"): "workflows",
    ("argoproj.io", "CronWorkflow"): "cronworkflows",
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): "clusterrolebindings",
    ("rbac.authorization.k8s.io", "RoleBinding"): "rolebindings",
}


@dataclass(frozen=True)
class Violation:
    """Violation of one rule. `path` is the part of the object that it is about, if known."""

    rule: str
    message: str
    path: Path | None = None


@dataclass(frozen=True)
class Requester:
    """The requesting user: name, queues that they may use, and whether they may manage tenants."""

    user: str = "member"
    queues: tuple[str, ...] = ()
    manages: bool = False


@dataclass(frozen=True)
class Request:
    """One request to the API server; `team` is None outside the namespaces of teams."""

    obj: Object
    requester: Requester
    team: Team | None
    old: Object | None = None
    sub: str = ""


@dataclass(frozen=True)
class Policy:
    """One rule with its programs. `looks` are the (group, resource, operations) that it matches."""

    name: str
    id: str
    about: str
    clusterwide: bool
    looks: tuple[tuple[str, str, tuple[str, ...]], ...]
    conditions: tuple[str, ...]
    variables: Mapping[str, str]
    validations: tuple[tuple[str, str, str], ...]  # expression, message, messageExpression
    advice: bool = False  # by default it only warns
    option: str = ""  # component that installs it

    def in_force(self, contract: Contract) -> bool:
        """Whether the rule is enabled at the site: a rule of a disabled option is not installed."""
        return contract.modes.get(self.name, "off" if self.option else "enforce") != "off"

    def concerns(self, request: Request) -> bool:
        """Whether the rule matches the request by kind, operation and namespace."""
        if request.team is None and not self.clusterwide:
            return False
        obj = request.obj
        group = str(obj.get("apiVersion", "")).rpartition("/")[0]
        resource = RESOURCES.get((group, str(obj.get("kind"))), "") + (f"/{request.sub}" if request.sub else "")
        operation = "CREATE" if request.old is None else "UPDATE"
        return any(
            at == group and (name == resource or (name.endswith("/*") and resource.startswith(name[:-1])))
            and operation in operations
            for at, name, operations in self.looks
        )  # fmt: skip


@functools.cache
def policies() -> tuple[Policy, ...]:
    """All rules of policies/, by name."""
    return tuple(_policy(file.stem, rules.policy(file)) for file in rules.policy_files())


def _policy(name: str, raw: Object) -> Policy:
    spec, notes = raw["spec"], raw["metadata"]["annotations"]
    looks = [
        (group, resource, tuple(rule["operations"]))
        for rule in spec["matchConstraints"]["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    return Policy(
        name=name,
        id=notes["trainyard.io/id"],
        about=notes["trainyard.io/about"],
        clusterwide=notes.get("trainyard.io/scope") == "cluster" or name == "namespace-guard",
        looks=tuple(looks),
        conditions=tuple(one["expression"] for one in spec.get("matchConditions") or []),
        variables={one["name"]: one["expression"] for one in spec.get("variables") or []},
        validations=tuple(
            (one["expression"], one["message"].strip(), one.get("messageExpression", "")) for one in spec["validations"]
        ),
        advice="trainyard.io/advice" in notes,
        option=notes.get("trainyard.io/option", ""),
    )


def violations(request: Request, contract: Contract) -> list[Violation]:
    """All violations of the rules in force, one for each validation that fails."""
    found: list[Violation] = []
    obj, old = cel.place(request.obj), None if request.old is None else cel.place(request.old)
    for policy in policies():
        if policy.in_force(contract) and policy.concerns(request):
            found += judge(policy, obj, old, request, contract)
    return found


def judge(policy: Policy, obj: Any, old: Any, request: Request, contract: Contract) -> list[Violation]:
    """Violations of one rule by an object whose parts know their places (`cel.place`)."""
    labels = {"trainyard.io/team": request.team.name} if request.team else {}
    scope: Object = {
        "object": obj,
        "oldObject": old,
        "request": {
            "operation": "CREATE" if old is None else "UPDATE",
            "name": str(obj.get("metadata", {}).get("name", "")),
            "subResource": request.sub,
            "namespace": request.team.name if request.team else str(obj.get("metadata", {}).get("namespace", "")),
            "userInfo": {"username": request.requester.user},
        },
        "namespaceObject": {"metadata": {"annotations": annotations_of(request.team), "labels": labels}},
        "authorizer": _Authorizer(request.requester),
    }
    scope["variables"] = Variables(policy.variables, scope, {"params": contract.parameters})
    try:
        if not all(cel.compile(condition)(scope) for condition in policy.conditions):
            return []
    except cel.CelError as error:
        return [Violation(policy.name, f"the rule can't be evaluated: {error}")]
    found = []
    for expression, message, explains in policy.validations:
        try:
            if cel.compile(expression)(scope):
                continue
        except cel.CelError as error:
            found.append(Violation(policy.name, f"the rule can't be evaluated: {error}"))
            continue
        try:
            said = cel.compile(explains)(scope) if explains else message
        except cel.CelError:
            said = message
        found.append(Violation(policy.name, str(said), cel.path(said)))
    return found


def annotations_of(team: Team | None) -> dict[str, str]:
    """Annotations of a team's namespace, as the chart writes them."""
    if team is None:
        return {}
    defaults = {
        **{name: team.fill.get(f"{name}Seconds") for name in ("deadline", "keep")},
        "priority": team.default_priority or None,
        **{resource: (team.limits.get("requests") or {}).get(resource) for resource in ("cpu", "memory")},
        **{f"{resource}-limit": (team.limits.get("limits") or {}).get(resource) for resource in ("cpu", "memory")},
    }
    labels = [" ".join(f"{key}={value}" for key, value in sorted(pool.labels.items())) for pool in team.pools]
    return {
        "trainyard.io/queues": ",".join(team.queues),
        "trainyard.io/priority-classes": ",".join(team.priority_classes),
        "trainyard.io/max-gpus-per-job": str(team.max_gpus),
        "trainyard.io/max-claim": team.max_claim,
        "trainyard.io/class-quotas": ",".join(sorted(one for one, hard in team.quota.items() if hard and one != "all")),
        **{f"trainyard.io/default-{name}": str(value) for name, value in defaults.items() if value is not None},
        **({"trainyard.io/pools": ",".join(filter(None, labels))} if team.stays else {}),
    }


def defaulted(obj: Object, team: Team | None) -> Object:
    """The object as the rules see it: after the API server's defaults and, for pods, the team's LimitRange."""
    done = json.loads(json.dumps(obj))
    kind, spec = done.get("kind"), done.get("spec")
    if not isinstance(spec, dict):
        return done
    if kind == "Pod":
        spec.setdefault("schedulerName", "default-scheduler")
        given: list[str] = []
        for key in ("containers", "initContainers", "ephemeralContainers"):
            for container in spec.get(key) or []:
                given += quantities(container, team.limits if team and key != "ephemeralContainers" else {})
        if given:
            notes = done.setdefault("metadata", {}).setdefault("annotations", {}) or {}
            done["metadata"]["annotations"] = {**notes, LIMIT_RANGER: f"LimitRanger plugin set: {'; '.join(given)}"}
    elif str(done.get("apiVersion")).startswith("batch.volcano.sh/"):
        _volcano(spec)
    elif kind in ("Job", "Deployment", "StatefulSet"):
        pod = (spec.get("template") or {}).get("spec")
        if isinstance(pod, dict):
            pod.setdefault("schedulerName", "default-scheduler")
    elif kind == "PodGroup":
        spec.setdefault("queue", "default")
    return done


def _volcano(spec: Object) -> None:
    """Sets the defaults that Volcano's webhook sets in a Job before the rules see it."""
    spec["queue"] = spec.get("queue") or "default"
    tasks = [task for task in spec.get("tasks") or [] if isinstance(task, dict)]
    if not spec.get("minAvailable") and tasks:
        counts = [task.get("minAvailable", task.get("replicas", 1)) for task in tasks]
        if all(isinstance(count, int) for count in counts):
            spec["minAvailable"] = sum(counts)


def quantities(container: Object, limits: Object) -> list[str]:
    """Sets the defaults of the API server and a team's LimitRange in a container; returns those of the LimitRange."""
    resources = container.setdefault("resources", {})
    given = resources.get("limits") or {}
    requests = {**given, **(resources.get("requests") or {})}
    said = []
    for key, named in (("requests", requests), ("limits", given)):
        defaults = limits.get(key) or {}
        if added := sorted(defaults.keys() - named.keys()):
            said.append(f"{', '.join(added)} {key[:-1]} for container {container.get('name')}")
        resources[key] = {**defaults, **named}
    return said


class Variables:
    """`variables.<name>`: evaluated on first use. `site` overrides entries of some, such as `params`."""

    def __init__(
        self, expressions: Mapping[str, str], scope: Object, site: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        self._expressions, self._scope, self._site = expressions, scope, site or {}
        self._known: dict[str, Any] = {}

    def cel_select(self, name: str) -> Any:
        if name not in self._expressions:
            raise cel.CelError(f"no variable {name}")
        if name not in self._known:
            value = cel.compile(self._expressions[name])(self._scope)
            if name in self._site:
                value = {key: self._site[name].get(key, default) for key, default in value.items()}
            self._known[name] = value
        return self._known[name]


class _Authorizer:
    """`authorizer.group(…).resource(…).name(…).check(…).allowed()`, for the two permissions that rules check."""

    def __init__(self, requester: Requester, asked: Mapping[str, str] | None = None) -> None:
        self._requester, self._asked = requester, dict(asked or {})

    def cel_call(self, name: str, arguments: list[Any]) -> Any:
        if name == "allowed":
            if self._asked.get("resource") == "queues":
                return self._asked.get("name") in self._requester.queues
            return self._requester.manages
        if name in ("group", "resource", "name", "check") and len(arguments) == 1:
            return _Authorizer(self._requester, {**self._asked, name: str(arguments[0])})
        raise cel.CelError(f"the authorizer knows no {name}")
