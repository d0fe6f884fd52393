"""prometheus-adapter next to the release, as a site installs it, with the rules of charts/serving/README.md."""

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trainyard.paths import ROOT
from trainyard_dev.e2e.context import CONTAINER_SECURITY, NAMESPACE, POD_SECURITY, SYSTEM, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import RELEASE

NAME, API = "prometheus-adapter", "v1beta1.custom.metrics.k8s.io"
DOC = ROOT / "charts/serving/README.md"
READY_S = 300.0  # enough for a busy machine
PORT = 6443
LABELS = {"app": NAME}
RBAC = "rbac.authorization.k8s.io/v1"
REVIEWS, READER = "system:auth-delegator", "extension-apiserver-authentication-reader"


def rules() -> str:
    """The configuration from the documentation."""
    lines = DOC.read_text().split("    rules:\n", 1)[1].splitlines()
    taken = ["    rules:"]
    for line in lines:
        if not line.startswith("    "):
            break
        taken.append(line)
    return textwrap.dedent("\n".join(taken)) + "\n"


@contextmanager
def installed(context: Context) -> Iterator[None]:
    """Installed while the block runs, and removed afterwards."""
    made = objects(context)
    try:
        for space in (SYSTEM, "kube-system"):
            context.kubectl.apply([one for one in made if one["metadata"].get("namespace", SYSTEM) == space], space)
        context.rolled_out(f"deployment/{NAME}", READY_S)
        yield
    finally:
        for obj in reversed(made):
            place = ["-n", obj["metadata"]["namespace"]] if "namespace" in obj["metadata"] else []
            words = ["delete", obj["kind"].lower(), obj["metadata"]["name"], *place, "--ignore-not-found"]
            context.kubectl(*words, "--wait=false", check=False)


def await_series(context: Context, metric: str, model: str) -> float:
    """Seconds until the API server has a value for each pod of the model. Raises CheckError."""
    path = f"/apis/custom.metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/pods/*/{metric}"
    began, said = time.monotonic(), ""
    while time.monotonic() < began + READY_S:
        asked = context.kubectl("get", "--raw", f"{path}?labelSelector=trainyard.io/model%3D{model}", check=False)
        said = asked.stdout or asked.stderr
        if asked.returncode == 0 and '"value"' in said:
            return round(time.monotonic() - began, 1)
        time.sleep(3)
    log = context.kubectl("logs", "-n", SYSTEM, f"deployment/{NAME}", "--tail=5", check=False).stdout
    require(False, f"{NAME} has no {metric} after {READY_S:.0f} s: {said[-300:]}; its log: {log[-600:]}")
    return 0.0


def objects(context: Context) -> list[dict[str, Any]]:
    """All of its objects: it reads pods, the API server queries it, and Kubernetes' autoscaler may use it."""
    account = [{"kind": "ServiceAccount", "name": NAME, "namespace": SYSTEM}]
    autoscaler = [{"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}]
    container = {
        "name": NAME,
        "image": context.image(NAME),
        "args": [
            f"--prometheus-url=http://{RELEASE}-prometheus.{SYSTEM}.svc:9090", "--config=/etc/adapter/config.yaml",
            "--metrics-relist-interval=10s", "--metrics-max-age=2m", f"--secure-port={PORT}", "--cert-dir=/tmp/cert",
        ],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": PORT, "scheme": "HTTPS"}, "periodSeconds": 3},
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/adapter"}, {"name": "tmp", "mountPath": "/tmp"}],
        "securityContext": CONTAINER_SECURITY | {"readOnlyRootFilesystem": True},
    }  # fmt: skip
    spec = {
        "serviceAccountName": NAME,
        "securityContext": POD_SECURITY | {"fsGroup": 1000},
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}, {"name": "tmp", "emptyDir": {}}],
    }
    reads = [{"apiGroups": [""], "resources": ["pods", "namespaces", "nodes"], "verbs": ["get", "list", "watch"]}]
    asks = [{"apiGroups": ["custom.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]}]
    return [
        _object("v1", "ServiceAccount"),
        _object("v1", "ConfigMap", data={"config.yaml": rules()}),
        _object(RBAC, "ClusterRole", NAME, "", rules=reads),
        _object(RBAC, "ClusterRole", f"{NAME}-asks", "", rules=asks),
        _bound("ClusterRole", NAME, account, NAME),
        _bound("ClusterRole", REVIEWS, account, f"{NAME}-reviews"),
        _bound("ClusterRole", f"{NAME}-asks", autoscaler, f"{NAME}-asks"),
        _bound("Role", READER, account, f"{NAME}-reader", "kube-system"),
        _object("v1", "Service", spec={"selector": LABELS, "ports": [{"port": 443, "targetPort": PORT}]}),
        _object("apps/v1", "Deployment", spec={
            "selector": {"matchLabels": LABELS}, "template": {"metadata": {"labels": LABELS}, "spec": spec}}),
        _object("apiregistration.k8s.io/v1", "APIService", API, "", spec={
            "group": "custom.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
            "versionPriority": 100, "insecureSkipTLSVerify": True, "service": {"name": NAME, "namespace": SYSTEM}}),
    ]  # fmt: skip


def _object(version: str, kind: str, name: str = NAME, namespace: str = SYSTEM, **rest: Any) -> dict[str, Any]:
    """An object in a namespace, or a cluster-scoped one for ""."""
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": meta, **rest}


def _bound(kind: str, role: str, subjects: list[dict[str, str]], name: str, namespace: str = "") -> dict[str, Any]:
    ref = {"apiGroup": RBAC.partition("/")[0], "kind": kind, "name": role}
    return _object(RBAC, f"{kind}Binding", name, namespace, roleRef=ref, subjects=subjects)
