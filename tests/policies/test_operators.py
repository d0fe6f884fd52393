"""What a stolen account of an operator can do: nothing outside of teams' namespaces, but to its own certificate."""

from typing import Any

import pytest

from trainyard_dev.apiserver import ApiServer, Identity
from trainyard_dev.apiserver.install import complete_namespace
from trainyard_dev.policy.cases import KUBE, SYSTEM, WHO, bases, changed

OPERATORS = ("training-operator", "volcano")
SCHEDULER = Identity.account(SYSTEM, "trainyard-scheduler")
CERTIFICATE = "training-operator-webhook-cert"
SAYS = "operators may act only in namespaces of teams"


def pod(namespace: str) -> dict[str, Any]:
    return changed(bases()["cpu-pod"], {"/metadata/namespace": namespace, "/metadata/name": "stolen"})


def named(kind: str, namespace: str, name: str = "stolen", version: str = "v1", **rest: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **rest}


@pytest.fixture(scope="module", autouse=True)
def accounts(server: ApiServer) -> None:
    complete_namespace(server, KUBE)


@pytest.fixture
def certificate(server: ApiServer) -> dict[str, Any]:
    found = server.call("GET", f"/api/v1/namespaces/{SYSTEM}-webhook/secrets/{CERTIFICATE}")  # the chart's
    assert found.ok, found.message
    return found.body


@pytest.mark.parametrize("who", OPERATORS)
@pytest.mark.parametrize("namespace", [KUBE, SYSTEM, "default"])
def test_no_pod_elsewhere(server: ApiServer, who: str, namespace: str) -> None:
    answer = server.create(pod(namespace), identity=WHO[who], dry_run=True)
    assert answer.status == 403 and SAYS in answer.message
    assert f"may not change pods in {namespace}; create the job in a team's namespace" in answer.message


@pytest.mark.parametrize("who", OPERATORS)
def test_pods_of_teams_are_made(server: ApiServer, who: str) -> None:
    answer = server.create(pod("vision"), identity=WHO[who], dry_run=True)
    assert answer.ok, answer.message


@pytest.mark.parametrize(
    "obj",
    [
        named("Service", KUBE, spec={"ports": [{"port": 80}]}),
        named("ConfigMap", SYSTEM, data={"contract.yaml": "{}"}),
        named("ServiceAccount", KUBE),
        named("Role", KUBE, version="rbac.authorization.k8s.io/v1", rules=[]),
    ],
    ids=lambda obj: obj["kind"],
)
def test_nothing_else_elsewhere(server: ApiServer, obj: dict[str, Any]) -> None:
    answer = server.create(obj, identity=WHO["training-operator"], dry_run=True)
    assert answer.status == 403 and SAYS in answer.message


def test_no_command_in_a_pod_anywhere(server: ApiServer) -> None:
    """The operator holds this right to hand it on to launchers."""
    for namespace, says in ((KUBE, SAYS), ("vision", "only grants launchers the right to pods/exec")):
        path = f"/api/v1/namespaces/{namespace}/pods/some/exec?command=id&stdout=true"
        answer = server.call("POST", path, identity=WHO["training-operator"])
        assert answer.status == 403 and says in answer.message, answer.message


def test_its_own_certificate_is_written_and_no_other_secret(server: ApiServer, certificate: dict[str, Any]) -> None:
    who = WHO["training-operator"]
    written = server.patch(certificate, [{"op": "add", "path": "/data", "value": {}}], identity=who, dry_run=True)
    assert written.ok, written.message
    other = server.create(named("Secret", SYSTEM, "trainyard-s3-stolen"), identity=who, dry_run=True)
    assert other.status == 403


def test_the_scheduler_evicts_its_own_pods_alone(server: ApiServer) -> None:
    mine = changed(bases()["gpu-pod"], {"/metadata/namespace": "vision", "/metadata/name": "mine"})
    for obj, allowed in ((mine, True), (pod("vision"), False)):
        made = server.create(obj)
        assert made.ok, made.message
        path = f"{server.path(obj)}/{obj['metadata']['name']}"
        answer = server.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]},
                             identity=SCHEDULER)  # fmt: skip
        server.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        assert answer.ok == allowed
        assert allowed or "may only evict pods that name it in schedulerName" in answer.message
