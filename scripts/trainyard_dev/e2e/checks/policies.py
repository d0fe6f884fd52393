"""Admission rules on a real cluster: all exist and are valid, and bad jobs are refused with a fix."""

import copy
import json
from dataclasses import dataclass
from typing import Any

import yaml

from trainyard.policy.rules import PREFIX, rules
from trainyard_dev.e2e.checks.training import MANIFESTS
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context, member
from trainyard_dev.e2e.entry import UPGRADES, check
from trainyard_dev.e2e.recorder import patience, require

TYPES_S = 60.0


@dataclass(frozen=True)
class Refusal:
    """An object that must be refused; `who`: arguments of kubectl; `says`: words of the refusal, the rule first."""

    id: str
    title: str
    object: dict[str, Any]
    who: list[str]
    says: tuple[str, ...]


def installed(context: Context, *on: str) -> int:
    """Every rule exists, is enforced, and type-checks against the cluster; those of disabled options don't exist.

    Args:
        on: enabled options.
    """
    there = {"", *on}
    due = {PREFIX + rule.name: ["Warn" if rule.advice else "Deny"] for rule in rules() if rule.option in there}
    off = {PREFIX + rule.name for rule in rules() if rule.option not in there}
    wait = patience(TYPES_S, 1)
    while True:
        found = {item["metadata"]["name"]: item for item in context.kubectl.get("validatingadmissionpolicies")}
        require(set(due) <= set(found), f"missing: {', '.join(sorted(set(due) - set(found)))}")
        require(not off & set(found), f"of disabled options: {', '.join(sorted(off & set(found)))}")
        unchecked = sorted(name for name in due if "typeChecking" not in found[name].get("status", {}))
        if not unchecked:
            break
        wait(f"Kubernetes has not checked the types of {', '.join(unchecked)}")
    for name in sorted(due):
        warnings = found[name]["status"]["typeChecking"].get("expressionWarnings") or []
        require(not warnings, f"{name}: {warnings[0]['warning'] if warnings else ''}")
    bindings = {item["metadata"]["name"]: item for item in context.kubectl.get("validatingadmissionpolicybindings")}
    for name in sorted(due):
        actions = bindings.get(name, {}).get("spec", {}).get("validationActions")
        require(actions == due[name], f"{name} has the actions {actions or 'none'}, the default is {due[name][0]}")
    return len(due)


def _refusals() -> list[Refusal]:
    """A bad job for each operator by a member, and bad pods as the operators themselves would create them."""
    user, account = member(NAMESPACE), f"--as=system:serviceaccount:{SYSTEM}:trainyard"
    queued, closed, whole = _load("pytorchjob"), _load("mpijob"), _load("vcjob")
    queued["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = OTHER
    closed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["automountServiceAccountToken"] = True
    whole["spec"]["minAvailable"] = 1
    placed, moved = _pod(), _pod()
    placed["spec"]["nodeName"] = "elsewhere"
    moved["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = OTHER
    return [
        Refusal(
            "pytorchjob-refused", "a PyTorchJob in another team's queue is refused, with a hint",
            queued, user, ("job-queue", f"queue {OTHER} is not this team's", "spec.runPolicy.schedulingPolicy.queue"),
        ),
        Refusal(
            "mpijob-refused", "an MPIJob whose workers would get an API token is refused",
            closed, user, ("api-token", "set automountServiceAccountToken to false"),
        ),
        Refusal(
            "vcjob-refused", "a Volcano Job that could start partially is refused",
            whole, user, ("gang-size", "minAvailable is 1, the job has 2 replicas"),
        ),
        Refusal(
            "operator-pod-refused", "training-operator cannot create a pod that sets its node",
            placed, [f"{account}-training-operator"], ("node-name", "remove nodeName"),
        ),
        Refusal(
            "volcano-pod-refused", "Volcano's controller cannot create a pod in another team's queue",
            moved, [f"{account}-controllers"], ("pod-queue", f"queue {OTHER} is not this team's"),
        ),
    ]  # fmt: skip


def _load(kind: str) -> dict[str, Any]:
    job = yaml.safe_load((MANIFESTS / f"{kind}.yaml").read_text())
    job["metadata"]["name"] = "refused"
    return job


def _pod() -> dict[str, Any]:
    """A pod of the example PyTorchJob as its operator creates it."""
    template = copy.deepcopy(_load("pytorchjob")["spec"]["pytorchReplicaSpecs"]["Master"]["template"])
    meta = {"name": "refused", "annotations": {"scheduling.k8s.io/group-name": "refused"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


@check("policies.installed", *(f"policies.{one.id}" for one in _refusals()), each=True, locks={UPGRADES},
       inputs=("policies",))  # fmt: skip
def enforced(context: Context) -> None:
    """The rules are installed and refuse a bad job of each operator; training checks show that good ones pass."""
    title = "admission policies have their default actions and no type warnings"
    if context.wants("policies.installed"):
        with context.recorder.check("policies.installed", title) as figures:
            figures["rules"] = installed(context)
    for refusal in _refusals():
        if not context.wants(f"policies.{refusal.id}"):
            continue
        with context.recorder.check(f"policies.{refusal.id}", refusal.title) as figures:
            args = ("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-")
            asked = context.kubectl(*refusal.who, *args, check=False, input=json.dumps(refusal.object))
            figures["message"] = message = " ".join((asked.stdout + asked.stderr).split())[:400]
            require(asked.returncode, "the request was admitted")
            for word in refusal.says:
                require(word in message, f"the refusal lacks {word!r}: {message}")
