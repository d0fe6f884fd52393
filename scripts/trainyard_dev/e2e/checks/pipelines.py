"""Pipelines on the cluster: the examples, the cache, failures, the cost of a step."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

from trainyard_dev.e2e import runs, store
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SYSTEM, Context
from trainyard_dev.e2e.entry import ALONE, DATA, GPUS, KFP_IMAGES, PIPELINE_CODE, PIPELINE_IMAGES, WAITS, check
from trainyard_dev.e2e.recorder import Figures, patience, require
from trainyard_dev.e2e.runs import FLOWS, PIPELINES, Seen

BUCKET = "runs"
EXAMPLE_S = 420
CONTROLLER = "app.kubernetes.io/name=workflow-controller"
OUTAGE_S = 45  # two minutes were tried as well; a run has no time for that
OTHERS = {"sweep": ("-p", "trials=2"), "compress": ()}
STARTS_S = 180


@check("pipelines.mnist", "pipelines.cached", main=("pipelines.mnist",), each=True, rank=WAITS, needs=(DATA,),
       shares={GPUS}, images=PIPELINE_IMAGES, inputs=PIPELINE_CODE)  # fmt: skip
def mnist(context: Context) -> None:
    """The first example, and the same once more."""
    first = _mnist(context)
    if first and context.wants("pipelines.cached"):
        _again(context, first)


@check(*(f"pipelines.{name}" for name in OTHERS), needs=(DATA,), shares={GPUS}, images=PIPELINE_IMAGES,
       inputs=PIPELINE_CODE)  # fmt: skip
def others(context: Context) -> None:
    """The other examples, in parallel."""
    begun: dict[str, Seen] = {}
    for name, options in OTHERS.items():
        with context.recorder.check(f"pipelines.{name}", f"the example {name}, submitted by a member") as figures:
            if not begun:  # they run in parallel
                begun |= {one: runs.submit(context, PIPELINES / f"{one}.py", *more) for one, more in OTHERS.items()}
            _placed(runs.succeeded(context, begun[name], EXAMPLE_S), figures)
            figures["options"] = " ".join(options)


@check("pipelines.finetune",
       title="finetune: a registered model is trained on new data, compared, and registered if better",
       needs=("pipelines.mnist",), shares={GPUS}, images=PIPELINE_IMAGES, inputs=PIPELINE_CODE)  # fmt: skip
def finetune(context: Context, figures: Figures) -> None:
    """Trains the registered model of `mnist` further, on images after those that it was trained on."""
    seen = runs.succeed(context, PIPELINES / "finetune.py", timeout=EXAMPLE_S)
    _placed(seen, figures)
    before, after = (float(seen.output("compare", name)) for name in ("before", "after"))
    figures |= {"accuracy_before": round(before, 4), "accuracy_after": round(after, 4)}
    uri, base = seen.output("keep", "uri"), seen.output("find", "uri")
    require(after > before, f"accuracy was {before} before and is {after} after training on new data")
    require(uri != base, f"the better model was not registered; {base} stays")
    [job] = seen.jobs.values()
    told = json.dumps(job["spec"]["pytorchReplicaSpecs"])
    require(f"--start={base}" in told, f"training did not start from the registered model {base}")
    with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as s3:
        place = uri.removeprefix(f"s3://{BUCKET}/")
        card = s3.read_json(BUCKET, f"{place}/model.json")
        newest = s3.read_json(BUCKET, f"{place.rpartition('/')[0]}/newest.json")
    require(card["base"] == base, f"the card of {uri} names {card.get('base')} as its base, not {base}")
    require(newest["version"] == card["version"], f"the newest version is {newest['version']}, not {uri}")


def _mnist(context: Context) -> Seen | None:
    title = "mnist: prepare, train on two nodes, evaluate, register, submitted by a member"
    with context.recorder.check("pipelines.mnist", title) as figures:
        seen = runs.succeed(context, PIPELINES / "mnist.py", timeout=EXAMPLE_S)
        _placed(seen, figures)
        with store.connect(context.kubectl, SYSTEM, of=NAMESPACE) as s3:
            names = s3.names(BUCKET, f"{NAMESPACE}/pipelines/{seen.name}/")
            left = sum(name.endswith("lineage.json") for name in names)
            require(left == len(seen.ran), f"of {len(seen.ran)} steps {left} left lineage")
            require(any("/model/" in name for name in names), "the run's artifacts contain no model")
            require(any(name.endswith("main.log") for name in names), "no step's log was kept")
            registered = s3.names(BUCKET, f"{NAMESPACE}/models/mnist/")
            require(registered, "no model was registered")
        figures |= {"objects": len(names), "accuracy": seen.output("evaluate")}
        require(len(seen.jobs) == 1, f"{len(seen.jobs)} training jobs were created, not one")
        return seen
    return None


def _placed(seen: Seen, figures: dict[str, Any]) -> None:
    """Every pod is one step, in the team's queue, under the platform's scheduler, as the team's account."""
    steps = seen.run.steps
    figures |= {"seconds": round(seen.seconds), "steps": len(seen.ran), "pods": len(seen.pods)}
    require(
        len(seen.pods) == sum(step.attempts for step in steps) >= len(seen.ran) > 0,
        f"the steps {', '.join(seen.ran)} ran in the pods {', '.join(sorted(seen.pods))}",
    )
    runs.require_ours(seen)
    figures["queue"] = ", ".join(sorted(seen.queues))


