"""A folder's requirements: wheels sent with one command, installed once for all ranks, and an impossible line."""

import base64
import hashlib
import json
import tempfile
import time
import zipfile
from pathlib import Path

from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import OTHER, Context
from trainyard_dev.e2e.entry import GPUS, KFP_IMAGES, TORCH, check
from trainyard_dev.e2e.recorder import require

TRAIN_S, PUT_S = 240, 120
NODES = 2
SETTINGS = {"name": "needs", "framework": "pytorch", "command": ["python3", "train.py"], "nodes": NODES, "cpu": "100m",
            "memory": "512Mi", "sharedMemory": "64Mi", "deadline": "10m"}  # fmt: skip
# Each rank has the package next to the image's own torch; the first one prints the version that it found.
SCRIPT = """\
import json, os, torch, {module}
print("version", {module}.VERSION, "with torch", torch.__version__, flush=True)
with open(os.path.join(os.environ["TRAINYARD_RESULTS"], "found.json"), "w") as file:
    json.dump({{"version": {module}.VERSION, "torch": torch.__version__}}, file)
"""
PIPELINE = """\
from kfp import dsl

@dsl.component(packages_to_install=["{}"])
def fit() -> str:
    import trainyard_tiny
    return trainyard_tiny.VERSION

@dsl.pipeline
def needs():
    fit()
"""


@check("train.requirements", "train.requirements-again", "pipelines.packages", "train.requirements-line",
       shares={GPUS}, images=(TORCH, *KFP_IMAGES),
       inputs=("scripts/trainyard/training", "scripts/trainyard/kinds", "scripts/trainyard_agent",
               "scripts/trainyard/pipelines", "images/platform"))  # fmt: skip
def installed(context: Context) -> None:
    """Three runs of a folder with requirements; each cluster has its own package, so that it is new there."""
    version = f"1.{int(time.time())}"
    with tempfile.TemporaryDirectory(prefix="trainyard-e2e-") as scratch:
        folder = Path(scratch) / "needs"
        folder.mkdir()
        _wheel(Path(scratch) / "wheels", "trainyard_tiny", version)
        (folder / "trainyard.yaml").write_text(json.dumps(SETTINGS))
        (folder / "train.py").write_text(SCRIPT.format(module="trainyard_tiny"))
        (folder / "requirements.txt").write_text(f"torch\ntrainyard-tiny=={version}\n")
        title = "each rank of a first run installs wheels that the platform engineer uploaded"
        with context.recorder.check("train.requirements", title) as figures:
            said = runs.engineer(context, "wheels", "put", Path(scratch) / "wheels", timeout=PUT_S).stderr
            require("1 sent, 0 already stored" in said, f"the wheel was not sent: {said[-300:]}")
            figures["seconds"] = _trained(context, folder, version, "installed trainyard-tiny")
        title = "the same requirements are not installed twice"
        with context.recorder.check("train.requirements-again", title) as figures:
            figures["seconds"] = _trained(context, folder, version, "1 from the store")
        title = "packages_to_install of a component uses the same wheels; an unavailable package is refused"
        with context.recorder.check("pipelines.packages", title) as figures:
            (Path(scratch) / "needs.py").write_text(PIPELINE.format(f"trainyard-tiny=={version}"))
            seen = runs.succeed(context, Path(scratch) / "needs.py", timeout=TRAIN_S, team=OTHER)
            figures["seconds"] = round(seen.seconds)
            require(seen.output("fit") == version, f"the step imported {seen.output('fit')!r}, not {version}")
            (Path(scratch) / "lacks.py").write_text(PIPELINE.format("trainyard-tiny==0.1"))
            code, _, said = runs.trainyard(context, "submit", Path(scratch) / "lacks.py", team=OTHER, check=False)
            due = "no run gets the package trainyard-tiny==0.1: available: trainyard-tiny"
            require(code == 2 and due in said, f"submit exited with {code}: {said[-500:]}")
        title = "the error names an unavailable package, with a hint"
        with context.recorder.check("train.requirements-line", title) as figures:
            (folder / "requirements.txt").write_text("torch\n\ntrainyard-tiny==0.1\n")
            code, _, said = runs.trainyard(context, "train", "--dir", folder, team=OTHER, check=False, timeout=TRAIN_S)
            figures["code"] = code
            require(code == 1, f"trainyard train exited with {code}, not 1: {said[-500:]}")
            due = "requirements.txt:3: trainyard-tiny==0.1 is not available: the platform's wheels has"
            require(due in said and "trainyard wheels put" in said, f"the line is missing: {said[-600:]}")


def _trained(context: Context, folder: Path, version: str, due: str) -> int:
    """One successful run; the installation of every remaining rank prints `due`. Returns its seconds."""
    began = time.monotonic()
    code, _, said = runs.trainyard(context, "train", "--dir", folder, team=OTHER, check=False, timeout=TRAIN_S)
    require(code == 0, f"trainyard train exited with {code}: {said[-500:]}")
    seconds, name = round(time.monotonic() - began), said.partition("created ")[2].split()[0]
    found = json.loads((folder / "results" / name / "found.json").read_text())
    require(found["version"] == version, f"the run imported {found}, not {version}")
    pods = context.kubectl.get("pods", "-n", OTHER, "-l", f"trainyard.io/job={name}")
    # The operator removes a worker that is still ending when the master has succeeded.
    require(1 <= len(pods) <= NODES, f"{len(pods)} pods are there, due are up to {NODES}")
    for pod in (one["metadata"]["name"] for one in pods):
        log = context.kubectl("logs", pod, "-n", OTHER, "-c", "trainyard-packages").stdout
        require(due in log, f"the log of {pod} lacks `{due}`: {log[-300:]}")
    return seconds


def _wheel(folder: Path, name: str, version: str) -> None:
    """A wheel of one module that reports its version."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: trainyard\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text)}\n")
    files[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"])
    folder.mkdir()
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
