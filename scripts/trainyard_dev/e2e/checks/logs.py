"""Kept logs, an option of the chart: a deleted job's team, and no other, finds its log, even after outages."""

import time
from collections import Counter
from typing import Any

from trainyard import contract
from trainyard.errors import TrainyardError
from trainyard.kinds import TeamConfig
from trainyard.kube.access import Access
from trainyard.training import transfer
from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.entry import ALONE, APART, check
from trainyard_dev.e2e.recorder import require, until
from trainyard_dev.e2e.releases import RELEASE, changed
from trainyard_dev.e2e.sites import stopped_node

FOUND, STOPPED, NODE = IDS = ("seeing.logs", "seeing.logs-stopped", "seeing.logs-node")
TITLES = {
    FOUND: "a deleted job's log in the store is visible to its team, but not to a member of another team",
    STOPPED: "while a job writes, store and collector stop: no line is lost or shown twice",
    NODE: "a node stops while a job writes there: no line is lost or shown twice",
}
JOB, THROUGH, LINES = "e2e-kept", "e2e-kept-through", 400
GOES_S = 10  # the age of the last line when the pod goes
DOWN_S = 20  # how long the store and the collector are stopped
PATIENCE_S = 120
NODE_DOWN_S = 60  # how long a node is stopped: the cluster treats it as lost after 50
WRITES = 'for ((i = 0; i < {lines}; i++)); do echo "line $i of $HOSTNAME"; {pause}; done; {end}'


@check(*IDS, locks={ALONE, APART}, images=("otel-collector",), long=True,
       inputs=("charts/logs", "scripts/trainyard/training/kept", "scripts/trainyard_agent")
)  # fmt: skip
def kept(context: Context) -> None:
    """Switched on, with a job that is deleted, and jobs that write while parts are down; switched off again."""
    with changed(context, "logs.enabled=true") as seconds:
        with context.recorder.check(FOUND, TITLES[FOUND]) as figures:
            figures["seconds to switch on"] = seconds
            _found(context, figures)
        with context.recorder.check(STOPPED, TITLES[STOPPED]) as figures:
            _stopped(context, figures)
        with context.recorder.check(NODE, TITLES[NODE]) as figures:
            _node_stopped(context, figures)
    left = context.kubectl.find("daemonset", f"{RELEASE}-logs", "-n", SYSTEM)
    require(left is None, f"DaemonSet {RELEASE}-logs still exists after logs.enabled=false")


def _found(context: Context, figures: dict[str, Any]) -> None:
    _write(context, JOB, "((i % 50)) || sleep 0.1")
    last = _await_line(context, JOB, LINES - 1)
    time.sleep(GOES_S)
    _delete(context, JOB)
    gone = time.monotonic()
    lines = _read(context, JOB, LINES)
    figures |= {"lines": len(lines), "age of the last line when the pod went, s": round(gone - last, 1),
                "found after, s": round(time.monotonic() - gone, 1)}  # fmt: skip
    _complete(lines)
    code, out, said = runs.trainyard(context, "runs", "logs", JOB, team=OTHER, check=False)
    require(code != 0 and not out, f"a member of {OTHER} asked for the log and got {out[:300]!r}")
    figures["another team is told"] = said.strip().splitlines()[-1][:300]
    figures["another team's key is told"] = _refused(context)


def _stopped(context: Context, figures: dict[str, Any]) -> None:
    name, daemons = THROUGH, f"app.kubernetes.io/name=logs,app.kubernetes.io/instance={RELEASE}"
    count = 10 * (2 * DOWN_S + 20)
    _write(context, name, "sleep 0.1", count)
    _await_line(context, name, 50)
    store = f"statefulset/{RELEASE}-minio"
    with context.without(store):
        time.sleep(DOWN_S)
        context.kubectl("delete", "pod", "-n", SYSTEM, "-l", daemons, "--force", "--grace-period=0", "--wait=false")
    for workload in (store, f"daemonset/{RELEASE}-logs"):
        context.rolled_out(workload, PATIENCE_S)
    _await_line(context, name, count - 1)
    time.sleep(GOES_S)
    _delete(context, name)
    lines = _read(context, name, count)
    numbers = [int(line.split()[1]) for line in lines]
    figures |= {"lines": count, "store stopped, s": DOWN_S, "lost": count - len(set(numbers)),
                "shown twice": len(numbers) - len(set(numbers))}  # fmt: skip
    _complete(lines, count)


