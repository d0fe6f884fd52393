"""The examples of one model over several ranks, and of a job with a varying number of nodes, as a member runs them."""

import json
import re
import time
from pathlib import Path
from typing import Any

import yaml

from trainyard.names import GPU
from trainyard.paths import ROOT
from trainyard_dev.e2e import jobs, runs
from trainyard_dev.e2e.checks import computed
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.entry import GPUS, TORCH, UPGRADES, check
from trainyard_dev.e2e.recorder import Figures, had, possible, require, until
from trainyard_dev.e2e.releases import changed

CODE = ("examples", "scripts/trainyard/training", "scripts/trainyard/kinds", "images/trainer-torch")
EXAMPLES = ROOT / "examples"
SMALL = ("--cpu", "100m", "--memory", "768Mi", "--deadline", "15m")
TRAIN_S = 240
CREATED = re.compile(r"created (\S+)")
RANKS = 2  # of examples/fsdp

PREEMPT = "global.contract.scheduler.preempt"
LEAST, MOST, EVERY = 2, 4, 20  # nodes of examples/elastic, and steps between two snapshots
STEPS = ("--steps", "600", "--pause", "0.25", "--every", str(EVERY))  # two and a half minutes without any change
CHANGE_S, END_S = 150, 300
HOLDER, CLAIMER = "elastic-holder", "elastic-claim"
BEGINS = re.compile(r"^rank 0 of (\d+) on \S+, after step (\d+)", re.M)


@check("train.fsdp", "train.fsdp-resumed", shares={GPUS}, images=(TORCH,), inputs=CODE)
def fsdp(context: Context) -> None:
    """Each of two ranks holds half of the weights; another run continues from the first one's last snapshot."""
    with runs.copied(EXAMPLES / "fsdp") as folder:
        _words(folder, "--steps", "40", "--every", "20")
        title = "the example fsdp: a model sharded over two ranks on two nodes"
        first: dict[str, Any] = {}
        with context.recorder.check("train.fsdp", title) as figures:
            run, first = _trained(context, folder)
            computed.check(context, first, "gloo", figures, gpus=1)
            figures |= {key: first[key] for key in ("world", "held", "weights", "loss")}
            require(first["world"] == RANKS, f"{first['world']} ranks trained together, not {RANKS}")
            share = first["held"] / first["weights"]
            require(0.49 < share < 0.51, f"rank 0 holds {share:.0%} of the weights, not half")
            require(
                first["loss"] < first["first_loss"] / 2, f"the loss went from {first['first_loss']} to {first['loss']}"
            )
        with context.recorder.check("train.fsdp-resumed", "another run resumes from the snapshot") as figures:
            require(first, "no run to resume")
            _, again = _trained(context, folder, "--resume", run)
            computed.check(context, again, "gloo", figures, gpus=1)
            figures |= {key: again[key] for key in ("begun", "step", "first_loss", "loss")}
            require(again["begun"] == first["step"], f"it resumed after step {again['begun']}, not {first['step']}")
            limit = first["first_loss"] / 2
            require(
                again["first_loss"] < limit, f"the run started with the loss {again['first_loss']}, as if untrained"
            )


def _words(folder: Path, *words: str) -> None:
    """Adds words to the script's arguments in a folder."""
    settings = yaml.safe_load((folder / "trainyard.yaml").read_text())
    settings["command"] += words
    (folder / "trainyard.yaml").write_text(yaml.safe_dump(settings))


def _trained(context: Context, folder: Path, *more: str) -> tuple[str, dict[str, Any]]:
    """Runs one `trainyard train` to its end; returns the run's name and its metrics."""
    code, out, said = runs.trainyard(context, "train", "--dir", folder, *SMALL, *more, check=False, timeout=TRAIN_S)
    require(code == 0, f"trainyard train exited with {code}: {(said + out)[-600:]}")
    run = _created(said)
    return run, json.loads((folder / "results" / run / "metrics.json").read_text())


def _created(said: str) -> str:
    return had(CREATED.search(said), f"no job was created: {said[-300:]}")[1]


@check("train.elastic", title="the example elastic: 2 to 4 nodes as GPUs become free and are reclaimed; "
       "only steps since the last snapshot are lost",
       locks={GPUS}, shares={UPGRADES}, images=(TORCH,), inputs=CODE)  # fmt: skip
