"""A node that stops as in a power failure, and restarts: nothing on it runs meanwhile, its disk stays."""

import time

from trainyard.names import GPU
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import patience, require

PATIENCE_S = 180.0
# Nothing gets a grace period: kubelet and the runtime first, so that they restart nothing, then all processes in pods.
STOP = """
systemctl kill --signal=KILL kubelet containerd
systemctl stop kubelet containerd
for try in 1 2 3; do
  pkill -KILL containerd-shim
  for one in /proc/[0-9]*; do grep -qs kubepods "$one/cgroup" && kill -KILL "${one#/proc/}"; done
  sleep 0.3
done
for one in /proc/[0-9]*; do
  grep -qs kubepods "$one/cgroup" && ! grep -qs '^State:.Z' "$one/status" && echo "$one"
done
true
"""
START = "systemctl reset-failed kubelet containerd; systemctl start containerd kubelet"


def stop(context: Context, node: str, seconds: float) -> tuple[bool, float]:
    """Stops the node for that time, and waits until everything on it runs again.

    Returns:
        Whether the cluster treated it as lost meanwhile, and the seconds from its start until everything runs.
    """
    pods, lost = _pods(context, node), False
    end = time.monotonic() + seconds
    left = context.engine.exec(node, ["bash", "-c", STOP], timeout=60).stdout.strip()
    try:
        require(not left, f"not everything on {node} stopped: {left}")
        while time.monotonic() < end:
            lost = lost or not _ready(context, node)
            time.sleep(1)
    finally:
        context.engine.exec(node, ["bash", "-c", START], timeout=60)
    began = time.monotonic()
    _await_all(context, node, pods)
    return lost, time.monotonic() - began


def log(context: Context, node: str, namespace: str, run: str) -> list[str]:
    """Complete lines that a run's pods wrote, oldest first, from the runtime's own files on the node."""
    files = f"/var/log/pods/{namespace}_{run}-*/*/*.log"
    text = context.engine.exec(node, ["bash", "-c", f"cat {files}"], timeout=60).stdout
    found = sorted(line.split(" ", 3) for line in text.splitlines() if line.count(" ") >= 3)
    return [words[3] for words in found]


def _pods(context: Context, node: str) -> dict[str, int]:
    """DaemonSets' pods on the node: name -> how often their containers had been started."""
    found = context.kubectl.get("pods", "-A", f"--field-selector=spec.nodeName={node}")
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": sum(
            one["restartCount"] for one in pod["status"].get("containerStatuses") or [] if one["ready"]
        )
        for pod in found
        if any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", []))
        and all(one["ready"] for one in pod["status"].get("containerStatuses") or [{"ready": False}])
    }


def _ready(context: Context, node: str) -> bool:
    found = context.kubectl.find("node", node) or {"status": {"conditions": []}}
    return any(one["type"] == "Ready" and one["status"] == "True" for one in found["status"]["conditions"])


def _await_all(context: Context, node: str, before: dict[str, int]) -> None:
    """Waits until the node is ready, offers its GPUs, and each DaemonSet's pod has been restarted."""
    wait, due = patience(PATIENCE_S), context.gpus.get(node, 0)
    while True:
        now = _pods(context, node)
        missing = sorted(name for name, count in before.items() if now.get(name, -1) <= count)
        offered = int((context.kubectl.find("node", node) or {})["status"]["allocatable"].get(GPU, 0))
        if not missing and offered == due and _ready(context, node):
            return
        what = f"{node} offers {offered} of {due} GPUs, and still stopped are {', '.join(missing) or 'none'}"
        wait(f"after {PATIENCE_S:.0f} s {what}")
