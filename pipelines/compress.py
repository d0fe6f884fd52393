"""Makes the trained model smaller: dynamic quantization and pruning, with accuracy and size before and after.

trainyard submit pipelines/compress.py --param shares='[0.5, 0.8, 0.9]'
trainyard run --local pipelines/compress.py
"""

from typing import List, NamedTuple

from kfp import dsl

from components import pytorch_job, with_store
from components.images import TORCH
from mnist import prepare, register


@dsl.component(base_image=TORCH, install_kfp_package=False)
def quantize(model: dsl.Input[dsl.Model], dataset: dsl.Input[dsl.Dataset], small: dsl.Output[dsl.Model]) -> float:
    """Weights as bytes, activations quantized while it runs; returns the accuracy."""
    import os

    from mnist import compress, evaluate, perceptron

    trained, (x, y) = evaluate.load_model(model.path), evaluate.load_tests(dataset.path)
    made = compress.quantize(trained)
    accuracy = perceptron.accuracy(made.logits, x, y)
    os.makedirs(small.path)
    with open(os.path.join(small.path, "quantized.bin"), "wb") as file:
        file.write(made.blob)
    small.metadata.update({"kind": "quantized to int8", "accuracy": accuracy, "bytes": len(made.blob), "by": made.by})
    print(f"int8 by {made.by}: accuracy {accuracy:.4f}, {len(made.blob)} bytes")
    return accuracy


@dsl.component(base_image=TORCH, install_kfp_package=False)
def prune(
    model: dsl.Input[dsl.Model], dataset: dsl.Input[dsl.Dataset], share: float, small: dsl.Output[dsl.Model]
) -> float:
    """The smallest weights of each layer set to zero; returns the accuracy."""
    import os

    from mnist import compress, evaluate, perceptron

    trained, (x, y) = evaluate.load_model(model.path), evaluate.load_tests(dataset.path)
    pruned, made = compress.prune(trained, share)
    accuracy = perceptron.accuracy(made.logits, x, y)
    os.makedirs(small.path)
    with open(os.path.join(small.path, perceptron.FILE), "wb") as file:
        file.write(perceptron.to_bytes(pruned))
    metadata = {"kind": f"{share:.0%} of weights pruned", "accuracy": accuracy, "bytes": len(made.blob), "by": made.by}
    small.metadata.update(metadata)
    print(f"{metadata['kind']} by {made.by}: accuracy {accuracy:.4f}, {len(made.blob)} bytes gzipped")
    return accuracy


@dsl.component(base_image=TORCH, install_kfp_package=False)
def compare(
    model: dsl.Input[dsl.Model],
    dataset: dsl.Input[dsl.Dataset],
    quantized: dsl.Input[dsl.Model],
    pruned: dsl.Input[List[dsl.Model]],
    loss: float,
    chosen: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    report: dsl.Output[dsl.HTML],
) -> NamedTuple("Compared", [("before", float), ("after", float), ("kind", str)]):
    """Accuracy and size before and after; chooses the smallest model that loses at most `loss` of accuracy."""
    import gzip
    import html
    import shutil

    from mnist import evaluate, perceptron

    trained, (x, y) = evaluate.load_model(model.path), evaluate.load_tests(dataset.path)
    before, blob = trained.accuracy(x, y), perceptron.to_bytes(trained)
    whole = {"kind": "as trained", "accuracy": before, "bytes": len(blob), "gzipped": len(gzip.compress(blob))}
    rows = [(model, whole), *((one, one.metadata) for one in [quantized, *pruned])]
    fitting = [row for row in rows if row[1]["accuracy"] >= before - loss]
    best, found = min(fitting, key=lambda row: row[1]["bytes"])
    shutil.copytree(best.path, chosen.path)
    chosen.metadata.update({key: found[key] for key in ("kind", "accuracy", "bytes")})
    lines = [
        "<!doctype html><title>compress</title><table><tr><th>model<th>accuracy<th>change<th>bytes<th>of the whole"
    ]
    for _, one in rows:
        name, change, share = html.escape(one["kind"]), one["accuracy"] - before, one["bytes"] / len(blob)
        lines.append(f"<tr><td>{name}<td>{one['accuracy']:.4f}<td>{change:+.4f}<td>{int(one['bytes'])}<td>{share:.0%}")
        print(f"{one['kind']}: accuracy {one['accuracy']:.4f} ({change:+.4f}), {int(one['bytes'])} bytes ({share:.0%})")
    with open(report.path, "w") as file:
        file.write("\n".join([*lines, f"</table><p>chosen: {html.escape(found['kind'])}"]))
    metrics.log_metric("accuracy_before", before)
    metrics.log_metric("accuracy_after", found["accuracy"])
    metrics.log_metric("bytes_before", len(blob))
    metrics.log_metric("bytes_after", found["bytes"])
    return before, found["accuracy"], found["kind"]


class Outputs(NamedTuple):
    """Outputs of the pipeline."""

    accuracy_before: float
    accuracy_after: float
    kind: str
    model: str


@dsl.pipeline(
    name="compress", description="Quantizes and prunes a trained model; keeps the smallest that is good enough"
)
def compress(
    source: str = "s3://datasets/shared/mnist",
    samples: int = 12000,
    gpus: int = 1,
    epochs: int = 2,
    shares: List[float] = [0.5, 0.8, 0.9],
    loss: float = 0.01,
    model_name: str = "mnist-small",
) -> Outputs:
    prepared = with_store(prepare(source=source, samples=samples))
    dataset = prepared.outputs["dataset"]
    trained = pytorch_job(
        name="mnist",
        command=["python3", "-m", "mnist.train_torch", "--data={data}", "--out={out}"],
        arguments=f"--epochs={epochs} --train-samples={prepared.outputs['Output']}",
        gpus=gpus,
        cpu="150m",
        memory="1Gi",
        data=dataset,
    )
    model = trained.outputs["model"]
    bytewise = quantize(model=model, dataset=dataset)
    with dsl.ParallelFor(shares, parallelism=2) as share:
        sparse = prune(model=model, dataset=dataset, share=share)
    compared = compare(
        model=model,
        dataset=dataset,
        quantized=bytewise.outputs["small"],
        pruned=dsl.Collected(sparse.outputs["small"]),
        loss=loss,
    )
    kept = with_store(
        register(model=compared.outputs["chosen"], dataset=dataset, name=model_name, accuracy=compared.outputs["after"])
    )
    return Outputs(
        accuracy_before=compared.outputs["before"],
        accuracy_after=compared.outputs["after"],
        kind=compared.outputs["kind"],
        model=kept.outputs["uri"],
    )
