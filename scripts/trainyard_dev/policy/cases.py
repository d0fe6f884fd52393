"""The cases of the rules: read from policies/<rule>.cases.yaml and sent to the server as dry runs."""

import copy
import functools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard.policy import rules as read_rules
from trainyard_dev.apiserver import Answer, ApiServer, Identity

FOLDER = ROOT / "policies"
SYSTEM, KUBE = "trainyard-system", "kube-system"
ADMIN = None
WHO: dict[str, Identity | None] = {
    "admin": ADMIN,
    "member": Identity("ada", ("vision-members",)),
    "speech-member": Identity("bob", ("speech-members",)),
    "viewer": Identity("vic", ("vision-viewers",)),
    "named-by-mail": Identity("Ada-B.Lovelace@example.org", ("vision-members",)),
    "training": Identity.account("vision", "training"),
    "pipeline": Identity.account("vision", "pipeline"),
    # May write everything, but neither manage tenants nor use queues.
    "editor": Identity("eve", ("test-editors",)),
    "training-operator": Identity.account(SYSTEM, "trainyard-training-operator"),
    "volcano": Identity.account(SYSTEM, "trainyard-controllers"),
    "scheduler": Identity.account(SYSTEM, "trainyard-scheduler"),
    "setup": Identity.account(SYSTEM, "trainyard-setup"),
    "node-prep": Identity.account(SYSTEM, "trainyard-node-prep"),
    "argo": Identity.account(SYSTEM, "trainyard-workflow-controller-vision"),
    # Another team's controller that may write here all the same, so that only the rules decide.
    "speech-argo": Identity(f"system:serviceaccount:{SYSTEM}:trainyard-workflow-controller-speech", ("test-editors",)),
    "janitor": Identity.account(SYSTEM, "trainyard-janitor"),
    "provisioner": Identity.account(SYSTEM, "trainyard-nfs-provisioner"),
    # Accounts of optional components.
    "prometheus": Identity.account(SYSTEM, "trainyard-prometheus"),
    "kube-state-metrics": Identity.account(SYSTEM, "trainyard-kube-state-metrics"),
    "exporter": Identity.account(SYSTEM, "trainyard-exporter"),
    "usage": Identity.account(SYSTEM, "trainyard-usage"),
    "logs": Identity.account(SYSTEM, "trainyard-logs"),
    # May write here all the same, so that only the rules decide.
    "notebook-hub": Identity(f"system:serviceaccount:{SYSTEM}-notebooks:trainyard-notebook-hub", ("test-editors",)),
    "job-controller": Identity.account(KUBE, "job-controller"),
    "statefulset-controller": Identity.account(KUBE, "statefulset-controller"),
    "ephemeral": Identity.account(KUBE, "ephemeral-volume-controller"),
    "binder": Identity.account(KUBE, "persistent-volume-binder"),
}
ASKED = {"change", "begin", "by", "update", "delete", "sub", "says", "filled"}
KEYS = ASKED | {"allow", "deny", "but", "in", "as"}
# Kinds without their own base; each case of a TFJob applies to them, too.
DERIVED = {
    kind.plural.removesuffix("s"): kind
    for kind in registry.of_part(registry.OPERATOR)
    if kind.framework not in ("pytorch", "tensorflow", "mpi")
}
# A case below `templates` stands for one of each of these, with places that begin at the pod template.
TEMPLATES = {
    "pytorchjob": "/spec/pytorchReplicaSpecs/Worker/template",
    "tfjob": "/spec/tfReplicaSpecs/Worker/template",
    "mpijob": "/spec/mpiReplicaSpecs/Worker/template",
    "vcjob": "/spec/tasks/1/template",
    **{name: f"/spec/{kind.replicas}/Worker/template" for name, kind in DERIVED.items()},
    "job": "/spec/template",
    "deployment": "/spec/template",
    "statefulset": "/spec/template",
}
# The default identity for kinds that members don't make.
MAKERS = {
    **dict.fromkeys(("statefulset", "volume"), "editor"),
    **dict.fromkeys(("team-namespace", "other-namespace"), "editor"),
    **dict.fromkeys(("cluster-binding", "binding"), "admin"),
    "deployment": "admin",  # members' ones serve models, so cases of other rules are sent as the platform
    "notebook-secret": "notebook-hub",
    **dict.fromkeys(("pytorchjob-pod", "mpijob-launcher-pod", "mpijob-worker-pod"), "training-operator"),
}


