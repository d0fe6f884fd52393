"""Models in service, an option of the chart: a pipeline's model answers, versions change under load, keys hold.

Not in the catalog yet: it has not run on a cluster.
"""

from __future__ import annotations

import json
import time
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.serving import rollout
from trainyard_dev.chart import package as chart
from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import CONTAINER_SECURITY, NAMESPACE, OTHER, Context
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.releases import put, read_contract

ANSWERS, ROLLOUT, CANARY, KEYS, GATE, STRANGERS, SCALE = IDS = (
    "serving.answers", "serving.rollout", "serving.canary", "serving.keys", "serving.gate",
    "serving.strangers", "serving.scale",
)  # fmt: skip
TITLES = {
    ANSWERS: "a pipeline registers a model, a member serves it, and a pod of the team gets predictions",
    ROLLOUT: "a second version and the way back under load: no request fails; without readiness some do",
    CANARY: "a canary answers its share of the requests, and goes",
    KEYS: "from outside only with a key: none, a wrong one and a revoked one are refused",
    GATE: "a pipeline serves what is as good; what does not get ready goes back by itself",
    SCALE: "one pod becomes four under load, by CPU, and one again without",
    STRANGERS: "pods of another team reach no server, and its members change none",
}
MODEL, LABEL = "digits", f"{rollout.LABEL}=digits"
PIPELINE = runs.PIPELINES / "serve.py"
SMALL = ("-p", "samples=2000", "-p", "nodes=1", "-p", "gpus=0")
IMAGES = ("server-torch", "trainer-torch", "pipeline")
ROW = json.dumps({"instances": [[0.0] * 784]})
REQUESTS, RATE = 20000, 200  # of one rollout: requests, and how many a second
# Sends requests at a rate from some connections, and prints what came back as one object.
LOAD = r"""
import http.client, json, sys, threading, time
host, count, rate, key = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
body, seen, lock, began = ROW, {}, threading.Lock(), time.monotonic()
numbers = iter(range(count))
def ask(connection):
    headers = {"Content-Type": "application/json", "Connection": "keep-alive"}
    if key: headers["Authorization"] = "Bearer " + key
    connection.request("POST", "/predict", body, headers)
    answer = connection.getresponse(); answer.read()
    return str(answer.status), answer.getheader("X-Model-Version") or "?"
def work():
    connection = http.client.HTTPConnection(host, timeout=10)
    while True:
        with lock:
            number = next(numbers, None)
        if number is None: return
        time.sleep(max(0, began + number / rate - time.monotonic()))
        try:
            said = ask(connection)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # A kept connection that the server has closed meanwhile: every client asks once more on a new one.
            connection.close()
            try: said = ask(connection)
            except Exception as error: said = (type(error).__name__, "?"); connection.close()
        except Exception as error: said = (type(error).__name__, "?"); connection.close()
        with lock: seen[said] = seen.get(said, 0) + 1
threads = [threading.Thread(target=work) for _ in range(16)]
[one.start() for one in threads]; [one.join() for one in threads]
took = time.monotonic() - began
print(json.dumps({"seconds": round(took, 1), "seen": [[*said, number] for said, number in seen.items()]}))
"""


def served(context: Context) -> None:
    """On, all checks in turn on one model, off again; nothing of it is left."""
    package = chart.package()
    try:
        put(context, "upgrade", package, change="serving.enabled=true")
        context.contract = read_contract(context.kubectl)
        for check_id, work in ((ANSWERS, _answers), (ROLLOUT, _rollout), (CANARY, _canary), (KEYS, _keys),
                               (STRANGERS, _strangers), (SCALE, _scale), (GATE, _gate)):  # fmt: skip
            with context.recorder.check(check_id, TITLES[check_id]) as figures:
                work(context, figures)
    finally:
        runs.trainyard(context, "serve", "stop", MODEL, check=False)
        put(context, "upgrade", package, change="serving.enabled=false")
        context.contract = read_contract(context.kubectl)
    left = [one["metadata"]["name"] for one in context.kubectl.get("networkpolicies", "-n", NAMESPACE)]
    require(not [name for name in left if name.startswith("serving-")], f"after serving.enabled=false there are {left}")


def _answers(context: Context, figures: dict[str, Any]) -> None:
    run = runs.succeed(context, PIPELINE, *SMALL, "-p", "minimum=2", timeout=600)  # registered, and stopped by the gate
    figures["first version"] = first = run.output("register-model", "version")
    _, out, _ = runs.trainyard(context, "serve", f"{MODEL}@{first}", "--replicas", "2", "--cpu", "200m", timeout=400)
    require(out.strip() == f"http://model-{MODEL}.{NAMESPACE}.svc", f"`serve` printed {out!r}")
    seen = _load(context, 50, 50)
    require(_failed(seen) == 0, f"of 50 requests failed {_failed(seen)}: {seen}")
    require(set(_versions(seen)) == {first}, f"answers came from {_versions(seen)}, in service is {first}")
    second = runs.succeed(context, PIPELINE, *SMALL, "-p", "epochs=4", "-p", "minimum=2", timeout=600)
    figures["second version"] = second.output("register-model", "version")
    runs.forget(context, run, second)


