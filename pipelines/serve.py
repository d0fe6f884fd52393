"""From data to a model in service: prepare, train, evaluate, register, and replace the version in service.

Only a version that is at least as accurate replaces it; one that does not get ready is rolled back. Serve the model
once before the first run: trainyard serve digits

trainyard submit pipelines/serve.py --param epochs=3
trainyard run --local pipelines/serve.py
"""

from typing import NamedTuple

from kfp import dsl

from components import gate_model, pytorch_job, register_model, serve_model, with_store
from components.images import TORCH


@dsl.component(base_image=TORCH, install_kfp_package=False)
def prepare(source: str, samples: int, dataset: dsl.Output[dsl.Dataset]) -> int:
    """Checks the data set and cuts it to `samples` training images; returns how many there are."""
    from mnist import prepare

    dataset.metadata.update(prepare.prepare(source, dataset.path, samples))
    return dataset.metadata["train"]


@dsl.component(base_image=TORCH, install_kfp_package=False)
def export(model: dsl.Input[dsl.Model], dataset: dsl.Input[dsl.Dataset], served: dsl.Output[dsl.Model]) -> float:
    """Makes the file that the server reads, and its card; returns the accuracy on the test images."""
    from mnist import evaluate
    from mnist import served as files

    trained, (x, y) = evaluate.load_model(model.path), evaluate.load_tests(dataset.path)
    accuracy = trained.accuracy(x, y)
    files.write(trained, served.path, accuracy, dict(dataset.metadata))
    print(f"accuracy {accuracy:.4f} on {len(y)} test images")
    return accuracy


class Outputs(NamedTuple):
    """Outputs of the pipeline."""

    accuracy: float
    version: str


@dsl.pipeline(name="serve", description="Trains, registers, and serves what is at least as good as the one in service")
def serve(
    source: str = "s3://datasets/shared/mnist",
    samples: int = 12000,
    nodes: int = 2,
    gpus: int = 1,
    epochs: int = 2,
    lr: float = 0.002,
    minimum: float = 0.75,
    gain: float = 0.0,
    model_name: str = "digits",
) -> Outputs:
    prepared = with_store(prepare(source=source, samples=samples))
    trained = pytorch_job(
        name="digits",
        command=["python3", "-m", "mnist.train_torch", "--data={data}", "--out={out}"],
        arguments=f"--epochs={epochs} --lr={lr} --train-samples={prepared.outputs['Output']}",
        nodes=nodes,
        gpus=gpus,
        cpu="150m",
        memory="1Gi",
        data=prepared.outputs["dataset"],
    )
    exported = export(model=trained.outputs["model"], dataset=prepared.outputs["dataset"])
    kept = register_model(model=exported.outputs["served"], name=model_name)
    judged = gate_model(name=model_name, version=kept.outputs["version"], gain=gain, minimum=minimum)
    with dsl.If(judged.outputs["passed"] == True):  # noqa: E712  kfp makes the condition of it
        serve_model(name=model_name, version=kept.outputs["version"])
    return Outputs(accuracy=exported.outputs["Output"], version=kept.outputs["version"])
