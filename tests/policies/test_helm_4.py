"""Releases by Helm 4 on a real API server: installed, upgraded, rolled back, removed; and taken over from Helm 3.

Helm 4 applies on the server, where each field has an owner: what the platform's own programs have written since must
not be a conflict. Jobs of hooks end at once, for nothing runs pods here.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from trainyard.chart import helm
from trainyard.shell import CommandError, run
from trainyard_dev import tools
from trainyard_dev.apiserver import ApiServer, running
from trainyard_dev.chart import package, parts

pytestmark = pytest.mark.long
HERE = Path(__file__).parent
SYSTEM = helm.NAMESPACE
# Looks after what a deleted namespace or owner leaves behind; no other controller runs.
CONTROLLERS = ("garbage-collector-controller", "namespace-controller")
RELEASED = "meta.helm.sh/release-name"
# Who writes the CA of its certificate into its webhooks, by what their names hold, and how its client calls itself.
OPERATORS = {"volcano": "vc-webhook-manager", "training": "manager", "trainyard": "launcher"}
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
CA = "Q0E="
OPERATOR = "training-operator"
Helm = Callable[..., str]


@pytest.fixture(scope="module")
def empty() -> Iterator[ApiServer]:
    """A server with nothing on it but what Kubernetes itself makes, and on which every Job has ended."""
    with running(privileged=True) as server, server.controllers(CONTROLLERS):
        stop = threading.Event()
        player = threading.Thread(target=_end_jobs, args=(server, stop), daemon=True)
        player.start()
        yield server
        stop.set()
        player.join(10)


@pytest.fixture
def release(empty: ApiServer) -> Iterator[Helm]:
    """`release("4", "install", "--set", …)`: one command of that Helm about the release, which is gone afterwards."""

    def call(version: str, verb: str, *more: str) -> str:
        argv: list[str | Path] = [verb, helm.RELEASE]
        if verb in ("install", "upgrade"):
            argv += [package.assembled(), *(["--create-namespace"] if verb == "install" else [])]
            argv += ["--values", parts.profile_file("kind"), "--values", HERE / "teams.yaml"]
        argv += ["--namespace", SYSTEM, "--kubeconfig", empty.kubeconfig, *more]
        argv += [] if verb == "history" else ["--timeout", "3m"]
        return run([tools.binary("helm", version), *argv], timeout=240, env={"HOME": str(empty.folder)}).stdout

    yield call
    run([tools.binary("helm"), "uninstall", helm.RELEASE, "--namespace", SYSTEM, "--kubeconfig", empty.kubeconfig,
         "--no-hooks", "--ignore-not-found"], timeout=240)  # fmt: skip
    end = time.monotonic() + 60
    while empty.call("GET", f"/api/v1/namespaces/{SYSTEM}-webhook").ok:  # the next installation is refused until then
        assert time.monotonic() < end, "the namespace of the certificate stays"
        time.sleep(0.2)


def _end_jobs(server: ApiServer, stop: threading.Event) -> None:
    """What the controller of Jobs and a kubelet do to a Job whose pod succeeds."""
    client = server.connection()
    while not stop.wait(0.3):
        for job in client.call("GET", f"/apis/batch/v1/namespaces/{SYSTEM}/jobs").body.get("items", []):
            if not job.get("status", {}).get("conditions"):
                now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
                ended = [{"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
                         for kind in ("SuccessCriteriaMet", "Complete")]  # fmt: skip
                job |= {"apiVersion": "batch/v1", "kind": "Job"}
                job["status"] = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": ended}
                client.replace(job, sub="status")


def get(server: ApiServer, path: str) -> dict[str, Any]:
    answer = server.call("GET", path)
    assert answer.ok, answer.message
    return answer.body


def webhooks(server: ApiServer) -> list[dict[str, Any]]:
    """The webhook configurations of the release, whole."""
    root = "/apis/admissionregistration.k8s.io/v1"
    found = [dict(one, apiVersion="admissionregistration.k8s.io/v1", kind=kind) for kind, items in
             (("MutatingWebhookConfiguration", get(server, f"{root}/{WEBHOOKS[0]}")["items"]),
              ("ValidatingWebhookConfiguration", get(server, f"{root}/{WEBHOOKS[1]}")["items"]))
             for one in items]  # fmt: skip
    return [one for one in found if one["metadata"].get("annotations", {}).get(RELEASED) == helm.RELEASE]


def operators_start(server: ApiServer) -> int:
    """Each operator writes its CA, as it does when it starts; how many webhooks have one then."""
    count = 0
    for one in webhooks(server):
        manager = next(by for name, by in OPERATORS.items() if name in one["metadata"]["name"])
        for hook in one["webhooks"]:
            hook["clientConfig"]["caBundle"] = CA
            count += 1
        path = f"{server.path(one)}/{one['metadata']['name']}"
        answer = server.call("PUT", path, one, query={"fieldManager": manager})
        assert answer.ok, answer.message
    return count


def authorities(server: ApiServer) -> list[str]:
    return [hook["clientConfig"].get("caBundle", "") for one in webhooks(server) for hook in one["webhooks"]]


def memory(server: ApiServer) -> str:
    """What the training operator asks for, which an upgrade of these tests changes."""
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/trainyard-training-operator"
    containers = {one["name"]: one for one in get(server, path)["spec"]["template"]["spec"]["containers"]}
    return containers[OPERATOR]["resources"]["requests"]["memory"]


def restarted(server: ApiServer) -> None:
    """`kubectl rollout restart`, and a label of somebody's: fields that the chart does not have."""
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/trainyard-training-operator"
    again = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01"}}}
    body = {"metadata": {"labels": {"example.com/owner": "ops"}}, "spec": {"template": again}}
    answer = server.call("PATCH", path, body, content="application/merge-patch+json", query={"fieldManager": "kubectl"})
    assert answer.ok, answer.message