def _again(context: Context, first: Seen) -> None:
    with context.recorder.check("pipelines.cached", "the same pipeline runs again from the cache") as figures:
        seen = runs.succeed(context, PIPELINES / "mnist.py", timeout=60)
        figures |= {"seconds": round(seen.seconds), "steps": len(seen.cached), "first_seconds": round(first.seconds)}
        require(not seen.pods, f"steps ran again: {', '.join(seen.ran)}")
        require(seen.cached == first.ran, f"{', '.join(seen.cached)} came from the cache, not {', '.join(first.ran)}")
        was, now = first.output("evaluate"), seen.output("evaluate")
        require(was == now, f"the accuracy was {was} and is {now} from the cache")


@check("pipelines.as-written",
       title="a pipeline as in kfp's documentation runs without a network: loop, condition, artifact, exit handler",
       shares={GPUS}, images=KFP_IMAGES, inputs=PIPELINE_CODE)  # fmt: skip
def as_written(context: Context, figures: Figures) -> None:
    """Components that no option and no image adapts to this platform."""
    seen = runs.succeed(context, FLOWS / "as_written.py", timeout=EXAMPLE_S)
    _placed(seen, figures)
    said = seen.output("say-hello")
    require(said == "Hello, World!", f"the first step's output is {said!r}")
    require(len(seen.ran) == 7, f"these steps ran: {', '.join(seen.ran)}; expected seven")
    log = runs.trainyard(context, "runs", "logs", seen.name, "say-hello")[1]
    require("pip" not in log, f"the step installed a package: {log[-300:]}")


@check("pipelines.failing", title="a failing step ends the run, and submit prints the step's own message",
       needs=(DATA,), shares={GPUS}, images=PIPELINE_IMAGES, inputs=PIPELINE_CODE)  # fmt: skip
def failing(context: Context, figures: Figures) -> None:
    """A bar that no model reaches: the command ends with 1 and the step's own sentence, and nothing else runs."""
    began = time.monotonic()
    code, _, said = runs.trainyard(
        context, "submit", PIPELINES / "mnist.py", "--wait", "-p", "minimum=1.1", check=False, timeout=EXAMPLE_S
    )
    figures["seconds"] = round(time.monotonic() - began)
    found = re.search(r"accuracy 0\.\d+ is below the bar of 1\.1000", said)
    require(code == 1 and found, f"submit exited with {code}: {said[-500:]}")
    figures["said"] = found[0]  # type: ignore[index]


