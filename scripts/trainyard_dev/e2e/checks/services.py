"""A cluster that also serves business: training fills its nodes, but displaces neither a web service nor the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from trainyard_dev.chart import parts
from trainyard_dev.e2e import latency, runs
from trainyard_dev.e2e.checks import services_pressure as pressure
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.entry import ALONE, TORCH, check
from trainyard_dev.e2e.recorder import Figures, require
from trainyard_dev.e2e.releases import changed
from trainyard_dev.report import Picture, latency_svg

SHOP = "e2e-shop"  # the namespace of the business
OWN, BESIDE, PROBE = "web-own-node", "web-beside-training", "e2e-probe"
STORE = "trainyard-minio-0"
DUE = {f"{SHOP}/{OWN}", f"{SHOP}/{BESIDE}", f"{SYSTEM}/{STORE}"}
FLOW = runs.FLOWS / "services"
POOL = "trainyard.io/pool"
PROFILE = "services"
# The store's volume is bound to a teams' node here, so the profile's placement of the platform's pods is left out.
PLACED = ("global", "nodePrep")
STORE_CPU = "300m"  # for a node with two cores
WINDOW_S, WINDOWS, SETTLING_S = 8, 4, 1
START_S, LOAD_S = 60.0, 180.0
LOST = 0.01  # share of requests
# Not a speed test: beyond these bounds a service is starved. It must stay within one of the two.
SLOWER, SLOW_S = 50, 1.0


@check("seeing.services",
       title="a web service and the store keep running while training fills its nodes; their latency is measured",
       locks={ALONE}, images=(TORCH,), long=True,
       inputs=("charts/trainyard/profiles/services.yaml", "charts/trainyard/templates", "policies",
               "scripts/trainyard_dev/e2e/flows/services"))  # fmt: skip
def beside(context: Context, figures: Figures) -> None:
    """The profile's rules on, preemption without them, services measured with and without training; off again."""
    with _shared(context) as figures["upgrade_seconds"], context.namespace(SHOP):
        figures["without_rules"] = pressure.control(context, SHOP)
        _serve(context)
        before = _running(context)
        figures["refused"] = pressure.refused(context, SHOP, _own_node(context))
        with pressure.training(context, (FLOW / "train.py").read_text(), WINDOW_S) as figures["training"]:
            waiting = pressure.wait(context)
            lines = _measured(context)
            figures["waited"] = pressure.still_waiting(context, waiting)
            figures["nodes_of_training"] = _kept(context)
            _undisturbed(context, before)
        pairs = latency.split(lines, WINDOW_S, SETTLING_S)
        figures |= _judged(pairs)
        text = f"answers of services in windows of {WINDOW_S} s by turns, training beside them idle and at work"
        panels = {name: {side: figures[name][side] for side in latency_svg.SIDES} for name in pairs}
        names = [f"p{one}_ms" for one in latency.PERCENTILES]
        figures["answers"] = Picture(text, latency_svg.draw("Services beside training", panels, names))


@contextmanager
def _shared(context: Context) -> Iterator[float]:
    """The profile's rules apply, and the control plane is a business node; yields the upgrade's seconds."""
    profile = yaml.safe_load(parts.profile_file(PROFILE).read_text())
    own = {key: profile[key] for key in PLACED} | {"minio": {"resources": {"requests": {"cpu": STORE_CPU}}}}
    node = _own_node(context)
    was = context.kubectl.get("node", node)[0]["metadata"]["labels"].get(POOL)
    context.kubectl("label", "node", node, f"{POOL}=business", "--overwrite")
    try:
        with changed(context, own) as seconds:
            yield seconds
    finally:
        context.kubectl("label", "node", node, f"{POOL}={was}" if was else f"{POOL}-", "--overwrite", check=False)


def _own_node(context: Context) -> str:
    return next(node.name for node in context.nodes if node.role == "control-plane")


def _serve(context: Context) -> None:
    """Starts the web service: a pod on a business node and one among training, both without a priority class."""
    settings = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "web"}}
    made: list[dict[str, Any]] = [settings | {"data": {"web.py": (FLOW / "web.py").read_text()}}]
    for name, node in ((OWN, _own_node(context)), (BESIDE, context.cpu_node)):
        pod = _pod(context, name, node, ["python3", "/code/web.py"], "web")
        pod["spec"]["restartPolicy"] = "Always"
        ready = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 2}
        pod["spec"]["containers"][0]["readinessProbe"] = ready
        made.append(pod)
    context.kubectl.apply(made, SHOP)
    for name in (OWN, BESIDE):
        context.wait(f"pod/{name}", "condition=Ready", START_S, SHOP)


