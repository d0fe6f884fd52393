"""A notebook's life: with a GPU in its team's queue, displaced by jobs, ended when idle, restarted with its files."""

import time
from typing import Any

from trainyard.kinds.pods import JOB_LABEL
from trainyard.names import GPU
from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import NAMESPACE
from trainyard_dev.e2e.jobs import GROUP_API
from trainyard_dev.e2e.recorder import require, until
from trainyard_dev.e2e.sites.notebook_page import NotebookWindow
from trainyard_dev.e2e.sites.notebooks import DEADLINE_S, HUB, NOTEBOOK, SPACE, Site

GPU_TITLE = "a notebook with a GPU waits in its team's queue, has a deadline, and is evicted when a job needs the GPU"
UPGRADED = "an upgrade restarts the hub; notebook, kernel and session continue"
CULLED = "an idle notebook is stopped, and starts again with its files"
IDLE_S, LOOK_S = 60, 20
REPORTED_S = 330.0  # a notebook reports its activity to the hub every five minutes
GONE_S = 180.0


def gpu(there: Site, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """The pod's scheduling by Volcano, and a job that displaces it. Raises CheckError."""
    context = there.context
    kubectl = context.kubectl
    desk.stop()
    figures["open after s"] = desk.start("gpu")
    [pod] = kubectl.get("pod", NOTEBOOK, "-n", NAMESPACE)
    spec, notes = pod["spec"], pod["metadata"]["annotations"]
    found = {
        "scheduler": spec["schedulerName"],
        "queue": notes.get("scheduling.volcano.sh/queue-name"),
        "preemptable": notes.get("volcano.sh/preemptable"),
        "class": spec.get("priorityClassName"),
        "deadline": spec.get("activeDeadlineSeconds"),
        "gpus": spec["containers"][0]["resources"]["limits"].get(GPU),
    }
    due = {"scheduler": "volcano", "queue": NAMESPACE, "preemptable": "true", "class": "training-low",
           "deadline": DEADLINE_S, "gpus": "1"}  # fmt: skip
    require(found == due, f"the notebook has {found}, not {due}")
    require(spec["nodeName"] in context.gpu_nodes, f"the notebook runs on {spec['nodeName']}, which has no GPU")
    group = context.kube.find(
        context.kube.path(GROUP_API, "podgroups", f"podgroup-{pod['metadata']['uid']}", namespace=NAMESPACE)
    )
    require(group and group["spec"]["queue"] == NAMESPACE, f"its group in the queue is {group}")
    # A job whose pod fills a node displaces the notebook once another pod has the other node: Volcano displaces only
    # for gangs that fit completely into what is freed.
    holder = _train(there, "holder", "300")
    until(lambda: _running(there, holder), GONE_S, f"{holder} does not run on the free node")
    began = time.monotonic()
    first = _train(there, "first", "5")
    until(lambda: not kubectl.find("pod", NOTEBOOK, "-n", NAMESPACE), GONE_S, "the job displaces no notebook")
    figures["displaced after s"] = round(time.monotonic() - began, 1)
    until(lambda: _running(there, first), GONE_S, f"{first} does not run in the notebook's place")
    for name in (holder, first):
        runs.trainyard(context, "runs", "stop", name)


def _train(there: Site, name: str, seconds: str) -> str:
    """A job of one pod with as many GPUs as a node has, of a class above the notebook's; returns its name."""
    context = there.context
    _, out, _ = runs.trainyard(
        context, "train", "--dir", there.code(), "--name", name, "--framework", "pytorch", "--nodes", "1",
        "--gpus", str(min(context.gpus.values())), "--processes", "1", "--cpu", "50m", "--memory", "128Mi",
        "--shared-memory", "16Mi", "--priority", "training-normal", "--image", context.image("pipeline"),
        "--deadline", "10m", "--no-fetch", "--detach", "--", "sleep", seconds,
    )  # fmt: skip
    return out.strip()


def _running(there: Site, job: str) -> bool:
    pods = there.context.kubectl.get("pods", "-n", NAMESPACE, "-l", f"{JOB_LABEL}={job}")
    return any(pod["status"]["phase"] in ("Running", "Succeeded") for pod in pods)


def upgraded(there: Site, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """Changes the hub's values while a kernel has state. Raises CheckError."""
    desk.at_work()
    desk.says("kept = 6 * 7; print('kept', kept)", "kept 42")
    pod, hub = there.uid(NOTEBOOK, NAMESPACE), there.uid(HUB, SPACE)
    figures["upgrade_seconds"] = there.tell(culling={"idleSeconds": 7200, "everySeconds": 300})
    require(there.uid(HUB, SPACE) != hub, "the hub was not restarted")
    require(there.uid(NOTEBOOK, NAMESPACE) == pod, "the upgrade removed the notebook's pod")
    desk.says("print('still', kept)", "still 42")
    desk.says("!kubectl get pods -o name", f"pod/{NOTEBOOK}")
    status = desk.page.run("fetch('/hub/home').then(said => said.url)")
    require(status == f"{there.hub}/hub/home", f"the restarted hub sends her to {status}")


def culled(there: Site, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """An idle notebook ends; its file exists when it is back. Raises CheckError."""
    kubectl = there.context.kubectl
    desk.at_work()
    desk.says("!echo of before > kept.txt; cat kept.txt", "of before")
    desk.page.open("about:blank")
    began = time.monotonic()
    there.tell(culling={"idleSeconds": IDLE_S, "everySeconds": LOOK_S})
    while kubectl.find("pod", NOTEBOOK, "-n", NAMESPACE):
        require(time.monotonic() < began + IDLE_S + REPORTED_S, "an idle notebook still runs")
        time.sleep(3)
    figures["ended after s"] = round(time.monotonic() - began, 1)
    there.tell()
    figures["back after s"] = desk.start()
    desk.new_notebook()
    desk.says("!cat kept.txt", "of before")
