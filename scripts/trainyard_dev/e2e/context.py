"""The state that every check of a run needs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trainyard.contract.model import OWN, reference
from trainyard.kube.access import Access
from trainyard.kube.client import Kube
from trainyard.kube.kubectl import Kubectl
from trainyard.names import GPU
from trainyard.pipelines.local.dataset import Dataset
from trainyard_dev.cluster.config import Node
from trainyard_dev.e2e.recorder import Recorder
from trainyard_dev.engine import Engine
from trainyard_dev.gpu.mock import MockGpuSpec
from trainyard_dev.images.supply import Supply
from trainyard_dev.versions import load

SYSTEM = "trainyard-system"
# The two teams of a run: each is a namespace and a queue. The first one trains, the second one tries to steal.
NAMESPACE = "vision"
OTHER = "speech"

# Requirements of Pod Security "restricted" for a pod and for each container.
POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
LOG_S = 3  # how long the last lines of an ended pod may take
GPU_TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def way(host: str, port: int, seconds: int = 4) -> str:
    """A shell's line that prints whether a connection there is possible: open or closed."""
    return f"timeout {seconds} bash -c '</dev/tcp/{host}/{port}' 2>/dev/null && echo open || echo closed"


_API, _STORE = way("$KUBERNETES_SERVICE_HOST", 443), way(f"trainyard-minio.{SYSTEM}.svc", 9000)
# Network policies apply some seconds after a pod starts: kind-agent syncs every 3 s, and later on a busy or new node.
# Until the pod's node has synced, a team's pod reaches the API server, which it never may; until the store's node has,
# it does not reach the store. After a minute the script goes on all the same, and the check sees what is wrong.
SETTLE = f"""for _ in $(seq 30); do [ "$({_API}) $({_STORE})" = "closed open" ] && break; sleep 2; done; sleep 3"""


def member(team: str, name: str = "ada") -> list[str]:
    """Arguments that make kubectl act as a member of a team."""
    return [f"--as={name}", f"--as-group={team}-members", "--as-group=system:authenticated"]


