"""`trainyard train` as a member uses it: code on two nodes, again with changed code, and a script that fails."""

import json
import time
from pathlib import Path

from trainyard_dev.e2e import runs
from trainyard_dev.e2e.checks import computed
from trainyard_dev.e2e.context import OTHER, Context
from trainyard_dev.e2e.entry import GPUS, TORCH, check
from trainyard_dev.e2e.recorder import require

FOLDER = runs.FLOWS / "folder"
TRAIN_S = 240
RANKS = 4  # of folder/trainyard.yaml


@check("train.folder", "train.again", "train.failing", "train.traces", shares={GPUS}, images=(TORCH,),
       inputs=("scripts/trainyard/training", "scripts/trainyard/observe", "scripts/trainyard/kinds"))  # fmt: skip
def train(context: Context) -> None:
    """Three runs of one folder; each leaves nothing but its finished job."""
    with runs.copied(FOLDER) as folder:
        _change(folder)
        with context.recorder.check(
            "train.folder", "a folder's code trains on two nodes, and the results are downloaded"
        ) as figures:
            figures["seconds"], said = _run(context, folder)
            require("code sent" in said, f"the code was not uploaded: {said[-300:]}")
            metrics = [json.loads(path.read_text()) for path in (folder / "results").rglob("metrics.json")]
            require(
                [one["world"] for one in metrics] == [RANKS],
                f"results are {metrics}, not of {RANKS} ranks; said: {said[-400:]}",
            )
            figures["loss"] = round(metrics[0]["loss"], 5)
            computed.check(context, metrics[0], "gloo", figures)
        with context.recorder.check("train.again", "only changed code is uploaded again") as figures:
            figures["seconds"], said = _run(context, folder)
            require("code unchanged" in said, f"unchanged code was uploaded again: {said[-300:]}")
            again = max((folder / "results").rglob("metrics.json"), key=lambda path: path.stat().st_mtime)
            computed.check(context, json.loads(again.read_text()), "gloo", figures)
            _change(folder)
            _, said = _run(context, folder)
            require("code sent" in said, f"changed code was not uploaded: {said[-300:]}")
        with context.recorder.check("train.failing", "a failing script shows its error and exit code") as figures:
            settings = folder / "trainyard.yaml"
            settings.write_text(settings.read_text().replace("train.py]", 'train.py, "--fail=3"]'))
            figures["seconds"], said = _run(context, folder, due=1)
            require("ValueError: loss is NaN on rank 3" in said, f"the script's error is missing: {said[-400:]}")
        with context.recorder.check("train.traces", "no data transfer pod remains"):
            left = context.kubectl.get("jobs.batch", "-n", OTHER, "-l", "trainyard.io/transfer")
            require(not left, f"left behind: {[job['metadata']['name'] for job in left]}")


def _change(folder: Path) -> None:
    """Changes the folder's code to content that is new to the store."""
    (folder / "note.txt").write_text(f"{time.time_ns()}\n")


def _run(context: Context, folder: Path, due: int = 0) -> tuple[int, str]:
    """One `trainyard train`: seconds, and its output without the job's log."""
    began = time.monotonic()
    code, _, said = runs.trainyard(context, "train", "--dir", folder, team=OTHER, check=False, timeout=TRAIN_S)
    require(code == due, f"trainyard train exited with {code}, not {due}: {said[-500:]}")
    return round(time.monotonic() - began), said
