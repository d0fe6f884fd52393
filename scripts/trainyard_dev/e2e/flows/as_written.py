"""kfp as its documentation shows it: no component names an image of ours or omits kfp's installation."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Output, PipelineTaskFinalStatus


@dsl.component
def say_hello(name: str) -> str:
    return f"Hello, {name}!"


@dsl.component(base_image="python:3.11-slim")
def write(text: str, made: Output[Dataset]):
    with open(made.path, "w") as file:
        file.write(text)
    made.metadata["letters"] = len(text)


@dsl.component(base_image="python:3.13", use_venv=True)
def count(made: Input[Dataset]) -> int:
    with open(made.path) as file:
        return len(file.read())


@dsl.container_component
def shell(number: int):
    return dsl.ContainerSpec(image="alpine:3.20", command=["sh", "-c", 'test "$0" -gt 3'], args=[number])


@dsl.component
def tidy(status: PipelineTaskFinalStatus):
    assert status.state == "SUCCEEDED", status


@dsl.pipeline
def as_written(recipient: str = "World") -> str:
    hello = say_hello(name=recipient)
    with dsl.ExitHandler(tidy()):
        counted = count(made=write(text=hello.output).outputs["made"])
        with dsl.If(counted.output > 3):
            shell(number=counted.output)
        with dsl.ParallelFor(["a", "b"]) as item:
            say_hello(name=item)
    return hello.output
