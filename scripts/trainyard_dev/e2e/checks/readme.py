"""README.md as a newcomer follows it: its walks, word for word, on one cluster."""

import json
import os
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from trainyard.chart.release import removal
from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev.e2e import releases, walks
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.entry import ALONE, APART, PIPELINE_IMAGES, check
from trainyard_dev.e2e.recorder import require

TITLES = {
    "readme.platform-engineer": "README.md word for word: a release with a team and MNIST on an empty cluster",
    "readme.data-scientist": "README.md word for word: a member's package, pipeline, data, folder and manifest",
    "readme.maintainer": "README.md word for word: a check on that cluster",
}
# Text that a reader must find in a command's output, by the command's beginning.
SHOWN = {
    "readme.platform-engineer": {"helm test": "Phase:          Succeeded", "bin/trainyard data list": "shared/mnist"},
    "readme.data-scientist": {
        "trainyard run --local": "succeeded in",
        "trainyard submit": "succeeded",
        "trainyard runs list": "mnist-",
        "trainyard data put": "s3://datasets/vision/digits",
        "trainyard data list": "digits",
        "trainyard train": "results: ",
        "kubectl logs": "accuracy",
    },
    "readme.maintainer": {"make e2e": "gang.refused", "bin/trainyard cluster status": "worker"},
}
WALK_S = {"readme.platform-engineer": 900, "readme.data-scientist": 1200, "readme.maintainer": 900}
# Variables from `make` and a check that a reader doesn't have: how this run was started.
OWN = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "FULL", "ONLY", "KEEP", "REUSE", "LIST", "CHANGED", "KUBECONFIG",
       "VIRTUAL_ENV")  # fmt: skip


@check(*TITLES, after=("upgrade.job-survives",), locks={ALONE, APART}, images=PIPELINE_IMAGES,
       inputs=("README.md", "examples", "scripts/trainyard_dev/e2e/walks.py", "pyproject.toml", "pipelines/mnist.py",
               "pipelines/components", "scripts/trainyard/data", "scripts/trainyard/commands/data.py",
               "scripts/trainyard/commands/submit.py", "scripts/trainyard/commands/train.py",
               "scripts/trainyard/pipelines/submit"))  # fmt: skip
def walked(context: Context) -> None:
    """All walks in the page's order; each needs the one before. Leaves a release installed."""
    if context.gpu == "real":
        context.recorder.skip_all(TITLES, "the README's cluster has mock GPUs, this cluster has real GPUs")
        return
    page = walks.read((ROOT / "README.md").read_text())
    with tempfile.TemporaryDirectory(prefix="trainyard-readme-") as scratch:
        tree = _clone(Path(scratch) / "trainyard")
        for check_id, title in TITLES.items():
            with context.recorder.check(check_id, title) as figures:
                if check_id == next(iter(TITLES)):
                    removed: list[str] = []
                    removal.purge(releases.installed(context), removed.append)
                    figures["removed"] = len(removed)
                walk, began = page.walk(check_id.partition(".")[2].replace("-", " ")), time.monotonic()
                said = walks.run(walk, tree, _environment(context), WALK_S[check_id])
                figures |= {"commands": len(walk.commands), "seconds": round(time.monotonic() - began)}
                _require_shown(said, SHOWN[check_id])
                if check_id == "readme.data-scientist":
                    figures["accuracy"] = _trained(tree / "examples" / "ddp")
            if context.recorder.failed(check_id):
                return


def _clone(target: Path) -> Path:
    """A copy of the tree like a clone, including uncommitted changes; without the history."""
    listed = run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).stdout
    for name in filter(None, listed.split("\0")):
        source = ROOT / name
        if source.is_file() or source.is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    return target


def _environment(context: Context) -> dict[str, str]:
    """A reader's shell, with this run's settings of `make`. Most packages that pip would download are there."""
    own = str(Path(sys.executable).parent)
    given = {name: value for name, value in os.environ.items() if name not in OWN}
    return {
        **given,
        "NAME": context.cluster,
        "TRAINYARD_CLUSTER": context.cluster,
        "IMAGES": next((str(c.figures["images"]) for c in context.recorder.checks if "images" in c.figures), "auto"),
        "GPU": context.gpu,
        "KUBERNETES": os.environ.get("TRAINYARD_CLUSTER_KUBERNETES", ""),
        "PATH": ":".join(part for part in os.environ["PATH"].split(":") if part != own),
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the opposite: no isolation
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _require_shown(said: Mapping[str, str], due: Mapping[str, str]) -> None:
    for begin, text in due.items():
        found = [output for command, output in said.items() if command.startswith(begin)]
        require(found, f"README.md no longer has the command `{begin} …`")
        require(any(text in output for output in found), f"`{begin} …` doesn't show {text!r}: {found[-1][-400:]}")


def _trained(folder: Path) -> float:
    """The accuracy of the run whose results are in a folder."""
    found = [json.loads(path.read_text()) for path in folder.glob("results/*/metrics.json")]
    require(len(found) == 1 and found[0]["world"] == 2, f"the results of two ranks are not in {folder.name}: {found}")
    require(found[0]["accuracy"] > 0.9, f"examples/ddp reached an accuracy of {found[0]['accuracy']:.2f}")
    return round(found[0]["accuracy"], 4)
