"""Right sizes: a job that requests too much is measured, its file patched, and the same job is no slower with it."""

import json
import shutil
import tempfile
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from trainyard.rightsize import files, hints, judged, quantity
from trainyard.shell import run
from trainyard_dev.e2e import jobs, options, runs
from trainyard_dev.e2e.checks.monitoring import monitored
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context, member
from trainyard_dev.e2e.entry import APART, GPUS, LATE, MONITORING, TORCH, UPGRADES, check
from trainyard_dev.e2e.recorder import Figures, patience, require
from trainyard_dev.e2e.releases import RELEASE, helm, this_chart
from trainyard_dev.report.model import Picture

FILE = runs.FLOWS / "sized" / "job.yaml"
JOB, KIND = "e2e-sized", "pytorchjobs.kubeflow.org"
FIRST, SLOWER = 2, 2  # runs before the patch; not a speed test: a starved job is more than so many times slower
RUN_S, KNOWN_S = 240.0, 180.0
QUICK = "monitoring.usage.everySeconds=30"
USAGE = "deployment/trainyard-usage"
SETTINGS = """\
name: {job}   # as the manifest's
framework: pytorch
command: [python3, -c, "print('trained')"]
deadline: 10m
cpu: {cpu}   # guessed
memory: {memory}
"""


# Its job leaves hardly any room on its node; pods of other options would displace it.
@check("seeing.rightsize",
       title="rightsize's patch of a member's file shrinks the job without starving it",
       rank=LATE, locks={MONITORING, APART}, shares={UPGRADES, GPUS}, images=(TORCH, *options.SERVERS), long=True,
       inputs=("charts/monitoring", "scripts/trainyard/rightsize", "scripts/trainyard/commands/rightsize.py",
               "scripts/trainyard_agent", "scripts/trainyard_dev/e2e/flows/sized"))  # fmt: skip
def smaller(context: Context, figures: Figures) -> None:
    """Measured, patched, run alternately, with hints before and none after; the platform's own pods; another team."""
    with (
        tempfile.TemporaryDirectory(prefix="sized-") as scratch,
        monitored(context, QUICK) as figures["upgrade_seconds"],
    ):
        before, after = (Path(scratch) / name / FILE.name for name in ("before", "after"))
        for file in (before, after):
            file.parent.mkdir()
            shutil.copy(FILE, file)
        try:
            for _ in range(FIRST):
                _trained(context, before)
            figures["used"] = _measured(context, before)
            _patched(context, before, after, figures)
            _compared(context, before, after, figures)
            figures["hint_of_train"] = _hinted(context, Path(scratch) / "code")
            figures["platform"] = _platform(context, Path(scratch) / "sizes.yaml")
            figures["another_team_is_told"] = _hidden(context)
        finally:
            found = context.kubectl("get", KIND, "-n", NAMESPACE, "-o", "name", check=False).stdout.split()
            if made := [name for name in found if f"/{JOB}-" in name]:
                context.kubectl("delete", *made, "-n", NAMESPACE, "--wait=false", check=False)


def _trained(context: Context, file: Path) -> dict[str, float]:
    """One run of a file to its end, sent by a member; the times that it reports, in seconds."""
    made = context.kubectl(*member(NAMESPACE), "create", "-n", NAMESPACE, "-f", str(file), "-o", "name")
    name, wait = made.stdout.strip().partition("/")[2], patience(RUN_S)
    while not (outcome := jobs.outcome(context.kubectl.get(KIND, name, "-n", NAMESPACE)[0])):
        wait(f"{name} did not end within {RUN_S:.0f} s")
    log = context.kubectl(*member(NAMESPACE), "logs", "-n", NAMESPACE, f"{name}-master-0", check=False).stdout.strip()
    require(outcome == "succeeded", f"{name} {outcome}: {log[-300:]}")
    said: dict[str, float] = json.loads(log.splitlines()[-1])
    return said


def _measured(context: Context, file: Path) -> list[dict[str, Any]]:
    """Waits until the published figures have all runs so far as ended; returns the figures that a member gets."""
    wait = patience(KNOWN_S)
    while True:
        code, out, said = runs.trainyard(context, "rightsize", file, "-o", "json", check=False)
        known: list[dict[str, Any]] = json.loads(out)["containers"][0]["runs"] if code == 0 else []
        if len([one for one in known if one["ended"]]) >= FIRST:
            return known
        wait(f"of {FIRST} runs were measured after {KNOWN_S:.0f} s: {known or said[-300:]}")


def _patched(context: Context, before: Path, after: Path, figures: dict[str, Any]) -> None:
    """The member's file with the proposed patch: smaller, with its comments, and without the earlier hint."""
    far = _noted(context, before)
    require(len(far) == 2, f"lint notes of the file with too much of two resources: {far}")
    patch, drawing = after.with_name("sizes.patch"), after.with_name("sizes.svg")
    runs.trainyard(context, "rightsize", before, "--patch", patch, "--svg", drawing)
    figures["patch"] = patch.read_text()
    run(["git", "apply", patch.name], cwd=after.parent)
    asked, asks = (files.read(one.name, one.read_text()).places[0].requests for one in (before, after))
    figures |= {"asked": dict(asked), "asks": dict(asks)}
    for resource in judged.RESOURCES:
        require(asks[resource] < asked[resource], f"{resource}: the patch requests {asks} instead of {asked}")
    require("# as for the large model" in after.read_text(), "the patch removed a comment")
    left = _noted(context, after)
    require(not left, f"lint notes of the patched file: {left}")
    figures["evidence"] = Picture(f"usage of runs of {JOB}, requests, and rightsize's proposals", drawing.read_text())
    root = ElementTree.parse(drawing).getroot()
    text = " ".join("".join(one.itertext()) for one in root.iter())
    require(root.tag.endswith("svg") and JOB in text and "proposed" in text, f"the drawing shows {text[:200]}")