@dataclass(frozen=True)
class Case:
    """One request: `change` makes the object from a base, `update` changes the stored object, `delete` deletes it.

    Args:
        begin: how the object is stored, by `by`.
        delete: further DeleteOptions.
        filled: mutating policies, where present, fill in what is missing, and the request is then allowed.
        of: its parent in the file: `templates`, a base, or the TFJob that a case of another kind follows.
    """

    rule: str
    name: str
    allowed: bool
    base: str
    namespace: str
    who: str
    change: dict[str, Any] = field(default_factory=dict)
    update: dict[str, Any] | None = None
    sub: str = ""
    says: str = ""
    begin: dict[str, Any] = field(default_factory=dict)
    by: str = "admin"
    delete: dict[str, Any] | None = None
    of: str = ""
    filled: bool = False

    def __str__(self) -> str:
        return f"{self.rule}: {'allow' if self.allowed else 'deny'} {self.name}"


def rules() -> list[str]:
    """Names of all rules."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml") if not file.stem.endswith(".cases"))


def policy(rule: str) -> dict[str, Any]:
    """The policy of a rule, with the parts shared with others."""
    return read_rules.policy(FOLDER / f"{rule}.yaml")


@functools.cache
def bases() -> dict[str, dict[str, Any]]:
    """The base objects of cases; kinds of the registry without their own get the PyTorchJob's."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "base.cases.yaml").read_text())
    for name, kind in DERIVED.items():
        made = json.loads(json.dumps(found["pytorchjob"]))
        replicas = made["spec"].pop("pytorchReplicaSpecs")
        if "Master" not in kind.roles:
            replicas["Worker"]["replicas"] += replicas.pop("Master")["replicas"]
        for replica in replicas.values():
            replica["template"]["spec"]["containers"][0]["name"] = kind.container
        found[name] = made | {"kind": kind.kind, "spec": {**made["spec"], kind.replicas: replicas}}
    return found


@functools.cache
def cases(rule: str) -> list[Case]:
    """The cases of a rule, which its file groups by base. Raises TrainyardError for an invalid one."""
    found: list[Case] = []
    for of, listed in yaml.safe_load((FOLDER / f"{rule}.cases.yaml").read_text()).items():
        for raw in listed:
            if not (set(raw) <= KEYS and ("allow" in raw) != ("deny" in raw) and ("says" in raw) == ("deny" in raw)):
                hint = f"a case has allow, or deny and says, and beside them {', '.join(sorted(KEYS))}"
                raise TrainyardError(f"{raw} is not a case", where=f"policies/{rule}.cases.yaml", hint=hint)
            found += _meant(rule, raw, of)
    return found


def _meant(rule: str, raw: dict[str, Any], of: str) -> Iterator[Case]:
    """Expands a case: itself, one of each kind like a TFJob, or one of each template."""
    change, but = raw.get("change", {}), raw.get("but", [])
    if of == "templates":
        for base, place in TEMPLATES.items():
            if base not in but:
                yield _case(rule, raw, of, base, {place + key: value for key, value in change.items()})
        return
    yield _case(rule, raw, of, of, change)
    if of == "tfjob":
        like = raw | {"says": re.split(r"\d", raw["says"])[0]} if "says" in raw else raw  # they count otherwise
        for base, kind in DERIVED.items():
            if base not in but and not (kind.scales and "scaled" in but):
                yield _case(rule, like, of, base, _as(base, change))


def _as(base: str, change: dict[str, Any]) -> dict[str, Any]:
    """Translates a change of a TFJob to another kind, whose workers replace parameter servers without GPUs."""
    replicas, workers = f"/spec/{DERIVED[base].replicas}", "/spec/tfReplicaSpecs/Worker"
    done: dict[str, Any] = {}
    if any("/PS/" in path for path in change):
        template = json.loads(json.dumps(bases()["tfjob"]["spec"]["tfReplicaSpecs"]["PS"]["template"]))
        template["spec"]["containers"][0]["name"] = DERIVED[base].container
        done[f"{replicas}/Worker/template"] = template
    for path, value in change.items():
        path = path.replace("/spec/tfReplicaSpecs/PS", workers).replace(workers, f"{replicas}/Worker")
        done[path] = value
    return done


