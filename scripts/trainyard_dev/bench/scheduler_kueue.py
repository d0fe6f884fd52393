"""Kueue with kube-scheduler: its manager admits whole groups of pods by quota, then kube-scheduler finds their nodes.

It runs without its webhooks: pods have what these would write (see objects.pod), except the finalizer, so that
removing pods needs no kubelet.
"""

import base64
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep

import yaml

from trainyard.errors import TrainyardError
from trainyard_dev import tools
from trainyard_dev.apiserver.install import install, namespace
from trainyard_dev.apiserver.processes import Server, free_ports
from trainyard_dev.bench import kueue_setup as setup
from trainyard_dev.bench.configurations import Configuration
from trainyard_dev.bench.harness import MERGE, Harness, token
from trainyard_dev.bench.kueue_setup import API, WORKLOADS
from trainyard_dev.bench.objects import KUEUE
from trainyard_dev.bench.scheduler_processes import Kube, metrics

SHARED = ("clusterqueues", "resourceflavors", "topologies")  # kinds without a namespace
GATED = "non-empty scheduling gates"
START_S, STUCK_S, QUIET_S = 120.0, 600.0, 0.1
ATTEMPTS = 2  # the first may have begun before a change; the second has seen it
COUNTERS = ("pending_workloads", "reserving_active_workloads", "admission_attempts_total")


@dataclass
class Workload:
    """The latest state of a group of pods from the watch."""

    reserved: bool = False
    finished: bool = False