def _node_stopped(context: Context, figures: dict[str, Any]) -> None:
    """Expects the lines in the node's own files: the last line before the node stops can't be known beforehand."""
    name, node = "e2e-kept-node", context.gpu_nodes[-1]
    count = 200
    _write(context, name, "sleep 0.1", count, node=node)
    _await_line(context, name, 50)
    lost_to_cluster, seconds = stopped_node.stop(context, node, NODE_DOWN_S)
    figures |= {"node stopped, s": NODE_DOWN_S, "the cluster took it for lost": lost_to_cluster,
                "all on again after, s": round(seconds, 1)}  # fmt: skip
    context.wait(f"job/{name}", "condition=complete", PATIENCE_S)
    time.sleep(GOES_S)
    written = stopped_node.log(context, node, NAMESPACE, name)
    require(len(written) > count, f"{len(written)} lines were written: the job did not continue after the outage")
    _delete(context, name)
    # The kubelet may restart the container, or the Job create another pod: then each line begins with its pod's name.
    lines = [line[line.find("line ") :] for line in _read(context, name, len(written))]
    lost, doubled = Counter(written) - Counter(lines), Counter(lines) - Counter(written)
    pods = sorted({line.rpartition(" ")[2] for line in written})
    figures |= {"pods": len(pods), "lines": len(written), "lost": lost.total(), "shown twice": doubled.total()}
    require(not lost, f"{lost.total()} of {len(written)} lines are lost, such as {next(iter(lost), '')!r}")
    require(not doubled, f"{doubled.total()} lines are duplicated, such as {next(iter(doubled), '')!r}")
    for pod in pods:
        own = [[line for line in some if line.endswith(f" {pod}")] for some in (written, lines)]
        require(own[0] == own[1], f"lines of {pod} are out of order")


def _write(context: Context, name: str, pause: str, lines: int = LINES, *, node: str = "") -> None:
    """A Job of the team whose pod writes lines and stays; on a GPU node it ends, and resumes where it was stopped."""
    script = WRITES.format(lines=lines, pause=pause, end="exit 0" if node else "sleep 3600")
    place: dict[str, Any] = {"node": node, "queue": NAMESPACE} if node else {}
    pod = context.pod(name, script, **place)
    about = {"annotations": pod["metadata"].get("annotations", {})}
    if node:
        pod["spec"]["restartPolicy"] = "OnFailure"
    spec = {"backoffLimit": 6 if node else 0, "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 600,
            "template": {"metadata": about, "spec": pod["spec"]}}  # fmt: skip
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    context.kubectl.apply([job], NAMESPACE)


def _await_line(context: Context, name: str, number: int) -> float:
    """When a line was seen on the pod's node, by the monotonic clock."""

    def written() -> bool:
        said = context.kubectl("logs", "-n", NAMESPACE, f"job/{name}", "--tail=1", check=False).stdout.split()
        return said[:1] == ["line"] and int(said[1]) >= number

    until(written, PATIENCE_S, f"the pod of {name} has not written line {number}", 0.5)
    return time.monotonic()


def _delete(context: Context, name: str) -> None:
    """Deletes the job and its pod, without a grace period."""
    context.kubectl("delete", "job", name, "-n", NAMESPACE, "--cascade=foreground", "--timeout=60s", timeout=70)
    pods = context.kubectl.get("pods", "-n", NAMESPACE, "-l", f"batch.kubernetes.io/job-name={name}")
    require(not pods, f"pods of {name} still exist")


def _read(context: Context, name: str, due: int) -> list[str]:
    """The output of `trainyard runs logs` for a deleted job, once it is complete or the time is over."""
    end, lines, said = time.monotonic() + PATIENCE_S, list[str](), ""
    while time.monotonic() < end and len(lines) < due:
        code, out, said = runs.trainyard(context, "runs", "logs", name, check=False)
        lines = out.splitlines() if not code else []
        time.sleep(2)
    require(lines != [], f"`runs logs {name}` finds nothing: {said[-300:]}; {_state(context)}")
    return lines


def _complete(lines: list[str], due: int = LINES) -> None:
    numbers = [int(line.split()[1]) for line in lines]
    lost = sorted(set(range(due)) - set(numbers))
    require(not lost, f"{len(lost)} of {due} lines are lost, the first {lost[:5]}")
    require(numbers == list(range(due)), f"{len(numbers)} lines instead of {due}: some are duplicated or out of order")


def _refused(context: Context) -> str:
    """The store's refusal when a pod of another team requests this team's logs with that team's key."""
    kube = Access(kubeconfig=str(context.kubectl.kubeconfig or ""), namespace=OTHER).connect()
    team = TeamConfig.of(contract.live(kube), OTHER)
    bucket = contract.live(kube).log_bucket
    with transfer.open_store(kube, team) as store:
        try:
            found = store.folders(f"{bucket}/{NAMESPACE}/")
        except TrainyardError as error:
            require("AccessDenied" in str(error), f"the store returned {error}")
            return str(error)[:300]
    require(False, f"a pod of team {OTHER} lists {len(found)} of {NAMESPACE}'s pods")
    return ""


def _state(context: Context) -> str:
    log = context.kubectl("logs", "-n", SYSTEM, f"daemonset/{RELEASE}-logs", "--tail=5", check=False)
    return f"a collector says: {(log.stdout or log.stderr)[-900:]}"
