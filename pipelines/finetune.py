"""Trains a registered model further on new data: find it, train from its weights, compare, register what is better.

trainyard submit pipelines/finetune.py --param base=mnist
trainyard run --local pipelines/finetune.py
"""

from typing import NamedTuple

from kfp import dsl

from components import pytorch_job, with_store
from components.images import TORCH


@dsl.component(base_image=TORCH, install_kfp_package=False)
def find(base: str, model: dsl.Output[dsl.Model]) -> NamedTuple("Found", [("uri", str), ("name", str)]):
    """Finds a registered model by `name` (the newest) or `name@version`, and copies its files."""
    from mnist import registry

    card = registry.find(base)
    registry.fetch(card, model.path)
    model.metadata.update({key: card[key] for key in ("name", "version", "uri")})
    print(f"{card['name']} {card['version']} at {card['uri']}")
    return card["uri"], card["name"]


@dsl.component(base_image=TORCH, install_kfp_package=False)
def prepare(source: str, skip: int, samples: int, dataset: dsl.Output[dsl.Dataset]) -> int:
    """Selects the `samples` training images after the first `skip`, which the model has seen; returns how many."""
    from mnist import prepare

    dataset.metadata.update(prepare.prepare(source, dataset.path, samples, skip))
    return dataset.metadata["train"]


@dsl.component(base_image=TORCH, install_kfp_package=False)
def compare(
    base: dsl.Input[dsl.Model],
    tuned: dsl.Input[dsl.Model],
    dataset: dsl.Input[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
) -> NamedTuple("Compared", [("before", float), ("after", float)]):
    """Accuracy of both models on the same test images."""
    from mnist import evaluate

    x, y = evaluate.load_tests(dataset.path)
    before, after = (evaluate.load_model(model.path).accuracy(x, y) for model in (base, tuned))
    metrics.log_metric("accuracy_before", before)
    metrics.log_metric("accuracy_after", after)
    print(f"accuracy {before:.4f} before, {after:.4f} after ({after - before:+.4f}) on {len(y)} test images")
    return before, after


@dsl.component(base_image=TORCH, install_kfp_package=False)
def keep(
    tuned: dsl.Input[dsl.Model],
    dataset: dsl.Input[dsl.Dataset],
    name: str,
    base: str,
    before: float,
    after: float,
    gain: float,
) -> NamedTuple("Kept", [("uri", str), ("registered", bool)]):
    """Registers the tuned model under the same name where it is better by more than `gain`; else the base stays."""
    from mnist import registry

    if after <= before + gain:
        print(f"not registered: accuracy {after:.4f} is not more than {gain:.4f} above {before:.4f}; {base} stays")
        return base, False
    card = registry.register(tuned.path, name, {"accuracy": after, "base": base, "data": dict(dataset.metadata)})
    print(f"{name} {card['version']} at {card['uri']}, made of {base}")
    return card["uri"], True


class Outputs(NamedTuple):
    """Outputs of the pipeline."""

    accuracy_before: float
    accuracy_after: float
    model: str
    registered: bool


@dsl.pipeline(name="finetune", description="Trains a registered model on new data; registers it where it is better")
def finetune(
    base: str = "mnist",
    source: str = "s3://datasets/shared/mnist",
    skip: int = 12000,
    samples: int = 12000,
    nodes: int = 2,
    gpus: int = 1,
    epochs: int = 1,
    lr: float = 0.001,
    gain: float = 0.0,
) -> Outputs:
    found = with_store(find(base=base))
    found.set_caching_options(False)  # the newest model may be another one tomorrow
    prepared = with_store(prepare(source=source, skip=skip, samples=samples))
    dataset = prepared.outputs["dataset"]
    tuned = pytorch_job(
        name="finetune",
        command=["python3", "-m", "mnist.train_torch", "--data={data}", "--out={out}"],
        arguments=f"--start={found.outputs['uri']} --epochs={epochs} --lr={lr} "
        f"--train-samples={prepared.outputs['Output']}",
        nodes=nodes,
        gpus=gpus,
        cpu="150m",
        memory="1Gi",
        data=dataset,
    )
    judged = compare(base=found.outputs["model"], tuned=tuned.outputs["model"], dataset=dataset)
    kept = with_store(
        keep(
            tuned=tuned.outputs["model"],
            dataset=dataset,
            name=found.outputs["name"],
            base=found.outputs["uri"],
            before=judged.outputs["before"],
            after=judged.outputs["after"],
            gain=gain,
        )
    )
    return Outputs(
        accuracy_before=judged.outputs["before"],
        accuracy_after=judged.outputs["after"],
        model=kept.outputs["uri"],
        registered=kept.outputs["registered"],
    )
