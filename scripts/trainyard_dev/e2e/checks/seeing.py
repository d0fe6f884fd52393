"""What a member can see without permission on nodes: GPUs, runs side by side, TensorBoard."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from trainyard.names import GPU
from trainyard.paths import ROOT
from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import NAMESPACE, OTHER, Context, member
from trainyard_dev.e2e.entry import GPUS, TORCH, UPGRADES, check
from trainyard_dev.e2e.recorder import CheckError, Figures, patience, require

FLOW = runs.FLOWS / "seeing"
TRAIN_S, BOARD_S, VIEW_S = 180, 180.0, 90.0
RATES = ("0.5", "0.1")
TAG = "seeing/loss"
HOLDER = "seeing-holder"
BOARD = "trainyard.io/tensorboard"
URL = re.compile(r"http://127\.0\.0\.1:\d+/")


@check("seeing.gpus", title="a member sees free and held GPUs, including her own, but no other team",
       locks={GPUS},  # it counts the team's GPUs
       inputs=("scripts/trainyard_agent", "charts/trainyard/templates", "scripts/trainyard/observe/gpus.py",
               "scripts/trainyard/commands/gpus.py"))  # fmt: skip
def gpus(context: Context, figures: Figures) -> None:
    """A member sees all GPUs and those of their own pod, but neither nodes nor the other team."""
    with _holding(context):
        nodes = context.kubectl.get("nodes")
        due = sum(int(node["status"]["capacity"].get(GPU, 0)) for node in nodes)
        wait = patience(VIEW_S)
        while True:
            code, out, said = runs.trainyard(context, "gpus", "-o", "json", check=False)
            found = json.loads(out) if code == 0 else {"pools": []}
            if (
                sum(pool["gpus"] for pool in found["pools"]) == due
                and sum(pool["yours"] for pool in found["pools"]) == 1
            ):
                break
            wait(f"the nodes have {due} GPUs and the team holds one, but `trainyard gpus` shows {out or said}")
        for pool in found["pools"]:
            require(pool["held"] + pool["free"] + pool["out"] == pool["gpus"], f"{pool} does not add up")
            require(pool["held"] >= pool["yours"], f"{pool} holds less than the team does")
        require(
            found["team"] == NAMESPACE and found["queues"][0]["queue"] == NAMESPACE, f"the queues are {found['queues']}"
        )
        require(OTHER not in out, f"the output names the other team: {out}")
        figures["gpus"], figures["models"] = due, sorted({pool["model"] for pool in found["pools"]})
        asked = context.kubectl(*member(NAMESPACE), "get", "nodes", check=False)
        require(asked.returncode, "a member may list nodes")


@contextmanager
def _holding(context: Context) -> Iterator[None]:
    """A member's pod holds a GPU while the block runs."""
    pod = context.pod(HOLDER, "sleep 300", queue=NAMESPACE)
    try:
        context.create(pod)
        yield
    finally:
        context.kubectl("delete", "pod", HOLDER, "-n", NAMESPACE, "--now", "--ignore-not-found", check=False)


@check("seeing.compare", "seeing.tensorboard", locks={UPGRADES}, images=(TORCH,),
       inputs=("scripts/trainyard/training", "scripts/trainyard/kube", "scripts/trainyard_agent",
               "scripts/trainyard/observe/comparison.py", "scripts/trainyard/observe/comparison_svg.py",
               "scripts/trainyard/commands/runs_compare.py", "scripts/trainyard/commands/runs_tensorboard.py")
)  # fmt: skip
def looked_at(context: Context) -> None:
    """Two runs of one folder, compared; the event files of one in TensorBoard."""
    title = "two runs of a folder compared: differences, and the drawing"
    with context.recorder.check("seeing.compare", title) as figures, runs.copied(FLOW) as folder:
        names = [trained(context, rate, folder) for rate in RATES]
        drawing = folder.parent / "metrics.svg"
        _, out, _ = runs.trainyard(context, "runs", "compare", *names, "--svg", drawing, "-o", "json", team=OTHER)
        found = json.loads(out)
        rate = next(line for line in found["parameters"] if line["name"] == "rate")
        require(rate["values"] == list(RATES) and not rate["same"], f"the flag is {rate}")
        loss = [value for line in found["metrics"] if line["name"] == "loss" for value in line["values"]]
        require(len(loss) == 2 and loss[0] < loss[1], f"the losses are {loss}")
        require(found["code"][0]["same"], f"one folder has two digests: {found['code']}")
        require(ElementTree.parse(drawing).getroot().tag.endswith("svg"), "the drawing is not an SVG")
        figures["loss"] = loss
    with context.recorder.check("seeing.tensorboard", "a run's event files in TensorBoard, gone at Ctrl-C") as figures:
        began = time.monotonic()
        figures["scalars"] = _board(context, names[0])
        figures["seconds"] = round(time.monotonic() - began)
        wait = patience(60, 1)
        while left := context.kubectl.get("pods", "-n", OTHER, "-l", BOARD):
            wait(f"left behind: {[pod['metadata']['name'] for pod in left]}")


def trained(context: Context, rate: str, folder: Path) -> str:
    """Trains a folder; returns the name of a successful run with its results in the store."""
    words = ["--dir", str(folder), "--name", "seeing", "--framework", "pytorch", "--cpu", "100m", "--memory", "768Mi"]
    words += ["--deadline", "10m", "--", "python3", "train.py", "--rate", rate]
    before = _names(context)
    runs.trainyard(context, "train", *words, team=OTHER, timeout=TRAIN_S)
    [made] = _names(context) - before
    return made


def _names(context: Context) -> set[str]:
    _, out, _ = runs.trainyard(context, "runs", "list", "-o", "name", team=OTHER)
    return {name for name in out.split() if name.startswith("seeing-")}


def _board(context: Context, name: str) -> int:
    """How many scalars of the run TensorBoard shows through the forwarded port."""
    # Processes started in the background ignore Ctrl-C, and so do their children.
    argv = ["env", "--default-signal=INT", str(ROOT / "bin" / "trainyard")]
    argv += ["runs", "tensorboard", name, "--port", "0", "-n", OTHER, *member(OTHER)]
    env = {**os.environ, "KUBECONFIG": str(context.kubectl.kubeconfig)}
    with tempfile.TemporaryFile("w+") as said:
        board = subprocess.Popen(argv, stdout=said, stderr=subprocess.STDOUT, env=env)
        try:
            return _scalars(board, said, name)
        finally:
            board.send_signal(signal.SIGINT)
            board.wait(60)


def _scalars(board: subprocess.Popen[bytes], said: IO[str], name: str) -> int:
    end = time.monotonic() + BOARD_S
    text = ""
    while time.monotonic() < end and board.poll() is None:
        said.seek(0)
        text = said.read()
        if match := URL.search(text):
            address = f"{match[0]}data/plugin/scalars/scalars?run={name}/events&tag={TAG}"
            try:
                with urllib.request.urlopen(address, timeout=10) as answer:
                    return len(json.loads(answer.read()))
            except (OSError, ValueError):
                pass
        time.sleep(2)
    raise CheckError(f"TensorBoard did not show {TAG}: {text[-600:]}")
