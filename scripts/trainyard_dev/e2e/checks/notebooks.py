"""Notebooks, an option: a member logs in with a browser, works in JupyterLab under their own name, and leaves."""

import re
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trainyard_dev import browser
from trainyard_dev.e2e import asking, runs
from trainyard_dev.e2e.checks import costs, kfp_client, notebooks_lives, notebooks_others
from trainyard_dev.e2e.checks.serving_access import drawn
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.entry import APART, DATA, GPUS, PEOPLE, SERVING, UPGRADES, WAITS, check
from trainyard_dev.e2e.recorder import had, patience, require
from trainyard_dev.e2e.sites import served
from trainyard_dev.e2e.sites.login import ADA, PREFIX, TOKEN_S, missing
from trainyard_dev.e2e.sites.notebook_page import NotebookWindow
from trainyard_dev.e2e.sites.notebooks import HUB, NOTEBOOK, SPACE, Site, site

DIGIT = "from a notebook's cells: train, register and serve; a digit drawn on the model's page is recognized"
TITLES = {
    "notebooks.work": "a member opens a notebook in a browser; a cell trains and runs a pipeline under her name",
    "kfp.notebook": kfp_client.NOTEBOOK,
    "notebooks.digit": DIGIT,
    "notebooks.upgrade": notebooks_lives.UPGRADED,
    "notebooks.strangers": notebooks_others.STRANGERS,
    "notebooks.gpu": notebooks_lives.GPU_TITLE,
    "notebooks.culled": notebooks_lives.CULLED,
    "notebooks.left": notebooks_others.LEFT,
    "notebooks.off": "when disabled, only the homes remain",
}
IMAGES = ("dex", "kfp-api", "notebook-hub", "notebook", "trainer-torch", "server-torch", "pipeline", "argoexec")
TRAIN_S, RUN_S = 300.0, 300.0
BY = "trainyard.io/submitted-by"
CODE = """
from pathlib import Path
Path("digits").mkdir(exist_ok=True)
Path("digits/train.py").write_text("import torch\\nprint('trained', torch.ones(3).sum().item())\\n")
Path("digits/double.py").write_text('''
from kfp import dsl

@dsl.component(base_image="{image}", install_kfp_package=False)
def double(number: int) -> int:
    return 2 * number

@dsl.pipeline(name="doubling")
def doubling(number: int = 21) -> int:
    return double(number=number).output
''')
print("written")
"""
TRAIN = "!cd digits && trainyard train --name cell --cpu 100m --memory 512Mi --no-fetch -- python3 train.py"
PIPELINES = "/opt/trainyard/app/trainyard/tree/pipelines"
# No accuracy reaches 2: the first version is registered, and its member puts it into service.
MODEL = f"!cp -r {PIPELINES} . && trainyard submit pipelines/serve.py {' '.join(served.SMALL)} -p epochs=4 -p minimum=2"
SERVE = "!trainyard serve digits@{} --from outside --by nodePort --key --scale-by none --replicas 1 --cpu 100m"
TOKEN = """
import hashlib, json, subprocess
said = subprocess.run(["trainyard", "login", "--credential", "--hub"], capture_output=True, check=True).stdout
print("token", hashlib.sha256(json.loads(said)["status"]["token"].encode()).hexdigest()[:12])
"""