class Pair:
    """Two programs that are paused and ended together; `after` is called at the end."""

    def __init__(self, servers: Sequence[Server], after: Callable[[], None]) -> None:
        self.servers, self._after = servers, after

    @property
    def pid(self) -> int:
        """The process id of the first program."""
        return self.servers[0].pid

    @property
    def pids(self) -> tuple[int, ...]:
        """Both process ids."""
        return tuple(server.pid for server in self.servers)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pauses both programs while the body runs."""
        with ExitStack() as held:
            for server in self.servers:
                held.enter_context(server.paused())
            yield

    def stop(self) -> None:
        """Ends both by force."""
        for server in self.servers:
            server.stop()
        self._after()


class Kueue:
    """Kueue's manager and a kube-scheduler. Settled when both counted everything and tried what still waits."""

    def __init__(self, harness: Harness, column: Configuration) -> None:
        self._world, self._settings = harness, yaml.safe_load(column.config)
        self._workloads: dict[str, Workload] = {}
        self._changes, self._closed = 0, False
        self._released, self._refusals = False, 0.0  # since it was last settled: quota was freed; failed attempts
        if not harness.server.call("GET", API).ok:
            install(harness.server, [*setup.crds(), namespace(setup.SYSTEM), setup.secret(), *setup.reader()])
        self._token = token(harness.server, setup.SYSTEM, setup.ACCOUNT, "no token to read Kueue's metrics with")
        kube = replace(column, scheduler="kube", config="")
        manager = self._start(harness.server.folder)
        self._add_queues()
        self._kube = Kube(harness, kube)
        self._kube.quiet_s = QUIET_S / 2  # it has been quiet before it is queried
        self.process = Pair([manager, self._kube.process], self._clear)
        threading.Thread(target=self._follow, daemon=True).start()

    def settle(self, harness: Harness) -> None:
        """See the class."""
        end = monotonic() + STUCK_S
        state, since = (-1, -1), monotonic()
        looks: list[float] = []  # attempts at each query since Kueue counts every workload
        while True:
            now, tried = (harness.moves, self._changes), self._seen(harness)
            counted = self._counters() if tried and now == state else {}
            if counted and (counted["pending_workloads"], counted["reserving_active_workloads"]) == self._expected():
                looks.append(counted["admission_attempts_total"])
                if self._passed(counted, looks) and monotonic() > since + QUIET_S:
                    self._kube.settle(harness)
                    if (harness.moves, self._changes) == state:
                        self._released, self._refusals = False, counted["refusals"]
                        return
            else:
                state, since, looks = now, monotonic(), []
            if monotonic() > end:
                raise TrainyardError(f"Kueue was still running after {STUCK_S:.0f} s", hint="see its log")
            sleep(0.01)

    def _passed(self, counted: dict[str, float], looks: list[float]) -> bool:
        """Whether all that waits was tried after the last change. Counters of one query are not of one moment."""
        if counted["active"]:  # it retries the first in line without end
            return len(looks) > 2 and looks[-2] >= looks[1] + ATTEMPTS
        again = self._released and counted["refusals"] < self._refusals + counted["pending_workloads"]
        return len(looks) > 1 and not again

    def _clear(self) -> None:
        """Deletes all objects of Kueue, whose removal would wait for the manager."""
        self._closed = True
        for path in (WORKLOADS, f"{API}/namespaces/default/localqueues", *(f"{API}/{kind}" for kind in SHARED)):
            names = [one["metadata"]["name"] for one in self._world.server.call("GET", path).body["items"]]
            for name in names:
                self._world.server.call("PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}}, content=MERGE)
            self._world.delete(names, path)

    def _start(self, folder: Path) -> Server:
        certificates = folder / "kueue-certificates"
        certificates.mkdir(exist_ok=True)
        health, self._port, hook = free_ports(3)
        file = folder / "kueue.yaml"
        file.write_text(yaml.safe_dump(setup.configuration(health, self._port, hook, certificates)))
        manager = Server(
            [tools.binary("kueue"), "--kubeconfig", self._world.server.kubeconfig, "--config", file,
             "--zap-log-level=error"],
            folder / "kueue.log",
        )  # fmt: skip
        manager.wait(lambda: _certificates(self._world, certificates) and bool(self._metrics()), START_S)
        return manager

    def _add_queues(self) -> None:
        """Adds one queue with all that the nodes offer."""
        server = self._world.server
        nodes = server.call("GET", "/api/v1/nodes").body["items"]
        for obj in setup.queues(self._settings, "default", [node["status"]["allocatable"] for node in nodes]):
            answer = server.create(obj)
            if not answer.ok:
                raise TrainyardError(f"the API server refused a {obj['kind']} of Kueue: {answer.message}")

        def active() -> bool:
            found = server.call("GET", f"{API}/clusterqueues/default").body
            conditions = found.get("status", {}).get("conditions", [])
            return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)

        self._world.wait("Kueue's queue", active)

    def _metrics(self) -> dict[str, float]:
        return metrics(self._port, tls=True, token=self._token)

    def _counters(self) -> dict[str, float]:
        """Sums over all queues; `active`: the pending workloads that will be tried without a further change."""
        sums = dict.fromkeys((*COUNTERS, "active", "refusals"), 0.0)
        for sample, value in self._metrics().items():
            name = sample.partition("{")[0].removeprefix("kueue_")
            if name in COUNTERS:
                sums[name] += value
                sums["active"] += value if name == "pending_workloads" and 'status="active"' in sample else 0
                sums["refusals"] += value if name == "admission_attempts_total" and "inadmissible" in sample else 0
        return sums

    def _expected(self) -> tuple[int, int]:
        """The numbers of workloads that wait for quota and that have it."""
        known = [one for one in list(self._workloads.values()) if not one.finished]
        reserved = sum(one.reserved for one in known)
        return len(known) - reserved, reserved

    def _seen(self, harness: Harness) -> bool:
        """Whether there is exactly a workload per group, and each pod that may be scheduled has a node or was tried."""
        groups = set()
        for pod in list(harness.pods.values()):
            group = pod.labels.get(f"{KUEUE}/pod-group-name")
            workload = self._workloads.get(group) if group else Workload(reserved=True)
            if not workload or (workload.reserved and not pod.node and (not pod.refused or GATED in pod.refused)):
                return False
            groups.add(group)
        return groups - {None} == set(self._workloads)

    def _follow(self) -> None:
        while not self._closed:
            for event in self._world.server.watch(WORKLOADS):
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    self._released |= self._workloads.pop(name, Workload()).reserved
                else:
                    conditions = event["object"].get("status", {}).get("conditions", [])
                    true = {one["type"] for one in conditions if one["status"] == "True"}
                    self._workloads[name] = Workload("QuotaReserved" in true, "Finished" in true)
                self._changes += 1


def _certificates(harness: Harness, folder: Path) -> bool:
    """Copies the manager's certificates to where it reads them, as kubelet would. Returns False until they exist."""
    if (folder / "tls.crt").exists():
        return True
    found = harness.server.call("GET", f"/api/v1/namespaces/{setup.SYSTEM}/secrets/{setup.SECRET}")
    data = found.body.get("data") or {}
    for name in ("tls.key", "tls.crt"):
        if name not in data:
            return False
        (folder / name).write_bytes(base64.b64decode(data[name]))
    return True
