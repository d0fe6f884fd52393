"""kfp's own client for members who have logged in: outside the cluster, and in a notebook."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainyard.paths import ROOT
from trainyard.shell import run
from trainyard_dev.e2e.context import NAMESPACE, SYSTEM, Context
from trainyard_dev.e2e.recorder import had, patience, require
from trainyard_dev.e2e.sites.notebook_page import NotebookWindow
from trainyard_dev.e2e.sites.person import Person

SCRIPT = ROOT / "scripts" / "trainyard_dev" / "e2e" / "flows" / "kfp_script.py"
OUTSIDE = "a script with kfp.Client alone, and the kfp command line, through `trainyard kfp proxy`"
NOTEBOOK = "kfp.Client() without arguments in a notebook: a run to its metric"
SCRIPT_S, RUN_S = 400.0, 240.0
SAID = ("accuracy 0.9", "schedule DISABLED", "stopped the run was stopped", "listed from a script")
CELL = """
from kfp import Client, dsl

@dsl.component(base_image="{image}")
def double(number: int) -> int:
    return 2 * number

@dsl.pipeline(name="notebook")
def notebook(number: int = 21):
    double(number=number)

client = Client()
run = client.create_run_from_pipeline_func(notebook)
done = client.wait_for_run_completion(run.run_id, timeout=240, sleep_duration=2)
print("answer", done.plugins_output["metrics"].entries["double.Output"].value)
"""


@contextmanager
def proxy(person: Person) -> Iterator[dict[str, str]]:
    """`trainyard kfp proxy` while the block runs; the environment in which kfp's client finds it."""
    argv = [ROOT / "bin" / "trainyard", "kfp", "proxy", "--port", "0"]
    env = os.environ | person.env
    pipe, silent = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(list(map(str, argv)), env=env, text=True, stdout=pipe, stderr=silent) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = had(re.fullmatch(r"export KF_PIPELINES_ENDPOINT=(\S+)\n", line), f"the proxy printed {line!r}")
            yield env | {"KF_PIPELINES_ENDPOINT": found[1], "HOME": str(person.home), "PYTHONWARNINGS": "ignore"}
        finally:
            process.terminate()


def outside(context: Context, ada: Person, figures: dict[str, Any]) -> None:
    """The script and the command line. Raises CheckError."""
    with proxy(ada) as env:
        words: list[str | Path] = [sys.executable, SCRIPT, context.image("pipeline"), context.cluster]
        done = run(words, check=False, env=env, timeout=SCRIPT_S)
        said = done.stdout or ""
        lacks = [one for one in SAID if one not in said]
        require(
            done.returncode == 0 and not lacks, f"the script lacks {lacks}: {said[-800:]} {(done.stderr or '')[-800:]}"
        )
        found = had(re.search(r"run (\S+) SUCCEEDED", said), f"the script's run did not succeed: {said[-400:]}")
        figures["script"] = " · ".join(SAID)
        command = (Path(sys.executable).with_name("kfp"), "--output", "json", "run", "list", "--max-size", "100")
        listed = json.loads(run([*command], env=env, timeout=60).stdout)
        require(found[1] in [one["run_id"] for one in listed], f"`kfp run list` lacks {found[1]}")
    by = context.kubectl.get("workflow", found[1].partition(".")[2], "-n", NAMESPACE)[0]["metadata"]["annotations"]
    require(by["trainyard.io/submitted-by"].endswith(ada.email), f"the run was submitted by {by}")


def notebook(there: Any, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """A cell of a notebook. Raises CheckError."""
    wait = patience(120, 3)
    while not _ready(there.context):
        wait("the service behind kfp.Client is not ready")
    desk.at_work()
    desk.says(CELL.replace("{image}", there.context.image("pipeline")), "answer 42", RUN_S)
    figures["cell"] = desk.seen("kfp.Client() in a notebook", there.picture("kfp"))


def _ready(context: Context) -> bool:
    status = (context.kubectl.find("deployment", "trainyard-kfp-api", "-n", SYSTEM) or {}).get("status") or {}
    return bool(status.get("availableReplicas"))
