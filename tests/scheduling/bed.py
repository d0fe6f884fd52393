"""A real scheduler on a real API server, with nodes that are only objects and pods that run by saying so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from trainyard import tools
from trainyard.apiserver.processes import Server, free_ports
from trainyard.apiserver.server import ApiServer

GPU = "nvidia.com/gpu"
SPACE = "/api/v1/namespaces/default/pods"
GROUP = "scheduling.volcano.sh/v1beta1"
VOLCANO = f"/apis/{GROUP}"
LATE_S = 30.0
MERGE = "application/merge-patch+json"
ROUNDS_S = 3.0  # scheduler rounds last a tenth of a second; what has not happened by then does not happen


class Bed:
    """One API server; `scheduler` runs vc-scheduler on it with a configuration."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.log = server.folder / "vc-scheduler.log"

    @contextmanager
    def scheduler(self, conf: str) -> Iterator[None]:
        """Runs vc-scheduler with this configuration for the time of the body; what was made there goes afterwards."""
        file = self.server.folder / "scheduler.yaml"
        file.write_text(conf)
        [port] = free_ports(1)
        process = Server(
            [
                tools.binary("vc-scheduler"), "--kubeconfig", self.server.kubeconfig, "--scheduler-conf", file,
                "--scheduler-name=volcano", "--leader-elect=false", "--schedule-period=100ms", "--cache-dumper=false",
                "--percentage-nodes-to-find=100", f"--listen-address=127.0.0.1:{port}",
                "--disable-default-scheduler-config", "--v=3",
            ],
            self.log,
        )  # fmt: skip
        try:
            process.wait(lambda: self._get(f"{VOLCANO}/queues/default") is not None, LATE_S)
            yield
        finally:
            process.stop()
            self._clear()

    def node(self, name: str, *, gpus: int = 0, cpu: str = "16", memory: str = "64G", taint: str = "") -> None:
        """A ready node."""
        room = {"cpu": cpu, "memory": memory, "pods": "110", **({GPU: str(gpus)} if gpus else {})}
        taints = [{"key": GPU, "value": "present", "effect": taint}] if taint else []
        self._create("v1", "Node", {"name": name}, {"taints": taints})
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        self._merge(
            f"/api/v1/nodes/{name}/status", {"status": {"allocatable": room, "capacity": room, "conditions": ready}}
        )
        self._merge(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})

    def gpus(self, name: str, count: int) -> None:
        """The node has another number of GPUs from now on."""
        room = {GPU: str(count)}
        self._merge(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": room, "capacity": room}})

    def queue(self, name: str, **spec: Any) -> None:
        """An open queue."""
        self._create(GROUP, "Queue", {"name": name}, {"weight": 1, "reclaimable": True} | spec)
        self._merge(f"{VOLCANO}/queues/{name}/status", {"status": {"state": "Open"}})

    def job(self, name: str, queue: str, *, pods: int = 1, gpus: int = 0, cpu: str = "1", memory: str = "1G",
            priority: str = "", least: int = 0) -> None:  # fmt: skip
        """A gang of equal pods; with `least` it may run with that many of them."""
        group = {"queue": queue, "minMember": least or pods, "priorityClassName": priority}
        self._create(GROUP, "PodGroup", {"name": name, "namespace": "default"}, group)
        room = {"cpu": cpu, "memory": memory, **({GPU: str(gpus)} if gpus else {})}
        for index in range(pods):
            spec: dict[str, Any] = {
                "schedulerName": "volcano",
                "containers": [{"name": "main", "image": "none", "resources": {"requests": room, "limits": room}}],
                "tolerations": [{"key": GPU, "operator": "Exists"}] if gpus else [],
                "priorityClassName": priority,
            }
            notes = {"scheduling.k8s.io/group-name": name}
            self._create("v1", "Pod", {"name": f"{name}-{index}", "labels": {"job": name}, "annotations": notes}, spec)

    def placed(self, job: str) -> list[str]:
        """Nodes of the job's pods that are not being evicted; those just bound start to run."""
        nodes = []
        for pod in self._pods(job):
            node = pod["spec"].get("nodeName", "")
            if node and not pod["metadata"].get("deletionTimestamp"):
                nodes.append(node)
                if pod["status"].get("phase") != "Running":
                    self._merge(f"{SPACE}/{pod['metadata']['name']}/status", {"status": {"phase": "Running"}})
        return sorted(nodes)

    def unschedulable(self, job: str) -> int:
        """How many pods of the job say so; an autoscaler makes nodes for these."""
        said = [
            (c["type"], c["status"], c.get("reason"))
            for p in self._pods(job)
            for c in p["status"].get("conditions", [])
        ]
        return said.count(("PodScheduled", "False", "Unschedulable"))

    def evicted(self, job: str) -> int:
        """How many of the job's pods the scheduler took away; they go at once, as kubelet would let them."""
        gone = [pod["metadata"]["name"] for pod in self._pods(job) if pod["metadata"].get("deletionTimestamp")]
        for name in gone:
            self.server.call("DELETE", f"{SPACE}/{name}", {"gracePeriodSeconds": 0})
        return len(gone)

    def finish(self, job: str) -> None:
        """The job's pods end well."""
        for pod in self._pods(job):
            self._merge(f"{SPACE}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})

    def runs(self, job: str, pods: int = 1) -> bool:
        """Waits until that many pods of the job run; False when it takes too long."""
        return self.wait(lambda: len(self.placed(job)) == pods)

    def stays_out(self, job: str) -> bool:
        """Whether no pod of the job is placed within many rounds of the scheduler."""
        end = monotonic() + ROUNDS_S
        while monotonic() < end:
            if self.placed(job):
                return False
            sleep(0.2)
        return True

    def wait(self, ready: Callable[[], bool]) -> bool:
        """Whether it comes true in time."""
        end = monotonic() + LATE_S
        while not ready():
            if monotonic() > end:
                return False
            sleep(0.1)
        return True

    def _pods(self, job: str) -> list[dict[str, Any]]:
        return self.server.call("GET", SPACE, query={"labelSelector": f"job={job}"}).body["items"]

    def _get(self, path: str) -> dict[str, Any] | None:
        answer = self.server.call("GET", path)
        return answer.body if answer.ok else None

    def _create(self, version: str, kind: str, meta: dict[str, Any], spec: dict[str, Any]) -> None:
        answer = self.server.create({"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec})
        assert answer.ok, answer.message

    def _merge(self, path: str, body: dict[str, Any]) -> None:
        answer = self.server.call("PATCH", path, body, content=MERGE)
        assert answer.ok, answer.message

    def _clear(self) -> None:
        now = {"gracePeriodSeconds": "0"}
        for path in (SPACE, f"{VOLCANO}/namespaces/default/podgroups", f"{VOLCANO}/queues", "/api/v1/nodes"):
            self.server.call("DELETE", path, query=now)
