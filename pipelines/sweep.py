"""Hyperparameter search on MNIST: random, grid, or successive halving; the best model is registered, a plot shows all.

    trainyard submit pipelines/sweep.py --param method=halving --param trials=8
    trainyard run --local pipelines/sweep.py --param method=grid

Trials of a round run in parallel, each as its own training job. Successive halving trains all trials
briefly, keeps the better half, and trains it twice as long, twice over; the best of all rounds is registered.
"""

from typing import Dict, List, NamedTuple

from kfp import dsl

from components import pytorch_job, with_store
from components.images import TORCH
from mnist import prepare, register

PARALLEL = 2
TRAIN = ("python3", "-m", "mnist.train_torch", "--data={data}", "--out={out}")


@dsl.component(base_image=TORCH, install_kfp_package=False)
def propose(
    method: str, trials: int, lr_low: float, lr_high: float, batch_sizes: list, epochs: int, seed: int
) -> List[Dict[str, float]]:
    """Settings to try: drawn at random (log-uniform rates), or all of a grid."""
    import random
    import sys

    if method not in ("random", "grid", "halving"):
        sys.exit(f"error: unknown method {method!r}; use random, grid or halving")
    if not (0 < lr_low <= lr_high and batch_sizes and trials > 0):
        sys.exit("error: the search space is empty; check lr_low, lr_high, batch_sizes and trials")
    pick = random.Random(seed)
    ratio = lr_high / lr_low
    if method == "grid":
        steps = max(1, -(-trials // len(batch_sizes)))
        rates = [lr_low * ratio ** (at / max(1, steps - 1)) for at in range(steps)]
        pairs = [(rate, size) for rate in rates for size in batch_sizes][:trials]
    else:
        pairs = [(lr_low * ratio ** pick.random(), pick.choice(batch_sizes)) for _ in range(trials)]
    found = [
        {"trial": number, "lr": float(f"{rate:.3g}"), "batch_size": int(size), "epochs": epochs}
        for number, (rate, size) in enumerate(pairs)
    ]
    for one in found:
        print(one)
    return found


@dsl.component(base_image=TORCH, install_kfp_package=False)
def judge(
    models: dsl.Input[List[dsl.Model]],
    seen: list,
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    plot: dsl.Output[dsl.HTML],
    leader: dsl.Input[dsl.Model] = None,
) -> NamedTuple("Round", [("accuracy", float), ("seen", list), ("trials", List[Dict[str, float]])]):
    """Ranks a round: the best model so far, a plot of all, and the better half, to be trained twice as long.

    `leader` is the best of the rounds before; it stays the best where none of this round is better.
    """
    import html
    import math
    import shutil

    ranked = sorted(models, key=lambda one: -one.metadata["accuracy"])
    best = max([*ranked[:1], *([leader] if leader else [])], key=lambda one: one.metadata["accuracy"])
    shutil.copytree(best.path, model.path)
    model.metadata.update(best.metadata)
    keys = ("trial", "lr", "batch_size", "epochs", "accuracy")
    points = [*seen, *({key: one.metadata[key] for key in keys} for one in reversed(ranked))]
    top = max(points, key=lambda one: one["accuracy"])
    metrics.log_metric("accuracy", top["accuracy"])
    metrics.log_metric("trainings", len(points))

    rates, scores = [math.log10(one["lr"]) for one in points], [one["accuracy"] for one in points]
    left, right, low, high = min(rates) - 0.1, max(rates) + 0.1, min(scores) - 0.01, max(scores) + 0.01
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" font-family="sans-serif" font-size="12">']
    parts.append('<path d="M60 20V310H620" fill="none" stroke="#888"/>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        x, y, rate = 60 + 560 * share, 314 - 290 * share, 10 ** (left + (right - left) * share)
        parts.append(f'<text x="{x:.0f}" y="328" text-anchor="middle">{rate:.2g}</text>')
        parts.append(f'<text x="54" y="{y:.0f}" text-anchor="end">{low + (high - low) * share:.3f}</text>')
    for rate, one in zip(rates, points):
        x, y = 60 + 560 * (rate - left) / (right - left), 310 - 290 * (one["accuracy"] - low) / (high - low)
        title = f"trial {int(one['trial'])}: lr {one['lr']}, batch {int(one['batch_size'])}, "
        title += f"{int(one['epochs'])} epochs, {one['accuracy']:.4f}"
        colour = "#d62728" if one is top else "#1f77b4"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{colour}"><title>{html.escape(title)}</title></circle>'
        )
        print(title)
    parts.append('<text x="340" y="350" text-anchor="middle">learning rate</text>')
    parts.append('<text x="60" y="14">test accuracy; the best is red</text></svg>')
    with open(plot.path, "w") as file:
        file.write("<!doctype html><title>sweep</title>" + "".join(parts))

    better = [one.metadata for one in ranked[: max(1, len(ranked) // 2)]]
    trials = [
        {
            "trial": int(one["trial"]),
            "lr": one["lr"],
            "batch_size": int(one["batch_size"]),
            "epochs": 2 * int(one["epochs"]),
        }
        for one in better
    ]
    return top["accuracy"], points, trials


def rung(trials: object, dataset: object, samples: object, gpus: object) -> object:
    """Trains all trials of a round, some at a time; returns the output to collect."""
    with dsl.ParallelFor(trials, parallelism=PARALLEL) as trial:
        job = pytorch_job(
            name="trial",
            command=[*TRAIN, "--lr={lr}", "--batch-size={batch_size}", "--epochs={epochs}"],
            arguments=f"--train-samples={samples}",
            gpus=gpus,
            cpu="150m",
            memory="1Gi",
            settings=trial,
            data=dataset,
        )
    return job.outputs["model"]


def keep(judged: dsl.PipelineTask, dataset: object, name: object) -> dsl.PipelineTask:
    """Registers the best model so far."""
    return with_store(
        register(model=judged.outputs["model"], dataset=dataset, name=name, accuracy=judged.outputs["accuracy"])
    )


class Outputs(NamedTuple):
    """Outputs of the pipeline."""

    accuracy: float
    model: str


@dsl.pipeline(name="sweep", description="Tries settings of MNIST training and keeps the best model")
def sweep(
    method: str = "random",
    trials: int = 4,
    lr_low: float = 0.0005,
    lr_high: float = 0.02,
    batch_sizes: list = [64, 256],
    epochs: int = 1,
    seed: int = 1,
    source: str = "s3://datasets/shared/mnist",
    samples: int = 6000,
    gpus: int = 1,
    model_name: str = "mnist-sweep",
) -> Outputs:
    prepared = with_store(prepare(source=source, samples=samples))
    dataset, count = prepared.outputs["dataset"], prepared.outputs["Output"]
    plan = propose(
        method=method, trials=trials, lr_low=lr_low, lr_high=lr_high, batch_sizes=batch_sizes, epochs=epochs, seed=seed
    )
    first = rung(plan.output, dataset, count, gpus)
    one = judge(models=dsl.Collected(first), seen=[])
    with dsl.If(method == "halving", name="halving"):
        second = rung(one.outputs["trials"], dataset, count, gpus)
        two = judge(models=dsl.Collected(second), seen=one.outputs["seen"], leader=one.outputs["model"])
        third = rung(two.outputs["trials"], dataset, count, gpus)
        three = judge(models=dsl.Collected(third), seen=two.outputs["seen"], leader=two.outputs["model"])
        halved = keep(three, dataset, model_name)
    with dsl.Else(name="one-round"):
        flat = keep(one, dataset, model_name)
    return Outputs(
        accuracy=dsl.OneOf(halved.outputs["accuracy"], flat.outputs["accuracy"]),
        model=dsl.OneOf(halved.outputs["uri"], flat.outputs["uri"]),
    )