@dataclass
class Context:
    """One run on one cluster."""

    cluster: str
    engine: Engine
    kubectl: Kubectl
    recorder: Recorder
    nodes: list[Node]
    gpu: str
    spec: MockGpuSpec
    userspace_nfs: bool
    gpus: dict[str, int]  # expected GPUs on each node of the GPU pool
    dataset: Dataset
    chosen: frozenset[str] = frozenset()  # ids of the checks of this run
    reused: bool = False  # the cluster existed before the run
    supply: Supply | None = None  # makes images while checks run; None: all exist
    installed_at: float = 0.0  # Unix seconds at which the installation began
    contract: dict[str, Any] = field(default_factory=dict)
    layers: list[Any] = field(default_factory=list)  # values that running entries have added: `releases.Layer`
    claims: set[str] = field(default_factory=set)  # names of locks that running entries hold for a while
    in_use: Callable[[str], bool] = lambda name: False  # whether a running entry holds or shares a lock
    helm: Any = field(default_factory=threading.RLock)  # Helm refuses a second operation on a release
    second: Callable[[], Context] | None = None  # the run on a second cluster, made on the first call

    @contextmanager
    def claim(self, lock: str) -> Iterator[None]:
        """Holds a lock exclusively while the block runs, once running entries have released it.

        Only for an entry that neither holds nor shares it, and needs it for a small part of its time.
        """
        self.claims.add(lock)
        try:
            while self.in_use(lock):
                time.sleep(1)
            yield
        finally:
            self.claims.discard(lock)

    def wants(self, check_id: str) -> bool:
        """Whether the check was chosen for this run."""
        return check_id in self.chosen

    def await_images(self, names: Iterable[str]) -> None:
        """Returns when the cluster's registry has these images of ours. Raises the error that prevented one."""
        if self.supply:
            self.supply.wait(names)

    @cached_property
    def kube(self) -> Kube:
        """A persistent connection, for repeated requests: a kubectl process costs a sixth of a second of CPU."""
        return Access(kubeconfig=str(self.kubectl.kubeconfig or "")).connect()

    @property
    def shared_class(self) -> str:
        """The storage class of shared volumes, by the contract."""
        return self.contract["storage"]["sharedClass"]

    def image(self, name: str) -> str:
        """The reference of our image for use by teams: below the mirror if the release has one."""
        return reference(self.contract.get("imageRegistry", OWN), load().image(name))

    @property
    def gpu_nodes(self) -> list[str]:
        """Names of the nodes of the GPU pool."""
        return [node.name for node in self.nodes if node.has_gpus]

    @property
    def cpu_node(self) -> str:
        """A node of the CPU pool."""
        return next(node.name for node in self.nodes if node.labels.get("trainyard.io/pool") == "cpu")

    def pod(
        self,
        name: str,
        script: str,
        *,
        image: str = "",
        node: str | None = None,
        claims: dict[str, str] | None = None,
        user: int = 1000,
        labels: dict[str, str] | None = None,
        queue: str | None = None,
    ) -> dict[str, Any]:
        """A small restricted pod that runs a shell script once; `claims` maps a claim to its mount path.

        Args:
            image: with its registry; "": the base image.
            queue: makes it a pod with one GPU in that queue, for GPU nodes; without, it runs on CPU nodes.
        """
        volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims or {}]
        mounts = [{"name": claim, "mountPath": path} for claim, path in (claims or {}).items()]
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": POD_SECURITY | {"runAsUser": user, "runAsGroup": user},
            "volumes": volumes,
            "containers": [
                {
                    "name": "main",
                    "image": image or self.image("base"),
                    "command": ["bash", "-euc", script],
                    "volumeMounts": mounts,
                    "securityContext": CONTAINER_SECURITY,
                    "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
                }
            ],
        }
        meta: dict[str, Any] = {"name": name, "labels": labels or {}}
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        if queue:
            meta["annotations"] = {"scheduling.volcano.sh/queue-name": queue}
            spec |= {"schedulerName": "volcano", "activeDeadlineSeconds": 600, "tolerations": [GPU_TOLERATION]}
            quantities = {"cpu": "50m", "memory": "64Mi", GPU: "1"}
            spec["containers"][0]["resources"] = {"requests": quantities, "limits": quantities}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def wait(self, what: str, due: str, seconds: float, namespace: str = NAMESPACE, *, check: bool = True) -> None:
        """Waits for a condition (`condition=Ready`, `delete`), with `kubectl wait`."""
        words = ("wait", what, "-n", namespace, f"--for={due}", f"--timeout={seconds:.0f}s")
        self.kubectl(*words, check=check, timeout=seconds + 10)

    def rolled_out(self, what: str, seconds: float, namespace: str = SYSTEM) -> None:
        """Waits until all pods of a workload are up to date."""
        words = ("rollout", "status", what, "-n", namespace, f"--timeout={seconds:.0f}s")
        self.kubectl(*words, timeout=seconds + 10)

    @contextmanager
    def namespace(self, name: str, *, wait: bool = True) -> Iterator[str]:
        """A namespace of no team, while the block runs. `wait`: return only when it is deleted."""
        self.kubectl("create", "namespace", name)
        try:
            yield name
        finally:
            flags = ["--timeout=90s"] if wait else ["--wait=false"]
            self.kubectl("delete", "namespace", name, *flags, check=False, timeout=100)

    @contextmanager
    def without(self, workload: str) -> Iterator[None]:
        """A workload of the platform (`deployment/x`) has no pod while the block runs."""
        self.kubectl("scale", workload, "-n", SYSTEM, "--replicas=0")
        try:
            yield
        finally:
            self.kubectl("scale", workload, "-n", SYSTEM, "--replicas=1")

    @contextmanager
    def holding(self, pod: dict[str, Any], namespace: str = NAMESPACE) -> Iterator[None]:
        """The pod exists while the block runs."""
        name = pod["metadata"]["name"]
        self.kubectl.apply([pod], namespace)
        try:
            yield
        finally:
            self.kubectl("delete", "pod", name, "-n", namespace, "--now", "--ignore-not-found", check=False)

    def create(self, obj: dict[str, Any], team: str = NAMESPACE) -> None:
        """Creates an object as a member of a team."""
        self.kubectl(*member(team), "create", "-n", team, "-f", "-", input=json.dumps(obj))

    def placed(self, pod: str, namespace: str = NAMESPACE) -> bool:
        """Whether the pod exists and has a node."""
        found = self.kubectl.find("pod", pod, "-n", namespace)
        return bool(found and found["spec"].get("nodeName"))

    def end_pods(self, *names: str, check: bool = False) -> None:
        """Deletes pods of the first team, and returns when they are gone."""
        flags = ("--now", "--ignore-not-found", "--wait=true", "--timeout=60s")
        self.kubectl("delete", "pod", *names, "-n", NAMESPACE, *flags, check=check, timeout=90)

    def _log(self, pod: str, namespace: str) -> str:
        """The log of an ended pod: the runtime may report the end before it has written the last lines."""
        end = time.monotonic() + LOG_S
        while not (log := self.kubectl("logs", "-n", namespace, pod).stdout.strip()) and time.monotonic() < end:
            time.sleep(0.3)
        return log

    def run_pod(self, pod: dict[str, Any], timeout: int = 90, namespace: str = NAMESPACE) -> tuple[str, str]:
        """Runs a pod to its end, returns `Succeeded` or `Failed` and its log, and removes it."""
        name = pod["metadata"]["name"]
        self.kubectl.apply([pod], namespace)
        try:
            self.wait(f"pod/{name}", "jsonpath={.status.containerStatuses[0].state.terminated}", timeout, namespace)
            # The pod's own phase may lag behind its container's end.
            status = self.kubectl.get("pod", name, "-n", namespace)[0]["status"]
            code = status["containerStatuses"][0]["state"]["terminated"]["exitCode"]
            return "Failed" if code else "Succeeded", self._log(name, namespace)
        finally:
            self.kubectl("delete", "pod", name, "-n", namespace, "--now", "--wait=false", check=False)
