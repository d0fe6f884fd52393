"""What kfp costs here: the wait for a first step, a rerun from the cache, and small steps against a bare workflow."""

from __future__ import annotations

import csv
import json
import time

from trainyard.paths import OUT
from trainyard.times import when
from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import had, require
from trainyard_dev.e2e.runs import FLOWS, PIPELINES, Seen

ID, TITLE = "pipelines.kfp-cost", "a first step's wait, mnist from the cache, 500 small steps against a bare workflow"
FILE = OUT / "kfp" / "cost.csv"
STEPS, MANY_S, FEW_S = 500, 2400, 420
GOALS = {"first_s": 6.0, "cached_s": 2.0, "ratio": 1.3}


def cost(context: Context) -> None:
    """Measures, and fails above a goal; what was found lies in `FILE` all the same."""
    with context.recorder.check(ID, TITLE) as figures:
        warm = runs.succeed(context, FLOWS / "cost.py", "--name", "first", "--no-cache", timeout=FEW_S)
        asked = time.time()
        seen = runs.succeed(context, FLOWS / "cost.py", "--name", "first", "--no-cache", timeout=FEW_S)
        figures["first_s"] = round(float(seen.output("began")) - asked, 1)
        mnist = [runs.succeed(context, PIPELINES / "mnist.py", timeout=FEW_S) for _ in range(2)]
        figures["cached_s"] = _seconds(mnist[1])
        require(not mnist[1].pods, f"steps ran again: {', '.join(mnist[1].ran)}")
        runs.forget(context, warm, seen, *mnist)
        items = f"items={json.dumps(list(range(STEPS)))}"
        kfp = ("--name", "many", "--no-cache")
        for name, file, options in (("bare_s", "bare.yaml", ()), ("kfp_s", "cost.py", kfp)):
            many = runs.succeed(context, FLOWS / file, "-p", items, *options, timeout=MANY_S)
            figures[name] = _seconds(many)
            require(len(many.pods) == STEPS, f"{many.name} had {len(many.pods)} pods, due are {STEPS}")
            runs.forget(context, many)
        figures["ratio"] = round(figures["kfp_s"] / figures["bare_s"], 2)
        FILE.parent.mkdir(parents=True, exist_ok=True)
        rows = [(key, value, GOALS.get(key, "")) for key, value in figures.items()]
        with FILE.open("w", newline="") as out:
            csv.writer(out).writerows([("figure", "value", "goal"), *rows])
        over = [f"{key} is {figures[key]}, due is {goal}" for key, goal in GOALS.items() if figures[key] > goal]
        require(not over, "; ".join(over))


def _seconds(seen: Seen) -> float:
    """From the run's begin to its end, as Argo has them."""
    status = seen.workflow["status"]
    return (had(when(status["finishedAt"]), "no end") - had(when(status["startedAt"]), "no begin")).total_seconds()