@check(*TITLES, each=True, rank=WAITS, needs=(DATA,), locks={PEOPLE, SERVING, APART}, shares={UPGRADES}, images=IMAGES,
       long=True, login=True,
       inputs=("charts/notebooks", "images/notebook", "scripts/trainyard/login/hub.py",
               "policies/notebook-hub.yaml", "policies/notebook-names.yaml", "scripts/trainyard_dev/browser.py",
               "scripts/trainyard_dev/e2e/sites/person.py", "scripts/trainyard_dev/e2e/sites/login.py",
               "scripts/trainyard_dev/e2e/sites/notebook_page.py", "scripts/trainyard_dev/e2e/sites/notebooks.py")
)  # fmt: skip
def hub(context: Context) -> None:
    """All checks on one hub; upgrades for short lifetimes and for members who leave, and one that switches it off."""
    if reason := missing(context):
        context.recorder.skip_all(TITLES, reason)
        return
    with tempfile.TemporaryDirectory(prefix="notebooks-") as folder:
        with site(context, Path(folder)) as there, there.desk(ADA) as desk:
            if not context.wants("notebooks.work"):
                desk.log_in()
            for check_id, step in STEPS.items():
                if context.wants(check_id):
                    with ExitStack() as gpus:
                        if step is notebooks_lives.gpu:
                            gpus.enter_context(context.claim(GPUS))
                        with context.recorder.check(check_id, TITLES[check_id]) as figures:
                            step(there, desk, figures)
                        if context.recorder.failed(check_id):  # afterwards the hub is gone
                            logs = context.kubectl("logs", HUB, "-n", SPACE, "--tail=40", check=False)
                            figures["the hub's last lines"] = logs.stdout
        if context.wants("notebooks.off"):
            with context.recorder.check("notebooks.off", TITLES["notebooks.off"]) as figures:
                _off(context, figures)


