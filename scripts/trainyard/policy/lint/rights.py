"""Kinds of objects that team members and their pipelines' account may create, as the chart's roles allow.

tests/policies/test_lint_rights.py compares this with the roles of a rendered chart.
"""

import functools
from dataclasses import dataclass
from typing import Any

from trainyard.components import all_components
from trainyard.contract import Contract
from trainyard.kinds import registry
from trainyard.policy.offline import RESOURCES

Object = dict[str, Any]
# (what, hint) of a finding
Refusal = tuple[str, str]
CORE = (("", "pods"), ("", "persistentvolumeclaims"), ("", "configmaps"))
PIPELINE_CORE = tuple(one for one in CORE if one != ("", "pods"))
# Kinds that `trainyard serve` creates.
SERVED = (
    ("", "services"), ("apps", "deployments"), ("autoscaling", "horizontalpodautoscalers"),
    ("policy", "poddisruptionbudgets"), ("networking.k8s.io", "ingresses"),
    ("gateway.networking.k8s.io", "httproutes"), ("keda.sh", "scaledobjects"), ("http.keda.sh", "httpscaledobjects"),
    ("serving.kserve.io", "inferenceservices"),
)  # fmt: skip
VOLCANO = (("scheduling.volcano.sh", "queues"), ("batch.volcano.sh", "cronjobs"))  # from the CRDs of its chart
# Versions of groups in the API server; versions of jobs are in the registry.
VERSIONS = {"": "v1", "apps": "v1", "batch": "v1", "argoproj.io": "v1alpha1", "scheduling.volcano.sh": "v1beta1"}
BUILT_IN = ("", "apps", "batch", "autoscaling", "policy")  # Kubernetes' own groups that don't end in .k8s.io
ASK = "ask the platform engineer, who may"
# What a member should do instead of creating such an object.
INSTEAD = {
    ("argoproj.io", "WorkflowTemplate"): "copy its templates into the Workflow that runs them",
    ("argoproj.io", "ClusterWorkflowTemplate"): "copy its templates into the Workflow that runs them",
    ("batch.volcano.sh", "CronJob"): "use `trainyard schedule create`",
    ("scheduling.volcano.sh", "PodGroup"): "the job's operator creates it: set the queue in the job",
    ("scheduling.volcano.sh", "Queue"): "use one of the team's queues",
    ("", "Service"): "ranks of a job don't need one to find each other",
    ("", "PersistentVolume"): "create a PersistentVolumeClaim instead",
    ("", "Secret"): "use the team's own, which exists",
    **{("apps", kind): "use a Job, which ends" for kind in ("Deployment", "StatefulSet", "ReplicaSet", "DaemonSet")},
}


@dataclass(frozen=True)
class Account:
    """An account that sends objects. `creates` are (group, plural)."""

    words: str  # name of the account in messages
    creates: frozenset[tuple[str, str]]
    pipeline: bool = False


@functools.cache
def member(serving: bool = False) -> Account:
    """A member of a team. `serving`: whether the platform serves models, which members may then deploy."""
    jobs = {(kind.group, kind.plural) for kind in registry.KINDS}
    brought = {
        (group, plural)
        for one in all_components()
        for rule in one.members
        if "create" in rule["verbs"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    return Account("members of a team", frozenset({*jobs, *brought, *CORE, *(SERVED if serving else ())}))


def pipeline(contract: Contract | None = None) -> Account:
    """The service account of a team's pipeline steps, with the additional kinds that the site allows it."""
    jobs = {(kind.group, kind.plural) for kind in registry.KINDS}
    more = {
        (str(group), str(resource))
        for rule in (contract.pipelines.get("objects") or [] if contract else [])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    return Account("steps of pipelines", frozenset({*jobs, *PIPELINE_CORE, *more}), pipeline=True)


def group_of(obj: Object) -> str:
    """API group of an object; "" is the core group."""
    return str(obj.get("apiVersion", "")).rpartition("/")[0]


def plural(group: str, kind: str) -> str:
    """Resource name of a kind."""
    if found := RESOURCES.get((group, kind)):
        return found
    word = kind.lower()
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x")) else f"{word}s"


def missing(obj: Object, who: Account | None = None) -> Refusal | None:
    """The problem with a kind or version that the platform lacks, and the hint; None if the platform may have it.

    Args:
        who: account whose kinds exist in addition to the platform's.
    """
    group, kind = group_of(obj), str(obj.get("kind"))
    version = str(obj.get("apiVersion", "")).rpartition("/")[2]
    known = registry.of_object(obj)
    wanted = known.version if known else VERSIONS.get(group, version)
    if version != wanted and ((group, plural(group, kind)) in member().creates or (group, kind) in RESOURCES):
        right = f"{group}/{wanted}".lstrip("/")
        return f"the platform has no {kind} in version {obj.get('apiVersion')}", f"use apiVersion: {right}"
    resource = (group, plural(group, kind))
    if group in BUILT_IN or group.endswith(".k8s.io") or resource in _brought() or (who and resource in who.creates):
        return None
    kinds = [one.kind for one in registry.KINDS if one.group == group]
    if kinds:
        return f"the platform has no kind {kind} of {group}", f"use one of {', '.join(kinds)}"
    jobs = ", ".join(dict.fromkeys(one.kind for one in registry.KINDS))
    return f"the platform has no kind {kind} of {group}", f"use one of {jobs} or a Workflow, or {ASK} know of it"


def refused(obj: Object, who: Account) -> Refusal | None:
    """The problem if the account may not create such an object, and the hint; None if it may."""
    group, kind = group_of(obj), str(obj.get("kind"))
    resource = plural(group, kind)
    if (group, resource) in who.creates:
        return None
    full = f"{resource}.{group}".rstrip(".")
    if who.pipeline:
        made = ", ".join(sorted(f"{one}.{of}".rstrip(".") for of, one in who.creates))
        return f"{who.words} may not create a {kind} ({full})", f"have the step create one of {made}"
    instead = INSTEAD.get((group, kind), "")
    return f"{who.words} may not create a {kind} ({full})", f"{instead}, or {ASK}" if instead else ASK


@functools.cache
def _brought() -> frozenset[tuple[str, str]]:
    """Kinds that the platform's parts install, and those that members may create."""
    crds = {(one.crds.group, plural) for one in all_components() if one.crds for plural in one.crds.plurals}
    listed = {(group, resource) for (group, _), resource in RESOURCES.items()} - {
        one for one in SERVED if "." in one[0]
    }
    return frozenset({*crds, *listed, *VOLCANO, *member().creates})
