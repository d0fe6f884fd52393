"""States of a server that attempts are put to: as installed, with full quotas, and with guards that only warn."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.apiserver import Answer, ApiServer, Identity
from trainyard_dev.apiserver.install import await_force, complete_namespace, install, policies_in_force
from trainyard_dev.policy.cases import bases, changed

TEAM, NODE = "vision", "gpu-1"
TEAMS = (TEAM, "speech")  # those of VALUES
VALUES, BESIDE = ROOT / "tests" / "policies" / "teams.yaml", ROOT / "tests" / "policies" / "extra.yaml"
EDITORS = "test-editor"  # the role of extra.yaml that may write every kind
ENFORCE = "pod-security.kubernetes.io/enforce"


def prepare(server: ApiServer, objects: list[dict[str, Any]]) -> None:
    """Installs a release with two teams, what tests have beside it, and one node that is only an object."""
    install(server, [*objects, *yaml.safe_load_all(BESIDE.read_text())])
    _must(server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}))
    for namespace in ("kube-system", "trainyard-system"):
        complete_namespace(server, namespace)


@contextmanager
def full(server: ApiServer, namespace: str = TEAM) -> Iterator[None]:
    """The team has as many objects as each of its quotas lets it have; afterwards none."""
    _use(server, namespace, lambda hard: hard)
    await_force("the full quota", lambda: not _pod(server, namespace).ok)
    try:
        yield
    finally:
        _use(server, namespace, lambda hard: dict.fromkeys(hard, "0"))
        await_force("the empty quota", lambda: _pod(server, namespace).ok)


def open_up(server: ApiServer) -> None:
    """Rights become everybody's; policies, Pod Security and the bounds of LimitRanges warn or go.

    The quotas and the API server's own checks stay. There is no way back.
    """
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": EDITORS}
    everybody = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "roleRef": role}
    _must(server.create(binding | {"metadata": {"name": "opened"}, "subjects": [everybody]}))
    for limits in _all(server, "v1", "LimitRange"):
        for one in limits["spec"]["limits"]:
            one.pop("max", None)
        limits["spec"]["limits"] = [one for one in limits["spec"]["limits"] if len(one) > 1]
        _must(server.replace(limits))
    for namespace in _all(server, "v1", "Namespace"):
        if namespace["metadata"]["name"] in TEAMS:
            namespace["metadata"]["labels"][ENFORCE] = "privileged"
            _must(server.replace(namespace))
    for bound in _all(server, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"):
        bound["spec"]["validationActions"] = ["Warn"]
        _must(server.replace(bound))
    policies_in_force(server)
    nobody = Identity("nobody")
    await_force("everybody's right", lambda: server.call("GET", "/api/v1/secrets?limit=1", identity=nobody).ok)
    await_force("Pod Security that only warns", lambda: _pod(server, TEAM, {"/spec/hostNetwork": True}).ok)
    large = copy.deepcopy(bases()["claim"])
    large["metadata"]["namespace"] = TEAM
    large["spec"]["resources"]["requests"]["storage"] = "200Gi"
    await_force("a claim of any size", lambda: server.create(large, dry_run=True).ok)


def _use(server: ApiServer, namespace: str, used: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Writes figures of quotas as their controller would; last that of pods, by which one sees that all are known."""
    quotas = _all(server, "v1", "ResourceQuota", namespace)
    for quota in sorted(quotas, key=lambda quota: "pods" in quota["spec"]["hard"]):
        hard = quota["spec"]["hard"]
        _must(server.replace(quota | {"status": {"hard": hard, "used": used(hard)}}, sub="status"))


def _pod(server: ApiServer, namespace: str, change: dict[str, Any] | None = None) -> Answer:
    made = changed(bases()["cpu-pod"], {"/metadata/namespace": namespace, **(change or {})})
    return server.create(made, dry_run=True)


def _all(server: ApiServer, version: str, kind: str, namespace: str = "") -> list[dict[str, Any]]:
    """Every object of a kind, with what lists leave out."""
    named = {"apiVersion": version, "kind": kind}
    path = server.path(named | {"metadata": {"namespace": namespace}}) if namespace else _everywhere(server, named)
    answer = server.call("GET", path)
    _must(answer)
    return [named | one for one in answer.body["items"]]


def _everywhere(server: ApiServer, named: dict[str, str]) -> str:
    return server.path(named).replace("/namespaces/default/", "/")


def _must(answer: Answer) -> None:
    if not answer.ok:
        raise TrainyardError(f"the API server could not be prepared: {answer.message}", hint="run the command again")
