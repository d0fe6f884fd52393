"""Shared by checks of model servers: the example pipeline's model, its two versions, and the one in service."""

import json
from typing import Any

from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.recorder import had, require

MODEL = "digits"
NAME = f"model-{MODEL}"  # name of its Deployment and Service
PIPELINE = runs.PIPELINES / "serve.py"
SMALL = ("-p", "samples=4000", "-p", "nodes=1", "-p", "gpus=0")
EPOCHS = (1, 4)  # for the first version, and for the second, which is better
USUAL = ("--scale-by", "none", "--replicas", "2", "--cpu", "200m")
RUN_S, READY_S = 600, 400


def train(context: Context, epochs: int) -> tuple[str, runs.Seen]:
    """A version from the pipeline, registered and held back by its gate, and the run."""
    asked = (*SMALL, "-p", f"epochs={epochs}", "-p", "minimum=2")  # no accuracy is 2
    run = runs.succeed(context, PIPELINE, *asked, timeout=RUN_S)
    return run.output("register-model", "version"), run


def listed(context: Context) -> list[dict[str, Any]]:
    """The model's versions from `trainyard models list`, newest first."""
    found: list[dict[str, Any]] = json.loads(
        runs.trainyard(context, "models", "list", MODEL, "-o", "json", timeout=180)[1]
    )
    return found


def two(context: Context) -> tuple[str, str]:
    """The first two versions, oldest first; trained if a kept cluster has none."""
    there = [row["version"] for row in reversed(listed(context))]
    for epochs in EPOCHS[len(there) :]:
        there.append(train(context, epochs)[0])
    return there[0], there[1]


def serve(context: Context, version: str, *words: str) -> str:
    """Run `trainyard serve`, until every replica of the version answers; returns its output."""
    return runs.trainyard(context, "serve", f"{MODEL}@{version}", *words, timeout=READY_S)[1].strip()


def rows(context: Context) -> list[dict[str, Any]]:
    """The rows of `trainyard serve list`."""
    found: list[dict[str, Any]] = json.loads(runs.trainyard(context, "serve", "list", "-o", "json")[1])
    return found


def now(context: Context, model: str = MODEL) -> str:
    """The version in service; "" if there is none."""
    return next((row["version"] for row in rows(context) if row["model"] == model and row["track"] == "stable"), "")


def begin(context: Context) -> tuple[str, str]:
    """Puts the first version into service with two replicas; returns both versions."""
    first, second = two(context)
    if any(
        row["model"] == MODEL and row["access"] != "team" for row in rows(context)
    ):  # it has keys, after a failed check
        runs.trainyard(context, "serve", "stop", MODEL)
    serve(context, first, *USUAL)
    require(now(context) == first, f"{now(context)} is in service, not {first}")
    return first, second


def deployment(context: Context) -> dict[str, Any]:
    """The Deployment of the version in service; {} if there is none."""
    return context.kubectl.find("deployment", NAME, "-n", NAMESPACE) or {}


def port(context: Context) -> int:
    """The port on every node where the model answers requests from outside."""
    found = had(
        context.kubectl.find("service", f"{NAME}-outside", "-n", NAMESPACE), "no Service is reachable from outside"
    )
    return int(found["spec"]["ports"][0]["nodePort"])
