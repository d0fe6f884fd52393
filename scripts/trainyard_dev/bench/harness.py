"""One API server with nodes and pods that are only objects: made in bulk, watched, and ended by the harness."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.apiserver import ApiServer, Client, running
from trainyard_dev.bench.traces import MOST_PODS, Node

GPU, GROUP = "nvidia.com/gpu", "scheduling.volcano.sh/v1beta1"
PODS = "/api/v1/namespaces/default/pods"
PODGROUPS = f"/apis/{GROUP}/namespaces/default/podgroups"
QUEUES = f"/apis/{GROUP}/queues"
MERGE = "application/merge-patch+json"
# A watch that first sends every existing object, and then a bookmark.
WHOLE = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
ALL_LISTED = "k8s.io/initial-events-end"
LANES = 4  # connections that write at the same time
MODEL_LABEL = "trainyard.io/gpu-model"
PRESENT = "present"  # the value of the taint on nodes with GPUs
POOL = {"trainyard.io/pool": "bench"}  # on every node: for schedulers that select nodes by label


@dataclass
class Seen:
    """The latest state of a pod from the watch; times are monotonic seconds, 0 until they happen."""

    node: str = ""
    phase: str = "Pending"
    refused: str = ""  # the scheduler's message
    unschedulable: bool = False  # according to its condition
    leaving: bool = False
    made: float = 0.0
    bound: float = 0.0
    labels: dict[str, str] = field(default_factory=dict)


class Harness:
    """The objects of one run. Use `harness()` to get one."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.pods: dict[str, Seen] = {}
        self.changes = 0  # events of pods so far
        self.moves = 0  # of these, the ones that change more than the message, which Volcano rewrites without end
        self.bindings = 0  # pods that were given a node so far
        self._lanes = [server.connection() for _ in range(LANES)]
        self._pool = ThreadPoolExecutor(LANES)
        self._watch = threading.Thread(target=self._follow, daemon=True)
        self._closed = False
        self._watch.start()

    def add_nodes(self, nodes: Sequence[Node], *, effect: str = "") -> None:
        """Adds ready nodes; those with GPUs get the GPU taint with this effect, "" for no taint."""

        def add(lane: Client, node: Node) -> None:
            room = {"cpu": f"{node.cpu_milli}m", "memory": f"{node.memory_mib}Mi", "pods": str(MOST_PODS)}
            if node.gpus:
                room[GPU] = str(node.gpus)
            taints = [{"key": GPU, "value": PRESENT, "effect": effect}] if node.gpus and effect else []
            labels = POOL | {"kubernetes.io/hostname": node.name, **({MODEL_LABEL: node.model} if node.model else {})}
            obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels}}
            _taken(lane.call("POST", "/api/v1/nodes", obj | {"spec": {"taints": taints}}))
            ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
            status = {"allocatable": room, "capacity": room, "conditions": ready}
            _taken(lane.call("PATCH", f"/api/v1/nodes/{node.name}/status", {"status": status}, content=MERGE))
            # The API server's admission taints new nodes as not ready.
            _taken(lane.call("PATCH", f"/api/v1/nodes/{node.name}", {"spec": {"taints": taints}}, content=MERGE))

        self.each(nodes, add)

    def add_queue(self, name: str, **spec: Any) -> None:
        """Adds an open queue."""
        obj = {"apiVersion": GROUP, "kind": "Queue", "metadata": {"name": name}}
        _taken(self.server.create(obj | {"spec": {"weight": 1, "reclaimable": True} | spec}))
        state = {"status": {"state": "Open"}}
        _taken(self.server.call("PATCH", f"{QUEUES}/{name}/status", state, content=MERGE))

    def create(self, objects: Sequence[dict[str, Any]], *, in_order: bool = False) -> None:
        """Creates pods, PodGroups and other objects, over several connections unless the order must be kept."""
        if in_order:
            for obj in objects:
                _taken(self.server.create(obj))
        else:
            self.each(objects, lambda lane, obj: _taken(lane.create(obj)))

    def each(self, items: Sequence[Any], action: Callable[[Client, Any], None]) -> None:
        """Calls action(connection, item) for all items, over several connections at a time, in no particular order."""
        shares = [items[start::LANES] for start in range(LANES)]

        def work(lane: Client, share: Sequence[Any]) -> None:
            for item in share:
                action(lane, item)

        for done in [self._pool.submit(work, *pair) for pair in zip(self._lanes, shares, strict=True)]:
            done.result()

    def delete(self, names: Sequence[str], path: str = PODS) -> None:
        """Deletes pods, or other objects at `path`, at once without a grace period; missing ones are no error."""

        def remove(lane: Client, name: str) -> None:
            answer = lane.call("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})
            if answer.status != 404:
                _taken(answer)

        self.each(names, remove)

    def set_phase(self, names: Sequence[str], phase: str) -> None:
        """Sets the phase of these pods as kubelet would: Running, Succeeded, Failed."""

        def say(lane: Client, name: str) -> None:
            answer = lane.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase}}, content=MERGE)
            if answer.status != 404:
                _taken(answer)

        self.each(names, say)

    def wait(self, what: str, ready: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits until `ready` returns true. Raises TrainyardError that names `what`."""
        end = monotonic() + seconds
        while not ready():
            if monotonic() > end:
                raise TrainyardError(
                    f"{what}: timed out after {seconds:.0f} s", hint="run the command again on a quiet machine"
                )
            sleep(0.005)

    def sees(self, names: Iterable[str], *, gone: bool = False) -> None:
        """Waits until the watch has reported all these pods, or their deletion."""
        wanted = list(names)
        self.wait("the watch on pods", lambda: all((name not in self.pods) == gone for name in wanted))

    def clear(self) -> None:
        """Removes pods, PodGroups, queues and nodes."""
        for path in (PODS, PODGROUPS, QUEUES, "/api/v1/nodes"):
            self.server.call("DELETE", path, query={"gracePeriodSeconds": "0"})
        self.wait("removing pods", lambda: not self.pods)

    def close(self) -> None:
        """Ends watching and writing."""
        self._closed = True
        self._pool.shutdown(cancel_futures=True)

    def _follow(self) -> None:
        """Records every change. The server ends a watch that falls behind; the next one shows deletions until then."""
        while not self._closed:
            before = set(self.pods)
            for event in self.server.watch(f"{PODS}?{WHOLE}"):
                kind, pod = event["type"], event["object"]
                if kind == "BOOKMARK":
                    for name in before if ALL_LISTED in pod["metadata"].get("annotations", {}) else ():
                        self._note("DELETED", {"metadata": {"name": name}})
                    continue
                before.discard(pod["metadata"]["name"])
                self._note(kind, pod)

    def _note(self, kind: str, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        before = self.pods.get(name)
        what = (before.node, before.phase, before.leaving, bool(before.refused)) if before else None
        if kind == "DELETED":
            self.pods.pop(name, None)
            self.moves += 1
        else:
            seen = before or Seen(made=monotonic(), labels=pod["metadata"].get("labels", {}))
            node = pod["spec"].get("nodeName", "")
            if node and not seen.node:
                seen.bound = monotonic()
                self.bindings += 1
            seen.node, seen.phase = node, pod["status"].get("phase", "Pending")
            seen.leaving = "deletionTimestamp" in pod["metadata"]
            said = [
                c for c in pod["status"].get("conditions", []) if c["type"] == "PodScheduled" and c["status"] == "False"
            ]
            seen.refused = said[0].get("message", "") if said else ""
            seen.unschedulable = bool(said) and said[0].get("reason") == "Unschedulable"
            self.pods[name] = seen
            self.moves += what != (seen.node, seen.phase, seen.leaving, bool(seen.refused))
        self.changes += 1


@contextmanager
def harness(crds: Sequence[dict[str, Any]] = ()) -> Iterator[Harness]:
    """Runs an API server with only these CRDs while the body runs; nothing remains afterwards."""
    from trainyard_dev.apiserver.install import install

    with running(audit=False) as server:
        install(server, list(crds))
        made = Harness(server)
        try:
            yield made
        finally:
            made.close()


def token(server: ApiServer, namespace: str, account: str, lacking: str) -> str:
    """Returns a token of an account, valid for a day. Raises TrainyardError that begins with `lacking`."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    answer = server.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", asked)
    if not answer.ok:
        raise TrainyardError(f"{lacking}: {answer.message}")
    return str(answer.body["status"]["token"])


def _taken(answer: Any) -> None:
    if not answer.ok:
        raise TrainyardError(f"the API server refused an object of the benchmark: {answer.message}")