def elastic(context: Context, figures: Figures) -> None:
    """It starts with two of four nodes, uses the others once they are free, and continues without them when claimed."""
    total = sum(context.gpus.values())
    possible(total >= MOST, f"it needs {MOST} GPUs, the cluster has {total}")
    with runs.copied(EXAMPLES / "elastic") as folder:
        _words(folder, *STEPS)
        holders = [f"{HOLDER}-{number}" for number in range(total - LEAST)]
        run = ""
        # Lets the scheduler displace a job of a lower class for one of a higher class.
        with changed(context, f"{PREEMPT}=true") as figures["upgrade_seconds"]:
            try:
                _hold(context, holders)
                run = _begun(context, folder)
                _sees(context, run, LEAST, "the job does not start with its minimum size")
                kept = _uids(context, run)
                context.end_pods(*holders[: MOST - LEAST])  # none is free then: the claim doesn't count in it
                figures["grown_seconds"] = _sees(context, run, MOST, "the job does not grow when GPUs become free")
                _claim(context, MOST - LEAST)
                figures["shrunk_seconds"] = _sees(context, run, LEAST, "the job stops when GPUs are reclaimed")
                first = [f"{run}-worker-{number}" for number in range(LEAST)]
                now = _uids(context, run)
                lost = [name for name in first if kept.get(name) != now.get(name)]
                require(not lost, f"{', '.join(lost)} were evicted, although other pods were possible")
                facts = _ended(context, folder, run)
                computed.check(context, facts, "gloo", figures, gpus=1)
                figures["worlds"] = [one["world"] for one in facts["starts"]]
                figures["most_steps_lost"] = most = max(one["lost"] for one in facts["starts"])
                require(most <= EVERY, f"{most} steps were lost, snapshots are {EVERY} apart")
                require(facts["step"] == int(STEPS[1]), f"the job ended at step {facts['step']}, not {STEPS[1]}")
            finally:
                context.end_pods(*holders)
                target = ("-n", NAMESPACE, "--ignore-not-found", "--wait=true", "--timeout=60s")
                context.kubectl("delete", "jobs.batch.volcano.sh", CLAIMER, *target, check=False, timeout=90)
                if run:
                    context.kubectl("delete", "pytorchjobs.kubeflow.org", run, *target, check=False, timeout=90)


def _begun(context: Context, folder: Path) -> str:
    """Starts the job of the lowest class, as a member; returns its name."""
    words = ("train", "--dir", folder, *SMALL, "--priority", jobs.classes(context)[0], "--detach")
    _, out, said = runs.trainyard(context, *words, timeout=TRAIN_S)
    return out.strip() or _created(said)


def _ended(context: Context, folder: Path, run: str) -> dict[str, Any]:
    """Waits for the job's end as a member; returns its metrics."""
    words = ("train", "--dir", folder, "--attach", run)
    code, out, said = runs.trainyard(context, *words, check=False, timeout=END_S)
    require(code == 0, f"the job ended with {code}: {(said + out)[-600:]}")
    found: dict[str, Any] = json.loads((folder / "results" / run / "metrics.json").read_text())
    return found


def _hold(context: Context, names: list[str]) -> None:
    """Holds a GPU for each of these names, in the claim's class, which therefore can't displace them."""
    own = jobs.classes(context)
    require(len(own) > 1, f"the team {NAMESPACE} has the priority classes {own}, it needs two")
    pods = [context.pod(name, "sleep 900", queue=NAMESPACE) for name in names]
    for pod in pods:
        pod["spec"]["priorityClassName"] = own[1]
    context.kubectl.apply(pods, NAMESPACE)
    until(lambda: all(map(context.placed, names)), CHANGE_S, "the pods that hold GPUs do not start", 1)


def _claim(context: Context, gpus: int) -> None:
    """Starts a gang of the next class that needs so many GPUs, each in its own pod."""
    pod = context.pod(CLAIMER, "sleep 900", queue=NAMESPACE)["spec"]
    pod["priorityClassName"] = jobs.classes(context)[1]
    require(pod["containers"][0]["resources"]["limits"][GPU] == "1", "the claiming pods use one GPU each")
    context.create(jobs.gang(CLAIMER, gpus, pod))


def _sees(context: Context, run: str, world: int, otherwise: str) -> int:
    """Waits until rank 0 has started with so many ranks and nothing came after; returns the seconds that it took."""
    began = time.monotonic()

    def joined() -> bool:
        log = context.kubectl("logs", "-n", NAMESPACE, f"{run}-worker-0", "-c", "pytorch", check=False).stdout
        found = BEGINS.findall(log)
        return bool(found) and int(found[-1][0]) == world

    until(joined, CHANGE_S, otherwise, 1)
    return round(time.monotonic() - began)


def _uids(context: Context, run: str) -> dict[str, str]:
    """UIDs of the job's pods that have a node, by name."""
    pods = context.kubectl.get("pods", "-n", NAMESPACE, "-l", f"trainyard.io/job={run}")
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName")}