def _noted(context: Context, file: Path) -> list[str]:
    """Lint's notes about sizes in a file, as a member gets them."""
    _, out, _ = runs.trainyard(context, "lint", file, "--live", "-o", "json")
    return [one["reason"] for one in json.loads(out)["findings"] if one["code"] == hints.CODE]


def _compared(context: Context, before: Path, after: Path, figures: dict[str, Any]) -> None:
    """A run of the patched file and one of the old one: seconds of the training, and of its computation alone."""
    new, old = _trained(context, after), _trained(context, before)
    figures |= {f"{what}_times_as_slow": round(new[what] / old[what], 3) for what in ("seconds", "computed")}
    slower = figures["seconds_times_as_slow"]
    require(slower <= SLOWER, f"the smaller job is {slower} times as slow: it starves")


def _hinted(context: Context, folder: Path) -> list[str]:
    """`trainyard train` with the same guesses prints a hint, and none after `rightsize --write`; returns the first."""
    folder.mkdir()
    settings = folder / "trainyard.yaml"
    guessed = files.read(FILE.name, FILE.read_text()).places[0].requests
    amounts = {name: quantity.text(name, guessed[name]) for name in judged.RESOURCES}
    settings.write_text(SETTINGS.format(job=JOB, **amounts))
    hinted = _sent(context, folder)
    require(len(hinted) == 2, f"train hints at {hinted}, not at CPU and memory")
    runs.trainyard(context, "rightsize", settings, "--write")
    left = _sent(context, folder)
    require(not left, f"train hints at {left} although rightsize wrote the file")
    return hinted


def _sent(context: Context, folder: Path) -> list[str]:
    """Sends a folder's job as a member; returns the hints."""
    _, _, said = runs.trainyard(context, "train", "--dir", folder, "--detach")
    return [line for line in said.splitlines() if line.startswith("hint: ")]


def _platform(context: Context, file: Path) -> dict[str, Any]:
    """`--components` gives values that helm accepts and that reach containers; run by the platform engineer."""
    context.kubectl("rollout", "restart", USAGE, "-n", SYSTEM)  # it measures at once then, otherwise twice an hour
    context.rolled_out(USAGE, 90)
    asked = partial(runs.engineer, context, "rightsize", "--components", "-n", SYSTEM, check=False)
    wait = patience(KNOWN_S)
    while not (found := yaml.safe_load(text := asked().stdout) or {}).get("monitoring"):
        wait(f"no proposal for monitoring's pods: {text[-600:]}")
    file.write_text(text)
    flags = ("-n", SYSTEM, "--reuse-values", "-f", str(file), "--dry-run=server", "-o", "json")
    made = json.loads(helm(context.kubectl, "upgrade", RELEASE, str(this_chart()), *flags, timeout=120))
    held = [container.get("resources") or {} for one in yaml.safe_load_all(made["manifest"])
            for container in _containers(one or {})]  # fmt: skip
    lost = [path for path, amounts in _resources(found) if not any(_within(amounts, one) for one in held)]
    require(not lost, f"values that no container got: {', '.join(lost)}")
    return dict(_resources(found))


def _containers(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    spec = manifest.get("spec") or {}
    template = (spec.get("jobTemplate") or {}).get("spec", spec).get("template") or {}
    pod = template.get("spec") or {} if isinstance(template, dict) else {}
    return [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]


def _resources(values: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every value with requests or limits, by its path."""
    if {"requests", "limits"} & values.keys():
        return [(path, values)]
    return [one for key, value in values.items() for one in _resources(value, f"{path}.{key}".lstrip("."))]


def _within(amounts: dict[str, Any], held: dict[str, Any]) -> bool:
    return all(str((held.get(kind) or {}).get(name)) == str(value)
               for kind, named in amounts.items() for name, value in named.items())  # fmt: skip


def _hidden(context: Context) -> str:
    """A member of another team gets none of it, and no member the figures of platform pods; returns the messages."""
    told = []
    for team, words in ((OTHER, (JOB, "-n", NAMESPACE)), (NAMESPACE, ("--components", "-n", SYSTEM))):
        said = _refused(context, team, *words)
        told.append(said.strip().splitlines()[-1][:300])
    _, out, _ = runs.trainyard(context, "rightsize", team=OTHER)
    require(JOB not in out, f"{OTHER} sees {out[-300:]}")
    return told[0]


def _refused(context: Context, team: str, *words: str) -> str:
    done = runs.engineer(context, "rightsize", *words, *member(team), check=False)
    seen = (done.stdout or "").strip()
    require(done.returncode and not seen, f"a member of {team} asked for {' '.join(words)} and got {seen[:300]!r}")
    require("is forbidden" in done.stderr, f"a member of {team} is told {done.stderr[-300:]}")
    return done.stderr