def work(there: Site, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """From the log-in to a finished job and a finished pipeline run. Raises CheckError."""
    context = there.context
    began = time.monotonic()
    desk.log_in()
    figures["logged in after s"] = round(time.monotonic() - began, 1)
    figures["choice"] = desk.seen("what a member may choose", there.picture("choice"))
    figures["open after s"] = desk.start()
    desk.new_notebook()
    desk.says("!kubectl auth whoami", f"{PREFIX}{ADA}")
    first = _token(desk)
    taken = time.monotonic()
    before = costs.look(context, (SPACE, NAMESPACE))
    desk.says(CODE.replace("{image}", context.image("pipeline")), "written")
    began = time.monotonic()
    desk.says(TRAIN, "trained 3.0", TRAIN_S)
    figures["trained after s"] = round(time.monotonic() - began, 1)
    figures["cell"] = desk.seen("a cell trains in the cluster", there.picture("train"))
    began = time.monotonic()
    desk.says("!trainyard submit digits/double.py", "Output = 42", RUN_S)
    figures["pipeline after s"] = round(time.monotonic() - began, 1)
    listed = desk.cell("!trainyard runs list")
    lacking = f"the list lacks the runs: {listed[-600:]}"
    run, job = (had(re.search(rf"{name}-[a-z0-9]+", listed), lacking) for name in ("doubling", "cell"))
    figures["runs"] = desk.seen("both runs, as the notebook lists them", there.picture("runs"))
    for kind, name in (("workflows.argoproj.io", run[0]), ("pytorchjobs.kubeflow.org", job[0])):
        found = had(context.kubectl.find(kind, name, "-n", NAMESPACE), f"{kind} {name} is not in {NAMESPACE}")
        by = (found["metadata"].get("annotations") or {}).get(BY)
        require(by == f"{PREFIX}{ADA}", f"{kind} {name} is of {by}")
    while (left := TOKEN_S + 5 - (time.monotonic() - taken)) > 0:
        time.sleep(left)
    require(_token(desk) != first, f"after {TOKEN_S} s the notebook still has the old token")
    desk.says("!kubectl get pods", NOTEBOOK)
    figures["cost"] = _cost(context, before)
    pod = context.kubectl.get("pod", NOTEBOOK, "-n", NAMESPACE)[0]
    shown = str(pod["spec"])
    require("eyJ" not in shown and "API_TOKEN" not in shown, "the pod shows a token to the team")


def digit(there: Site, desk: NotebookWindow, figures: dict[str, Any]) -> None:
    """Three cells and a second window. Raises CheckError."""
    context = there.context
    desk.at_work()
    try:
        began = time.monotonic()
        desk.says(MODEL, "succeeded", served.RUN_S)
        figures["trained and registered after s"] = round(time.monotonic() - began, 1)
        desk.says("!trainyard models list", served.MODEL, served.READY_S)
        version = served.listed(context)[-2:][0]["version"]  # of MODEL; a full run has registered worse ones meanwhile
        began = time.monotonic()
        key = re.search(r"ty-[A-Za-z0-9_-]+", desk.cell(SERVE.format(version), served.READY_S))
        figures["in service after s"] = round(time.monotonic() - began, 1)
        key = had(key, "`trainyard serve` printed no key")
        desk.says("!trainyard serve list", served.MODEL)
        figures["cells"] = desk.seen("cells that train, register and serve", there.picture("serve"))
        by = (served.deployment(context)["metadata"].get("annotations") or {}).get(BY, f"{PREFIX}{ADA}")
        require(by == f"{PREFIX}{ADA}", f"the model in service in {NAMESPACE} is of {by}")
        url = f"http://{asking.node(context)}:{served.port(context)}/"
        with browser.window(width=760, height=560) as window:
            window.open(url)
            window.fill("#key", key[0])
            window.click("#lock button")
            window.wait_text("Version ", served.READY_S)
            wrong = drawn(window, figures, "a digit drawn on the page of the model", there.picture("digit"))
        require(not wrong, f"not recognized: {wrong}")
    finally:
        runs.trainyard(context, "serve", "stop", served.MODEL, check=False)


STEPS: dict[str, Callable[[Site, NotebookWindow, dict[str, Any]], None]] = {
    "notebooks.work": work,
    "kfp.notebook": kfp_client.notebook,
    "notebooks.digit": digit,
    "notebooks.upgrade": notebooks_lives.upgraded,
    "notebooks.strangers": notebooks_others.strangers,
    "notebooks.gpu": notebooks_lives.gpu,
    "notebooks.culled": notebooks_lives.culled,
    "notebooks.left": notebooks_others.left,
}


def _cost(context: Context, before: dict[str, costs.Used]) -> dict[str, str]:
    """Mean cores since `before` and memory of hub, proxy and notebook, in words."""
    after = costs.look(context, (SPACE, NAMESPACE))
    found = {}
    for name, now in after.items():
        part = next((part for part in ("hub", "proxy", "ada") if f"-notebook-{part}" in name), "")
        if part and name in before and now.at > before[name].at:
            found[part.replace("ada", "a notebook")] = costs.used(before[name], now)
    require(len(found) == 3, f"kubelet has metrics only of {sorted(found)}")
    return found


def _token(desk: NotebookWindow) -> str:
    """A digest of the token that the notebook has now."""
    said = desk.says(TOKEN, "token ")
    return said.strip().rpartition(" ")[2]


def _off(context: Context, figures: dict[str, Any]) -> None:
    """Checks the remains after the option is switched off. Raises CheckError."""
    kubectl = context.kubectl
    # As charts/notebooks/README.md instructs: the engineer who switches it off ends running notebooks.
    kubectl("delete", "pods", "-A", "-l", "trainyard.io/notebook=true", "--wait=false")
    wait = patience(120, 3)
    while True:
        held = kubectl("get", "namespace", SPACE, "--ignore-not-found", "-o", "name").stdout.split()
        for kinds in ("pods,secrets", "roles,rolebindings,networkpolicies,configmaps"):
            held += [
                f"{one['kind']} {one['metadata']['namespace']}/{one['metadata']['name']}"
                for one in kubectl.get(kinds, "-A")
                if "notebook" in one["metadata"]["name"]
            ]
        policies = kubectl("get", "validatingadmissionpolicies", "-o", "name").stdout.split()
        held += [one for one in policies if "notebook" in one]
        if not held:
            break
        wait(f"still exists: {', '.join(held)}")
    homes = [one["metadata"]["name"] for one in kubectl.get("pvc", "-A") if "notebook" in one["metadata"]["name"]]
    require(NOTEBOOK in homes, f"her home is gone: {homes}")
    require(not [one for one in homes if one.startswith("data-")], f"the hub's volume still exists: {homes}")
    figures["homes"] = len(homes)
    kubectl("delete", "pvc", "-n", NAMESPACE, NOTEBOOK, "--wait=false")
