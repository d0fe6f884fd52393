"""Requests to a model in service: from a pod of the team at a given rate, and from outside the cluster's nodes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.e2e.context import CONTAINER_SECURITY, NAMESPACE, Context

PREDICT = {"instances": [[0.0] * 784]}
MARGIN_S = 300.0  # more than the rate requires, for a busy machine
# Sends requests at a rate over some connections, and prints the results as one object.
LOAD = r"""
import http.client, json, sys, threading, time
host, count, rate, body, how = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5]
seen, late, wrong, lock, again = {}, [], [], threading.Lock(), [0]
numbers = iter(range(count))
headers = {"Content-Type": "application/json", "Connection": "keep-alive"}
def ask(connection):
    connection.request("POST", "/predict", body, headers)
    answer = connection.getresponse(); said = answer.read().decode()
    if how == "fresh": connection.close()
    if how == "print": print(said, flush=True)
    return str(answer.status), answer.getheader("X-Model-Version") or "?"
def work():
    connection = http.client.HTTPConnection(host, timeout=30)
    while True:
        with lock:
            number = next(numbers, None)
        if number is None: return
        time.sleep(max(0, began + number / rate - time.monotonic()))
        sent = time.monotonic()
        try:
            said = ask(connection)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # A kept connection that the server has closed meanwhile: every client asks once more on a new one.
            connection.close(); again[0] += 1
            try: said = ask(connection)
            except Exception as error: said = (type(error).__name__, "?"); connection.close()
        except Exception as error: said = (type(error).__name__, "?"); connection.close()
        with lock:
            seen[said] = seen.get(said, 0) + 1; late.append(time.monotonic() - sent)
            if said[0] != "200": wrong.append(round(sent - began, 1))
born = time.monotonic()
while True:  # a new pod has no network before its node knows which policies it is under
    try: ask(http.client.HTTPConnection(host, timeout=5)); break
    except OSError:
        if time.monotonic() - born > 60: raise
        time.sleep(0.2)
began = time.monotonic()
threads = [threading.Thread(target=work) for _ in range(THREADS)]
[one.start() for one in threads]; [one.join() for one in threads]
took = time.monotonic() - began; late.sort()
print(json.dumps({"seconds": round(took, 1), "again": again[0], "p50_ms": round(1000 * late[len(late) // 2], 1),
    "p99_ms": round(1000 * late[len(late) * 99 // 100], 1),
    "failed at s": wrong[:20], "seen": [[*said, number] for said, number in seen.items()]}))
"""
THREADS = 32


class LoadPod:
    """A pod that sends requests to a model while the check does other work."""

    def __init__(self, context: Context, model: str, count: int, rate: float) -> None:
        self.context, self.name, self.seconds = context, "serving-load", count / rate
        self.pod = _pod(context, self.name, model, count, rate)

    def __enter__(self) -> LoadPod:
        self.context.kubectl.apply([self.pod], NAMESPACE)
        self.context.wait(f"pod/{self.name}", "condition=Ready", 120)
        return self

    def __exit__(self, *_: object) -> None:
        self.context.kubectl("delete", "pod", self.name, "-n", NAMESPACE, "--now", "--wait=true", check=False)

    def ended(self) -> dict[str, Any]:
        """The results, once the last request has its answer."""
        self.context.wait(f"pod/{self.name}", "jsonpath={.status.phase}=Succeeded", self.seconds + MARGIN_S)
        found: dict[str, Any] = json.loads(self.context.kubectl("logs", self.name, "-n", NAMESPACE).stdout)
        return found


def load(context: Context, model: str, count: int, rate: float, *, fresh: bool = False) -> dict[str, Any]:
    """The answers to requests from a pod of the team; `fresh`: each request uses a new connection.

    Raises:
        TrainyardError: the pod fails.
    """
    pod = _pod(context, "serving-ask", model, count, rate, "fresh" if fresh else "")
    phase, log = context.run_pod(pod, timeout=int(count / rate + MARGIN_S))
    if phase != "Succeeded":
        raise TrainyardError(f"the pod that asks ended as {phase}: {log[-300:]}")
    found: dict[str, Any] = json.loads(log.splitlines()[-1])
    return found


def once(context: Context, model: str, body: Any) -> Any:
    """The first prediction that a pod of the team receives. Raises TrainyardError."""
    pod = _pod(context, "serving-ask", model, 1, 1, "print", body)
    phase, log = context.run_pod(pod, timeout=int(MARGIN_S))
    if phase != "Succeeded":
        raise TrainyardError(f"{model} answered a pod of the team: {log[-300:]}")
    return json.loads(log.splitlines()[0])["predictions"][0]


def failed(seen: dict[str, Any]) -> int:
    """How many requests got an answer other than 200, or none."""
    return sum(number for status, _, number in seen["seen"] if status != "200")


def versions(seen: dict[str, Any]) -> dict[str, int]:
    """How many requests each version answered."""
    found: dict[str, int] = {}
    for status, version, number in seen["seen"]:
        if status == "200":
            found[version] = found.get(version, 0) + number
    return found


def node(context: Context) -> str:
    """The address of a node, as reached from this machine, which is no node."""
    told = context.engine(
        "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}", context.cpu_node
    )
    return str(told.stdout.split()[0])


def post(url: str, body: Any = PREDICT, key: str = "") -> tuple[int, Any]:
    """Status and answer of a request from this machine; 0 and the reason without an answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")
    except urllib.error.URLError as error:  # a node may learn of a new port a moment later
        return 0, str(error.reason)


def _pod(
    context: Context, name: str, model: str, count: int, rate: float, how: str = "", body: Any = PREDICT
) -> dict[str, Any]:
    pod = context.pod(name, "true", image=context.image("trainer-torch"))
    host = f"model-{model}.{NAMESPACE}.svc"
    program = LOAD.replace("THREADS", str(THREADS))
    words = ["python3", "-c", program, host, str(count), str(rate), json.dumps(body), how]
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    pod["spec"]["containers"][0] |= {"command": words, "resources": resources, "securityContext": CONTAINER_SECURITY}
    return pod
