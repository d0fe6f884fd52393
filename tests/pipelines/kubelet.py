"""A kubelet whose pods are processes on this machine. It serves the signals that Argo's controller sends by exec."""

import json
import ssl
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from podlife import PodLife
from store import Store

from trainyard_dev.apiserver import ApiServer

NODE = "here"
WORKFLOW = "workflows.argoproj.io/workflow"
AT_ONCE = 6


class Kubelet:
    """Runs every pod of a workflow. `faults[task]` are what happens to the next pods of that task, one each."""

    def __init__(self, server: ApiServer, store: Store) -> None:
        self.server, self.store = server, store
        self.lives: dict[tuple[str, str], PodLife] = {}
        self.faults: dict[str, list[str]] = defaultdict(list)
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._folder = tempfile.TemporaryDirectory(prefix="trainyard-pods-", ignore_cleanup_errors=True)
        self._over = False

    def of(self, workflow: str) -> list[PodLife]:
        """The pods that a workflow has had so far."""
        lives = list(self.lives.values())
        return [life for life in lives if life.pod["metadata"]["labels"][WORKFLOW] == workflow]

    def watch(self) -> None:
        """Looks at all pods until the server ends it."""
        deleter = self.server.connection()
        for event in self.server.watch("/api/v1/pods"):
            pod = event["object"]
            meta = pod.get("metadata", {})
            if self._over or WORKFLOW not in meta.get("labels", {}) or event["type"] == "DELETED":
                continue
            key = meta["namespace"], meta["name"]
            if meta.get("deletionTimestamp"):
                if key in self.lives:
                    self.lives[key].kill()
                gone = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
                deleter.call("DELETE", f"/api/v1/namespaces/{key[0]}/pods/{key[1]}", gone)
            elif pod["status"].get("phase") == "Pending" and self._is_new(key, meta["uid"]):
                self._start(pod)

    def _is_new(self, key: tuple[str, str], uid: str) -> bool:
        """Whether this pod has no life yet; that of an earlier one of the same name, of a retried run, is put by."""
        earlier = self.lives.get(key)
        if earlier and earlier.pod["metadata"]["uid"] != uid:
            self.lives[key[0], f"{key[1]} {earlier.pod['metadata']['uid']}"] = self.lives.pop(key)
        return key not in self.lives

    def _start(self, pod: dict[str, Any]) -> None:
        client = self.server.connection()
        root = Path(tempfile.mkdtemp(dir=self._folder.name))
        life = PodLife(pod, client, self.store, [], self.server.kubeconfig, root)
        self.lives[life.namespace, life.name] = life
        task = _task(pod)
        if self.faults.get(task):
            life.faults.append(self.faults[task].pop(0))
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": life.name},
            "target": {"kind": "Node", "name": NODE},
        }
        client.call("POST", f"{life.path}/binding", binding)
        self._pool.submit(life.live)

    def signalled(self, path: str) -> bool:
        """Answers /exec/NAMESPACE/POD/CONTAINER?command=…/argoexec&command=kill&command=15&command=1."""
        parts = urlsplit(path)
        _, verb, namespace, name, container = parts.path.split("/")
        words = parse_qs(parts.query).get("command", [])
        life = self.lives.get((namespace, name))
        if verb != "exec" or not life or words[1:2] != ["kill"]:
            return False
        if container in life.mains:
            life.send(int(words[2]))
        return True

    def stop(self) -> None:
        """Ends all pods and removes what they left."""
        self._over = True
        for life in self.lives.values():
            life.kill()
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()


@contextmanager
def running(server: ApiServer, store: Store) -> Iterator[Kubelet]:
    """Runs one on a node of its own for the time of the body."""
    kubelet = Kubelet(server, store)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            # The controller wants a stream; it takes any other answer for a failed signal and says so in its log only.
            self.send_response(500 if kubelet.signalled(self.path) else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(server.folder / "pki/apiserver.crt", server.folder / "pki/apiserver.key")
    web.socket = tls.wrap_socket(web.socket, server_side=True)
    _node(server, web.server_port)
    threads = [threading.Thread(target=target, daemon=True) for target in (web.serve_forever, kubelet.watch)]
    for thread in threads:
        thread.start()
    try:
        yield kubelet
    finally:
        kubelet.stop()
        web.shutdown()
        web.server_close()


def _node(server: ApiServer, port: int) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    assert server.create(node).ok
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    answer = server.call(
        "PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status}, content="application/merge-patch+json"
    )
    assert answer.ok, answer.message


def _task(pod: dict[str, Any]) -> str:
    """What the step program knows as its task; of other pods the last part of the node's name."""
    for variable in pod["spec"]["containers"][-1].get("env", []):
        if variable["name"] == "TRAINYARD_STEP":
            return str(json.loads(variable["value"]).get("task", ""))
    return str(pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"].rsplit(".", 1)[-1])