def _rollout(context: Context, figures: dict[str, Any]) -> None:
    first, second = _registered(context)
    with _Beside(context, REQUESTS, RATE) as load:
        time.sleep(10)
        runs.trainyard(context, "serve", f"{MODEL}@{second}", timeout=400)
        runs.trainyard(context, "serve", "rollback", MODEL, timeout=400)
        seen = load.ended(REQUESTS / RATE + 300)
    figures |= {"requests": REQUESTS, "a second": RATE, "failed": _failed(seen), "by version": _versions(seen)}
    require(_failed(seen) == 0, f"of {REQUESTS} requests failed {_failed(seen)}: {seen}")
    require(set(_versions(seen)) == {first, second}, f"both versions should have answered: {_versions(seen)}")
    # The same without readiness, which only the platform may make: it has to fail, or the load shows nothing.
    probes = [{"op": "remove", "path": f"/spec/template/spec/containers/0/{name}"} for name in
              ("readinessProbe", "startupProbe", "lifecycle")]  # fmt: skip
    name = f"deployment/model-{MODEL}"
    context.kubectl("patch", name, "-n", NAMESPACE, "--type=json", "-p", json.dumps(probes))
    context.kubectl("rollout", "status", name, "-n", NAMESPACE, "--timeout=300s", timeout=320)
    with _Beside(context, 4000, RATE) as load:
        context.kubectl("rollout", "restart", name, "-n", NAMESPACE)
        seen = load.ended(300)
    figures["failed without readiness, of 4000"] = _failed(seen)
    require(_failed(seen) > 0, "without readiness no request failed either: the load is too small to tell")
    runs.trainyard(context, "serve", f"{MODEL}@{first}", timeout=400)


def _canary(context: Context, figures: dict[str, Any]) -> None:
    first, second = _registered(context)
    runs.trainyard(context, "serve", f"{MODEL}@{second}", "--canary-share", "25", "--replicas", "4", timeout=400)
    seen = _versions(_load(context, 2000, 200))
    figures["share of the canary, %"] = share = round(100 * seen.get(second, 0) / 2000)
    require(10 <= share <= 45, f"the canary has one of four replicas and answered {share} % of 2000 requests")
    runs.trainyard(context, "serve", "rollback", MODEL, timeout=400)
    require(set(_versions(_load(context, 100, 100))) == {first}, "the canary answers after it was taken back")


def _keys(context: Context, figures: dict[str, Any]) -> None:
    _, out, _ = runs.trainyard(context, "serve", MODEL, "--from", "outside", "--key", timeout=400)
    key = out.strip()
    found = context.kubectl.find("service", f"model-{MODEL}-outside", "-n", NAMESPACE)
    require(found, "there is no Service to the outside")
    port = found["spec"]["ports"][0]["nodePort"]  # type: ignore[index]
    asked = {"no key": "", "a wrong key": "ty-wrong", "the key": key}
    figures |= {name: _status(context, port, value) for name, value in asked.items()}
    require([figures[name] for name in asked] == ["401", "401", "200"], f"asked from a node: {figures}")
    runs.trainyard(context, "serve", MODEL, "--key", "--revoke-keys", timeout=400)
    began = time.monotonic()
    while _status(context, port, key) != "401":
        require(time.monotonic() - began < 150, "a revoked key is still taken after 150 s")
        time.sleep(3)
    figures["revoked after, s"] = round(time.monotonic() - began)
    runs.trainyard(context, "serve", "stop", MODEL, timeout=120)
    runs.trainyard(context, "serve", MODEL, "--replicas", "2", "--cpu", "200m", timeout=400)


def _strangers(context: Context, figures: dict[str, Any]) -> None:
    address = f"model-{MODEL}.{NAMESPACE}.svc"
    script = f"sleep 3; timeout 4 bash -c '</dev/tcp/{address}/80' 2>/dev/null && echo open || echo closed"
    pod = context.pod("serving-far", script, image=context.image("base"))
    figures["from another team"] = context.run_pod(pod, namespace=OTHER)[1]
    figures["from the team"] = context.run_pod(context.pod("serving-near", script, image=context.image("base")))[1]
    require(figures["from another team"].endswith("closed"), f"another team's pod reaches the server: {figures}")
    require(figures["from the team"].endswith("open"), f"the team's own pod does not reach it: {figures}")
    for words in (("stop", MODEL), ("rollback", MODEL)):
        argv = ["serve", *words, "--as", "bob", "--as-group", f"{OTHER}-members"]
        code, _, said = runs.trainyard(context, *argv, check=False)
        require(code != 0, f"a member of {OTHER} did `serve {words[0]}`: {said}")


