"""The cost of kfp here: the wait for a first step, a rerun from the cache, and small steps against a bare workflow."""

import json
import time

from trainyard.times import when
from trainyard_dev import campaigns
from trainyard_dev.bench import kfp, summary
from trainyard_dev.bench.runner import FOLDER
from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.entry import ALONE, DATA, KFP_IMAGES, TENSORFLOW, TORCH, check
from trainyard_dev.e2e.recorder import Figures, had, require, until
from trainyard_dev.e2e.runs import FLOWS, PIPELINES, Seen

STEPS, MANY_S, FEW_S = 500, 2400, 420


@check("pipelines.kfp-cost", title="the first step's wait, mnist from the cache, 500 small steps, a plain workflow",
       asked="KFP_COST", needs=(DATA,), locks={ALONE}, long=True, images=(*KFP_IMAGES, TENSORFLOW, TORCH))  # fmt: skip
def cost(context: Context, figures: Figures) -> None:
    """Measures, and fails above a goal; the figures and a plot are written to the folder of benchmarks in any case."""
    found = {}
    for again in ("first run", "second run"):
        asked = time.time()
        seen = runs.succeed(context, FLOWS / "cost.py", "--name", "first", "--no-cache", timeout=FEW_S)
        found[kfp.FIRST, again] = float(seen.output("began")) - asked
        runs.forget(context, seen)
    mnist = [runs.succeed(context, PIPELINES / "mnist.py", timeout=FEW_S) for _ in range(2)]
    require(not mnist[1].pods, f"steps ran again: {', '.join(mnist[1].ran)}")
    found[kfp.CACHED, "kfp"] = _seconds(mnist[1])
    runs.forget(context, *mnist)
    items = f"items={json.dumps(list(range(STEPS)))}"
    for column, file, options in (
        (kfp.BARE, "bare.yaml", ()),
        ("kfp", "cost.py", ("--name", "many", "--no-cache")),
    ):
        many = runs.succeed(context, FLOWS / file, "-p", items, *options, timeout=MANY_S)
        require(len(many.pods) == STEPS, f"{many.name} had {len(many.pods)} pods, not {STEPS}")
        found[kfp.MANY, column] = _seconds(many)
        _deleted(context, many)
    made = kfp.figures(found)
    summary.write_made(made, FOLDER)
    kfp.draw(made, FOLDER)
    figures |= {f"{one.case}, {one.column}": round(one.value, 1) for one in made}
    over = [one.id for one in made if one.bound and one.value > one.bound]
    require(not over, f"above the goal: {', '.join(over)}")
    campaigns.ended("kfp-cost", good=True)


def _deleted(context: Context, seen: Seen) -> None:
    """Deletes a run, and waits until its pods are gone: their deletion must not slow the next run."""
    runs.forget(context, seen)
    pods = ("pods", "-n", seen.team, "-l", f"{runs.OF_RUN}={seen.name}")
    until(lambda: not context.kubectl.get(*pods), FEW_S, f"pods of {seen.name} remain after {FEW_S} s")


def _seconds(seen: Seen) -> float:
    """Seconds from the run's start to its end, by Argo's times."""
    status = seen.workflow["status"]
    return (had(when(status["finishedAt"]), "no end") - had(when(status["startedAt"]), "no begin")).total_seconds()