def _pod(context: Context, name: str, node: str, command: list[str], settings: str) -> dict[str, Any]:
    """A pod on a node, with its code from a ConfigMap."""
    pod = context.pod(name, "", image=context.image("platform"), node=node)
    pod["spec"] |= {
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "volumes": [{"name": "code", "configMap": {"name": settings}}],
    }
    pod["spec"]["containers"][0] |= {
        "command": command,
        "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
        "volumeMounts": [{"name": "code", "mountPath": "/code"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return pod


def _running(context: Context) -> dict[str, tuple[str, int]]:
    """UID and restarts of each pod that must not be displaced: services, the store, and the platform's others."""
    pods = [*context.kubectl.get("pods", "-n", SHOP), *context.kubectl.get("pods", "-n", SYSTEM)]
    found = {}
    for pod in pods:
        meta, status = pod["metadata"], pod["status"]
        owner = (meta.get("ownerReferences") or [{}])[0].get("kind", "")
        if owner != "Job" and status["phase"] == "Running":
            restarts = sum(one["restartCount"] for one in status.get("containerStatuses", []))
            found[f"{meta['namespace']}/{meta['name']}"] = (meta["uid"], restarts)
    require(set(found) >= DUE, f"not running: {', '.join(sorted(DUE - set(found)))}")
    return found


def _undisturbed(context: Context, before: dict[str, tuple[str, int]]) -> None:
    """All pods are the same as before, services and store have not restarted, and no event reports an end."""
    after = _running(context)
    gone = [name for name, (uid, _) in before.items() if after.get(name, ("", 0))[0] != uid]
    require(not gone, f"evicted: {', '.join(gone)}")
    anew = [name for name in DUE if after[name] != before[name]]
    require(not anew, f"restarted: {', '.join(anew)}")
    for space in (SHOP, SYSTEM):
        told = context.kubectl.get("events", "-n", space)
        ends = [f"{one['involvedObject'].get('name')}: {one['reason']} {one.get('message', '')}" for one in told
                if one["reason"] in ("Preempted", "Evicted")
                and f"{space}/{one['involvedObject'].get('name')}" in before]  # fmt: skip
        require(not ends, "; ".join(ends))


def _measured(context: Context) -> list[str]:
    """The output of the probe, which queries the services from a business node as one of the platform's pods."""
    addresses = {name: context.kubectl.get("pod", name, "-n", SHOP)[0]["status"]["podIP"] for name in (OWN, BESIDE)}
    seconds = WINDOW_S * WINDOWS
    words = [str(seconds), f"runs/{NAMESPACE}/e2e/services"]
    words += [f"{name}=http://{address}:8080/" for name, address in addresses.items()]
    pod = _pod(context, PROBE, _own_node(context), ["python3", "/code/probe.py", *words], PROBE)
    pod["spec"]["priorityClassName"] = context.contract["platformPriorityClass"]["name"]
    keys = {"ENDPOINT": "endpoint", "ACCESS_KEY": "access-key", "SECRET_KEY": "secret-key", "REGION": "region",
            "CA": "ca.crt"}  # fmt: skip
    secret = context.contract["storage"]["s3"]["secret"]
    pod["spec"]["containers"][0]["env"] += [
        {"name": f"S3_{name}", "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": name == "CA"}}}
        for name, key in keys.items()
    ]
    settings = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": PROBE}}
    settings |= {"data": {"probe.py": (FLOW / "probe.py").read_text()}}
    try:
        context.kubectl.apply([settings], SYSTEM)
        outcome, log = context.run_pod(pod, timeout=int(seconds + LOAD_S), namespace=SYSTEM)
    finally:
        context.kubectl("delete", "configmap", PROBE, "-n", SYSTEM, "--ignore-not-found", check=False)
    require(outcome == "Succeeded", f"the probe {outcome}: {log[-600:]}")
    return log.splitlines()


def _kept(context: Context) -> dict[str, list[str]]:
    """Nodes of the team's pods, by their purpose; none is a business node."""
    nodes = {
        node["metadata"]["name"]: node["metadata"]["labels"].get(POOL, "") for node in context.kubectl.get("nodes")
    }
    found: dict[str, set[str]] = {}
    for pod in context.kubectl.get("pods", "-n", NAMESPACE, "-l", pressure.LABEL):
        if name := pod["spec"].get("nodeName"):
            found.setdefault(pod["metadata"]["labels"][pressure.LABEL], set()).add(name)
            require(nodes[name] in ("cpu", "gpu"), f"{pod['metadata']['name']} runs on {name}, of pool {nodes[name]}")
    require(set(found) == {"cpu", "gpu"}, f"training has pods on {found}")
    return {kind: sorted(names) for kind, names in found.items()}


def _judged(pairs: dict[str, latency.Pair]) -> dict[str, Any]:
    """Figures of each service. Raises CheckError if one was starved."""
    figures: dict[str, Any] = {}
    for name, pair in pairs.items():
        for side in (pair.without, pair.beside):
            require(side.lost <= LOST * side.asked, f"{name} lost {side.lost} of {side.asked} requests")
        sides = {"without": pair.without.figures(), "beside": pair.beside.figures()}
        figures[name] = sides | {"times": round(pair.times(), 2)}
        slow = pair.beside.percentile(50)
        what = (
            f"{name} takes {slow:.3f} s for half of the requests, {pair.times():.0f} times as long as without training"
        )
        require(pair.times() <= SLOWER or slow <= SLOW_S, what)
    return figures
