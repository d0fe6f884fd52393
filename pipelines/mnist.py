"""MNIST from data to a registered model: prepare, train on several nodes, evaluate, register.

trainyard submit pipelines/mnist.py --param epochs=3
trainyard run --local pipelines/mnist.py
"""

from typing import NamedTuple

from kfp import dsl

from components import pytorch_job, with_store
from components.images import TORCH


@dsl.component(base_image=TORCH, install_kfp_package=False)
def prepare(source: str, samples: int, dataset: dsl.Output[dsl.Dataset]) -> int:
    """Checks the data set and cuts it to `samples` training images; returns how many there are."""
    from mnist import prepare

    dataset.metadata.update(prepare.prepare(source, dataset.path, samples))
    return dataset.metadata["train"]


@dsl.component(base_image=TORCH, install_kfp_package=False)
def evaluate(
    model: dsl.Input[dsl.Model],
    dataset: dsl.Input[dsl.Dataset],
    minimum: float,
    metrics: dsl.Output[dsl.Metrics],
    classes: dsl.Output[dsl.ClassificationMetrics],
) -> float:
    """Measures the model on the test images; fails below `minimum`."""
    import sys

    from mnist import evaluate

    trained, (x, y) = evaluate.load_model(model.path), evaluate.load_tests(dataset.path)
    accuracy = trained.accuracy(x, y)
    metrics.log_metric("accuracy", accuracy)
    table = evaluate.confusion(trained, x, y)
    classes.log_confusion_matrix([str(number) for number in range(len(table))], table)
    if accuracy < minimum:
        sys.exit(f"error: accuracy {accuracy:.4f} is below the bar of {minimum:.4f}; train longer or lower `minimum`")
    print(f"accuracy {accuracy:.4f} on {len(y)} test images")
    return accuracy


@dsl.component(base_image=TORCH, install_kfp_package=False)
def register(
    model: dsl.Input[dsl.Model],
    dataset: dsl.Input[dsl.Dataset],
    name: str,
    accuracy: float,
    registered: dsl.Output[dsl.Model],
) -> NamedTuple("Registered", [("uri", str), ("version", str), ("accuracy", float)]):
    """Puts the model into the team's registry under a version made from its content; returns where it is."""
    import shutil

    from mnist import registry

    card = registry.register(model.path, name, {"accuracy": accuracy, "data": dict(dataset.metadata)})
    shutil.copytree(model.path, registered.path)
    registered.metadata.update({key: card[key] for key in ("name", "version", "uri", "accuracy")})
    print(f"{name} {card['version']} at {card['uri']}")
    return card["uri"], card["version"], accuracy


class Outputs(NamedTuple):
    """Outputs of the pipeline."""

    accuracy: float
    model: str


@dsl.pipeline(name="mnist", description="Prepares MNIST, trains on several nodes, evaluates and registers the model")
def mnist(
    source: str = "s3://datasets/shared/mnist",
    samples: int = 12000,
    nodes: int = 2,
    gpus: int = 1,
    epochs: int = 2,
    lr: float = 0.002,
    batch_size: int = 128,
    minimum: float = 0.75,
    model_name: str = "mnist",
) -> Outputs:
    prepared = with_store(prepare(source=source, samples=samples))
    trained = pytorch_job(
        name="mnist",
        command=["python3", "-m", "mnist.train_torch", "--data={data}", "--out={out}"],
        arguments=f"--epochs={epochs} --lr={lr} --batch-size={batch_size} --train-samples={prepared.outputs['Output']}",
        nodes=nodes,
        gpus=gpus,
        cpu="150m",
        memory="1Gi",
        data=prepared.outputs["dataset"],
    )
    judged = evaluate(model=trained.outputs["model"], dataset=prepared.outputs["dataset"], minimum=minimum)
    kept = with_store(
        register(
            model=trained.outputs["model"],
            dataset=prepared.outputs["dataset"],
            name=model_name,
            accuracy=judged.outputs["Output"],
        )
    )
    return Outputs(accuracy=judged.outputs["Output"], model=kept.outputs["uri"])
