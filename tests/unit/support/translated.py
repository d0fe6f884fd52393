"""Small pipelines for tests of the translation, and their translations."""

from dataclasses import replace
from pathlib import Path

from kfp import compiler, dsl

from trainyard.contract import Pool, Team, defaults
from trainyard.pipelines import translate
from trainyard.pipelines.ir import load

GPUS = Pool(
    "gpu", "gpu", {"trainyard.io/pool": "gpu"}, {"key": "gpu", "effect": "NoSchedule"}, resource="nvidia.com/gpu"
)
VISION = Team("vision", ("vision", "training"), pools=(GPUS,))
SETTINGS = translate.Settings(defaults(), VISION, queue="training", priority="training-normal")


def on(**contract) -> translate.Settings:
    """The settings with other parts of the contract."""
    return replace(SETTINGS, contract=replace(SETTINGS.contract, **contract))


IMAGE = "example.org/step:1"


@dsl.container_component
def step(word: str = "x", made: dsl.OutputPath(str) = None):
    return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", 'echo "$0" > "$1"', word, made])


@dsl.container_component
def plain():
    return dsl.ContainerSpec(image=IMAGE, command=["true"])


def ir(pipeline, folder: Path):
    path = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    return load.file(path)


def of(pipeline, folder: Path, arguments=None, settings=SETTINGS) -> dict:
    return translate.workflow(ir(pipeline, folder), arguments, settings)


def template(workflow: dict, name: str) -> dict:
    return next(one for one in workflow["spec"]["templates"] if one["name"] == name)


def configured(folder: Path, configure, arguments=None, **inputs) -> dict:
    """The template of one step, configured by `configure(task)`."""

    @dsl.pipeline(name="one")
    def one():
        configure(plain())

    return template(of(one, folder, arguments), "plain")
