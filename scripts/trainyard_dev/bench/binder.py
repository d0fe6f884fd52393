"""The trivial binder: gives each pod the next node in turn, without any checks. Every scheduler is compared with it.

A separate program, so that it shares no interpreter with the harness. Arguments: kubeconfig, number of connections.
"""

import itertools
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainyard.paths import ROOT
from trainyard_dev.apiserver import ApiServer
from trainyard_dev.apiserver.processes import Server
from trainyard_dev.bench.harness import PODS, Harness

LANES = 8
UNBOUND = f"{PODS}?fieldSelector=spec.nodeName="


class Binder:
    """The binder as a scheduler of `harness`."""

    def __init__(self, harness: Harness) -> None:
        folder = harness.server.folder
        self.process = Server(
            [sys.executable, "-c", f"from {__name__} import main; main()", harness.server.kubeconfig, str(LANES)],
            folder / "binder.log",
            env={"PYTHONPATH": str(ROOT / "scripts")},
        )
        self.process.wait(lambda: "ready" in (folder / "binder.log").read_text(), 30.0)

    def settle(self, harness: Harness) -> None:
        """Waits until every pod is bound, which is all that the binder does."""
        harness.wait("binding", lambda: all(pod.node for pod in list(harness.pods.values())), 600.0)


@contextmanager
def binder(harness: Harness) -> Iterator[Binder]:
    """Runs the binder on the harness while the body runs."""
    running = Binder(harness)
    try:
        yield running
    finally:
        running.process.stop()


def main() -> None:
    """Binds pods until it is ended."""
    kubeconfig = Path(sys.argv[1])
    server = ApiServer(kubeconfig.parent, kubeconfig)
    nodes = [node["metadata"]["name"] for node in server.call("GET", "/api/v1/nodes").body["items"]]
    waiting: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    for _ in range(int(sys.argv[2])):
        threading.Thread(target=_bind, args=(server, waiting), daemon=True).start()
    print("ready", flush=True)
    turn = itertools.cycle(nodes)
    for event in server.watch(UNBOUND):
        if event["type"] == "ADDED":
            waiting.put((event["object"]["metadata"]["name"], next(turn)))


def _bind(server: ApiServer, waiting: queue.SimpleQueue[tuple[str, str]]) -> None:
    lane = server.connection()
    while True:
        name, node = waiting.get()
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        answer = lane.call("POST", f"{PODS}/{name}/binding", binding | {"target": target})
        if not answer.ok:
            print(f"{name}: {answer.message}", flush=True)
