"""A first version of a pipeline: three steps that run, for users to extend."""

import keyword
import re

from trainyard.errors import UsageError
from trainyard.kinds import registry

JOBS = {kind.framework: kind.step for kind in registry.with_gang()}
NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAME_LONGEST = 50

HEAD = '''"""{title}: what it does, in a sentence.

trainyard run --local {file}
trainyard submit {file} --param epochs=3
"""

from kfp import dsl
{imports}
IMAGE = "{image}"


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def prepare(samples: int, data: dsl.Output[dsl.Dataset]) -> int:
    """Makes the data set; returns how many samples it has."""
    import csv
    import random

    random.seed(1)
    with open(data.path, "w", newline="") as file:
        for _ in range(samples):
            x = random.random()
            csv.writer(file).writerow([x, 2 * x + 1])
    return samples

'''
TRAIN = '''
@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(data: dsl.Input[dsl.Dataset], epochs: int, lr: float, model: dsl.Output[dsl.Model]):
    """Trains, and writes the model."""
    import csv
    import json

    with open(data.path, newline="") as file:
        rows = [(float(x), float(y)) for x, y in csv.reader(file)]
    weight, bias = 0.0, 0.0
    for epoch in range(epochs):
        for x, y in rows:
            error = weight * x + bias - y
            weight, bias = weight - lr * error * x, bias - lr * error
        print(f"epoch {epoch + 1}: weight {weight:.3f}, bias {bias:.3f}", flush=True)
    with open(model.path, "w") as file:
        json.dump({"weight": weight, "bias": bias}, file)

'''
EVALUATE = '''
@dsl.component(base_image=IMAGE, install_kfp_package=False)
def evaluate(data: dsl.Input[dsl.Dataset], model: dsl.Input[dsl.Model], metrics: dsl.Output[dsl.Metrics]) -> float:
    """Measures the model; returns its error."""
{body}

'''
OWN_MODEL = """    import csv
    import json

    with open(model.path) as file:
        trained = json.load(file)
    with open(data.path, newline="") as file:
        rows = [(float(x), float(y)) for x, y in csv.reader(file)]
    error = sum((trained["weight"] * x + trained["bias"] - y) ** 2 for x, y in rows) / len(rows)
    metrics.log_metric("error", error)
    return error"""
JOB_MODEL = """    import os

    # What the job wrote to {{out}} lies in the folder model.path.
    files = sorted(os.listdir(model.path))
    metrics.log_metric("files", len(files))
    return float(len(files))"""
PIPELINE = """
@dsl.pipeline(name="{name}")
def {function}(samples: int = 1000, epochs: int = 2, lr: float = 0.1) -> float:
    prepared = prepare(samples=samples)
{call}
    return evaluate(data=prepared.outputs["data"], model=trained.outputs["model"]).outputs["Output"]
"""
OWN_CALL = '    trained = train(data=prepared.outputs["data"], epochs=epochs, lr=lr)'
JOB_CALL = """    # train.py is a program of your image; {{data}} and {{out}} become s3://… that every rank reaches.
    # A program that knows no S3 writes to a folder, which `results` names.
    trained = {job}(
        command=["python3", "train.py", "--data={{data}}", "--out={{out}}"],
        arguments=f"--epochs={{epochs}} --lr={{lr}}",
        image=IMAGE,
        nodes={nodes},
        gpus={gpus},
        data=prepared.outputs["data"],
    )"""


def text(name: str, image: str, framework: str = "", nodes: int = 1, gpus: int = 0) -> str:
    """The file's text. With a framework, training is a separate job, by the components of pipelines/components.

    Raises:
        UsageError: the name is not valid for a pipeline.
    """
    function = name.replace("-", "_")
    if not NAME.fullmatch(name) or len(name) > NAME_LONGEST or keyword.iskeyword(function):
        hint = f"use up to {NAME_LONGEST} lower-case letters, digits and hyphens, starting with a letter; no keyword"
        raise UsageError(f"invalid pipeline name: {name!r}", hint=hint)
    if function in ("prepare", "train", "evaluate"):
        raise UsageError(f"{name} is one of its steps", hint="choose another name")
    job = JOBS.get(framework, "")
    imports = (
        f"\nfrom components import {job}  # the folder pipelines/components, copied beside this file\n" if job else ""
    )
    call = JOB_CALL.format(job=job, nodes=nodes, gpus=gpus) if job else OWN_CALL
    body = JOB_MODEL.format() if job else OWN_MODEL
    return (
        HEAD.format(title=name, file=f"{function}.py", imports=imports, image=image)
        + ("" if job else TRAIN)
        + EVALUATE.format(body=body)
        + PIPELINE.format(name=name, function=function, call=call)
    )