def scaled(server: ApiServer, name: str, replicas: int) -> None:
    """`kubectl scale` of a Deployment."""
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{name}"
    body = {"spec": {"replicas": replicas}}
    answer = server.call("PATCH", path, body, content="application/merge-patch+json", query={"fieldManager": "kubectl"})
    assert answer.ok, answer.message


def count(server: ApiServer, name: str) -> int:
    return int(get(server, f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/{name}")["spec"]["replicas"])


def history(release: Helm) -> list[tuple[int, str]]:
    found = json.loads(release("4", "history", "--output", "json"))
    return [(one["revision"], one["status"]) for one in found]


PARTS = ("--set", "metrics-server.enabled=true,argo.enabled=true")
MORE = ("--set", "training-operator.resources.requests.memory=123Mi")


def test_a_release_of_helm_4_from_its_installation_to_its_end(empty: ApiServer, release: Helm) -> None:
    said = release("4", "install", *PARTS)
    assert "STATUS: deployed" in said
    before, kept = memory(empty), _generations(empty)
    managers = {one["manager"] for hook in webhooks(empty) for one in hook["metadata"]["managedFields"]}
    assert managers == {"helm"}, "it applied on the server"
    release("4", "upgrade", *PARTS)
    assert _generations(empty) == kept, "where nothing changes, a server refuses nothing and replaces nothing"
    assert operators_start(empty) > 5
    restarted(empty)
    scaled(empty, "trainyard-training-operator", 0)

    release("4", "upgrade", *PARTS, *MORE)
    assert memory(empty) == "123Mi"
    assert set(authorities(empty)) == {CA}, "what operators wrote stays"
    assert count(empty, "trainyard-training-operator") == 0, "and what an administrator did"
    found = get(empty, f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/trainyard-training-operator")
    assert found["metadata"]["labels"]["example.com/owner"] == "ops"
    assert found["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"]

    # Helm 3 wrote over a field of somebody else's in silence; Helm 4 asks, and docs/install.md says how to answer.
    template = {"spec": {"containers": [{"name": OPERATOR, "resources": {"requests": {"memory": "99Mi"}}}]}}
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/trainyard-training-operator"
    body, kind = {"spec": {"template": template}}, "application/strategic-merge-patch+json"
    assert empty.call("PATCH", path, body, content=kind, query={"fieldManager": "kubectl"}).ok
    with pytest.raises(CommandError) as refused:
        release("4", "upgrade", *PARTS, *MORE)
    assert 'conflict with "kubectl"' in refused.value.output
    assert "resources.requests.memory" in refused.value.output
    release("4", "upgrade", *PARTS, *MORE, "--force-conflicts")
    assert memory(empty) == "123Mi"

    release("4", "rollback", "1")
    assert memory(empty) == before
    assert set(authorities(empty)) == {CA}
    ended = ["superseded", "superseded", "superseded", "failed", "superseded", "deployed"]
    assert history(release) == list(enumerate(ended, 1))

    release("4", "uninstall")
    assert not webhooks(empty)
    left = get(empty, f"/apis/apps/v1/namespaces/{SYSTEM}/deployments")["items"]
    assert not [one["metadata"]["name"] for one in left if one["metadata"]["name"].startswith("trainyard")]
    assert get(empty, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org")


def test_a_release_of_helm_3_goes_on_in_helm_4(empty: ApiServer, release: Helm) -> None:
    release("3", "install")
    before = memory(empty)
    assert operators_start(empty) > 5
    restarted(empty)
    release("4", "upgrade", *MORE)  # on the client, as the release was made
    assert memory(empty) == "123Mi"
    release("4", "upgrade", "--server-side=true", "--set", "training-operator.resources.requests.memory=124Mi")
    assert memory(empty) == "124Mi"
    assert set(authorities(empty)) == {CA}
    release("3", "upgrade", *MORE)  # somebody has the older one still
    assert memory(empty) == "123Mi"
    release("4", "rollback", "1")
    assert memory(empty) == before
    assert set(authorities(empty)) == {CA}


def _generations(server: ApiServer) -> dict[str, int]:
    found = get(server, f"/apis/apps/v1/namespaces/{SYSTEM}/deployments")["items"]
    found += get(server, f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets")["items"]
    return {one["metadata"]["name"]: one["metadata"]["generation"] for one in found}