def _scale(context: Context, figures: dict[str, Any]) -> None:
    """metrics-server is on for its time: the autoscaler asks it."""
    package = chart.package()
    put(context, "upgrade", package, change="metrics-server.enabled=true")
    try:
        words = ("--scale-by", "cpu", "--min", "1", "--max", "4", "--cpu", "50m")
        runs.trainyard(context, "serve", MODEL, *words, timeout=400)
        began = time.monotonic()
        with _Beside(context, 100000, 400):
            _await_replicas(context, 4, 300)
            figures["to four, s"] = round(time.monotonic() - began)
        began = time.monotonic()
        _await_replicas(context, 1, 400)
        figures["back to one, s"] = round(time.monotonic() - began)
    finally:
        put(context, "upgrade", package, change="metrics-server.enabled=false")
    runs.trainyard(context, "serve", MODEL, "--scale-by", "none", "--replicas", "2", "--cpu", "200m", timeout=400)


def _await_replicas(context: Context, count: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        found = context.kubectl.find("deployment", f"model-{MODEL}", "-n", NAMESPACE) or {}
        ready = int((found.get("status") or {}).get("readyReplicas", 0))
        if ready == count and found["spec"]["replicas"] == count:
            return
        require(time.monotonic() < end, f"{ready} replicas are ready after {seconds:.0f} s, due are {count}")
        time.sleep(2)


def _gate(context: Context, figures: dict[str, Any]) -> None:
    run = runs.succeed(context, PIPELINE, *SMALL, "-p", "epochs=6", "-p", "gain=-1", timeout=900)
    figures["served by the pipeline"] = version = run.output("register-model", "version")
    require(_now(context) == version, f"in service is {_now(context)}, the pipeline registered {version}")
    worse = runs.succeed(context, PIPELINE, *SMALL, "-p", "epochs=1", "-p", "gain=1", timeout=900)
    require(_now(context) == version, "a version that the gate held back is in service")
    require("serve-model" not in worse.ran, f"the run served a version past the gate: {worse.ran}")
    runs.forget(context, run, worse)


class _Beside:
    """A pod that sends requests while the check does something else."""

    def __init__(self, context: Context, count: int, rate: float) -> None:
        self.context, self.name = context, "serving-load"
        self.pod = _pod(context, self.name, count, rate)

    def __enter__(self) -> _Beside:
        self.context.kubectl.apply([self.pod], NAMESPACE)
        self.context.kubectl("wait", "-n", NAMESPACE, "--for=condition=Ready", f"pod/{self.name}", "--timeout=120s",
                             timeout=130)  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self.context.kubectl("delete", "pod", self.name, "-n", NAMESPACE, "--wait=true", check=False)

    def ended(self, seconds: float) -> dict[str, Any]:
        path = "jsonpath={.status.phase}=Succeeded"
        self.context.kubectl("wait", "-n", NAMESPACE, f"--for={path}", f"pod/{self.name}", f"--timeout={seconds:.0f}s",
                             timeout=seconds + 10)  # fmt: skip
        found: dict[str, Any] = json.loads(self.context.kubectl("logs", self.name, "-n", NAMESPACE).stdout)
        return found


def _pod(context: Context, name: str, count: int, rate: float, key: str = "") -> dict[str, Any]:
    pod = context.pod(name, "true", image=context.image("trainer-torch"))
    program = LOAD.replace("ROW", repr(ROW), 1)
    words = ["python3", "-c", program, f"model-{MODEL}.{NAMESPACE}.svc", str(count), str(rate), key]
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    pod["spec"]["containers"][0] |= {"command": words, "resources": resources, "securityContext": CONTAINER_SECURITY}
    return pod


def _load(context: Context, count: int, rate: float, key: str = "") -> dict[str, Any]:
    """What a pod of the team was answered."""
    phase, log = context.run_pod(_pod(context, "serving-ask", count, rate, key), timeout=int(count / rate) + 120)
    if phase != "Succeeded":
        raise TrainyardError(f"the pod that asks ended as {phase}: {log[-300:]}")
    found: dict[str, Any] = json.loads(log.splitlines()[-1])
    return found


def _failed(seen: dict[str, Any]) -> int:
    return sum(number for status, _, number in seen["seen"] if status != "200")


def _versions(seen: dict[str, Any]) -> dict[str, int]:
    """How many requests each version answered."""
    found: dict[str, int] = {}
    for status, version, number in seen["seen"]:
        if status == "200":
            found[version] = found.get(version, 0) + number
    return found


def _registered(context: Context) -> tuple[str, str]:
    """The first two versions, oldest first."""
    rows = json.loads(runs.trainyard(context, "models", "list", MODEL, "-o", "json", timeout=180)[1])
    require(len(rows) >= 2, f"two versions should be registered, there are {len(rows)}")
    return rows[-1]["version"], rows[-2]["version"]


def _now(context: Context) -> str:
    rows = json.loads(runs.trainyard(context, "serve", "list", "-o", "json")[1])
    return next((row["version"] for row in rows if row["model"] == MODEL and row["track"] == "stable"), "")


def _status(context: Context, port: int, key: str) -> str:
    """The HTTP status of a prediction, asked by a node at its own port."""
    header = f"-H 'Authorization: Bearer {key}'" if key else ""
    call = f"curl -s -o /dev/null -w '%{{http_code}}' -d '{ROW}' {header} http://127.0.0.1:{port}/predict"
    return context.engine.exec(context.cpu_node, ["bash", "-c", call]).stdout.strip()