def asked(raw: dict[str, Any]) -> dict[str, Any]:
    """Maps a request in a file to the field names of a Case."""
    return {key: raw[key] for key in ASKED & set(raw)} | {"namespace": raw.get("in", "vision")}


def _case(rule: str, raw: dict[str, Any], of: str, base: str, change: dict[str, Any]) -> Case:
    name = (raw["allow"] if "allow" in raw else raw["deny"]) + ("" if base == of else f", in a {base}")
    about = asked(raw) | {"change": change, "who": raw.get("as") or MAKERS.get(base, "member")}
    return Case(rule=rule, name=name, allowed="allow" in raw, base=base, of=of, **about)


def changed(obj: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
    """A copy with values set at JSON pointers; null removes the value."""
    done = json.loads(json.dumps(obj))  # separated from YAML's anchors: a part shared by two is changed in one
    for pointer, value in places.items():
        *path, last = [key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:]]
        node: Any = done
        for key in path:
            node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
        if isinstance(node, list):
            node[int(last)] = value
        elif value is None:
            node.pop(last, None)
        else:
            node[last] = value
    return done


def operations(obj: dict[str, Any], places: dict[str, Any]) -> list[dict[str, Any]]:
    """The same change as JSON Patch."""
    done = []
    for pointer, value in places.items():
        node: Any = obj
        for key in pointer.split("/")[1:-1]:
            node = node[int(key)] if isinstance(node, list) else node.get(key.replace("~1", "/"), {})
        how = "remove" if value is None else "replace" if isinstance(node, list) else "add"
        done.append({"op": how, "path": pointer} | ({} if value is None else {"value": value}))
    return done


def ask(server: ApiServer, case: Case) -> Answer:
    """Sends the case to the server as a dry run."""
    obj = copy.deepcopy(bases()[case.base])
    obj["metadata"]["namespace"] = case.namespace
    who = WHO[case.who]
    if case.update is None and case.delete is None:
        return server.create(changed(obj, case.change), identity=who, dry_run=True)
    with stored(server, changed(obj, case.begin), WHO[case.by]) as found:
        if case.delete is not None:
            path = f"{server.path(found)}/{found['metadata']['name']}"
            if found["kind"] == "Pod":  # one without a node is deleted at once, whatever its grace period
                bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": found["metadata"]["name"]}}
                placed = server.call("POST", f"{path}/binding", bound | {"target": {"kind": "Node", "name": "any"}})
                assert placed.ok, placed.message
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"], **case.delete}
            return server.call("DELETE", path, options, identity=who)
        assert case.update is not None
        if who and who.user.startswith("system:"):  # controllers write whole objects, and may do nothing else
            return server.replace(changed(found, case.update), identity=who, dry_run=True, sub=case.sub)
        return server.patch(found, operations(found, case.update), identity=who, dry_run=True, sub=case.sub)


@contextmanager
def stored(server: ApiServer, obj: dict[str, Any], by: Identity | None = ADMIN) -> Iterator[dict[str, Any]]:
    """Stores the object as `by` while the body runs; removes it afterwards (except namespaces, which are reused).

    Raises:
        TrainyardError: the object can't be stored or removed.
    """
    made = server.create({key: value for key, value in obj.items() if key != "status"}, identity=by)
    path = f"{server.path(obj)}/{obj['metadata']['name']}"
    if made.status == 409 and obj["kind"] == "Namespace":
        made = server.call("GET", path)
    _must("stored", obj, made)
    if obj.get("status"):  # no request creates a workflow with one
        made = server.replace(made.body | {"status": obj["status"]}, identity=by)
        _must("stored", obj, made)
    try:
        yield made.body
    finally:
        if obj["kind"] != "Namespace":
            if made.body["metadata"].get("finalizers"):  # no controller runs here that would remove them
                server.patch(obj, [{"op": "remove", "path": "/metadata/finalizers"}])
            gone = server.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
            _must("removed", obj, gone)


def _must(be: str, obj: dict[str, Any], answer: Answer) -> None:
    if not answer.ok:
        raise TrainyardError(f"the {obj['kind']} {obj['metadata']['name']} can't be {be}: {answer.message}")