@check("pipelines.outages", title=f"a killed controller and {OUTAGE_S} s without the store repeat no training",
       needs=(DATA,), after=("seeing.services",), locks={ALONE}, images=PIPELINE_IMAGES,
       inputs=PIPELINE_CODE)  # fmt: skip
def outages(context: Context, figures: Figures) -> None:
    """Kills the controller while a job trains, and stops the store once the job has ended."""
    seen = runs.submit(context, PIPELINES / "mnist.py", "-p", "lr=0.003")
    _until(context, seen, lambda: bool(seen.jobs), "no training job was created")
    context.kubectl("delete", "pods", "-n", SYSTEM, "-l", f"{CONTROLLER},trainyard.io/serves={seen.team}", "--now")
    _until(context, seen, lambda: any(map(_done, seen.jobs.values())), "the training job does not end")
    gone = time.monotonic()
    [found] = context.kubectl.get("statefulsets,deployments", "-n", SYSTEM, "-l", "app.kubernetes.io/name=minio")
    the_store = f"{found['kind'].lower()}/{found['metadata']['name']}"
    with context.without(the_store):
        time.sleep(OUTAGE_S)
    context.rolled_out(the_store, 120)
    figures["store_away_seconds"] = round(time.monotonic() - gone)
    runs.end(context, seen, EXAMPLE_S)
    require(seen.phase == "Succeeded", f"the run ended {seen.phase}: {seen.why_failed}")
    figures |= {
        "seconds": round(seen.seconds),
        "accuracy": seen.output("evaluate"),
        "training_jobs": len(seen.jobs),
    }
    require(len(seen.jobs) == 1, f"{len(seen.jobs)} training jobs were created, not one")
    runs.forget(context, seen)


def _until(context: Context, seen: Seen, holds: Callable[[], bool], otherwise: str) -> None:
    wait = patience(STARTS_S, runs.POLL_S / 2)
    while not holds():
        runs.poll(context, seen)
        require(seen.phase not in runs.ENDED, f"the run ended {seen.phase} before: {seen.why_failed}")
        wait(f"{otherwise} within {STARTS_S} s")


def _done(job: dict[str, Any]) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Succeeded" and one["status"] == "True" for one in conditions)


@check("pipelines.two-teams", title="a team with the same inputs does not use another team's cache", shares={GPUS},
       images=PIPELINE_IMAGES, inputs=PIPELINE_CODE)  # fmt: skip
def two_teams(context: Context, figures: Figures) -> None:
    """The same line by one team, by another, and by the first again: only the last is served from a cache."""
    salt = f"salt=e2e-{time.time_ns()}"  # new to all earlier runs, so that nothing is cached
    first = runs.succeed(context, FLOWS / "line.py", "-p", salt, timeout=240)
    require(not first.cached, f"steps of a line with a salt of its own came from a cache: {first.cached}")
    require(len(first.pods) == 4, f"four steps ran in {len(first.pods)} pods: {sorted(first.pods)}")
    other = runs.succeed(context, FLOWS / "line.py", "-p", salt, timeout=240, team=OTHER)
    figures |= {"from_cache": len(other.cached), "pods": len(other.pods)}
    require(not other.cached, f"steps of {OTHER} came from a cache: {', '.join(other.cached)}")
    own = runs.succeed(context, FLOWS / "line.py", "-p", salt, timeout=120)
    require(len(own.cached) == 4, f"of the team's own run {len(own.cached)} of 4 steps came from its cache")
    with store.connect(context.kubectl, SYSTEM, of=OTHER) as s3:
        require(s3.names(BUCKET, f"{OTHER}/pipelines/{other.name}/"), "the other team's artifacts are stored elsewhere")
    runs.forget(context, first, other, own)
