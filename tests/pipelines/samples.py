"""Small components for tests. Most run a shell, which starts in a moment; a few are Python, as users write them."""

from typing import List  # noqa: UP035  (kfp reads annotations of its own kinds)

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output, OutputPath

IMAGE = "site.invalid/trainyard/pipeline:0.2.0"


def _shell(script: str, *words: object) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", script, "sh", *words])


@dsl.container_component
def write(text: str, made: Output[Dataset]):
    """The words of a text, so that other blanks make the same content."""
    return _shell('echo $1 > "$2"', text, made.path)


@dsl.container_component
def upper(taken: Input[Dataset], made: Output[Dataset]):
    return _shell('tr a-z A-Z < "$1" > "$2"', taken.path, made.path)


@dsl.container_component
def join(taken: Input[Dataset], suffix: str, made: Output[Dataset]):
    return _shell('echo "$(cat "$1")$2" > "$3"', taken.path, suffix, made.path)


@dsl.container_component
def read(taken: Input[Dataset], text: OutputPath(str)):
    return _shell('printf %s "$(cat "$1")" > "$2"', taken.path, text)


@dsl.container_component
def same(value: str, text: OutputPath(str)):
    return _shell('printf %s "$1" > "$2"', value, text)


@dsl.container_component
def numbers(upto: int, made: OutputPath(list)):
    return _shell('echo "[$(seq -s, 1 "$1")]" > "$2"', upto, made)


@dsl.container_component
def square(value: int, result: OutputPath(int)):
    return _shell('echo $(($1 * $1)) > "$2"', value, result)


@dsl.container_component
def listed(values: list, text: OutputPath(str)):
    return _shell('printf %s "$1" > "$2"', values, text)


@dsl.container_component
def note(folder: str, line: str):
    """Adds a line to a file of the test's, outside of the run."""
    return _shell('echo "$2" >> "$1/notes"', folder, line)


@dsl.container_component
def shell(script: str):
    return _shell('eval "$1"', script)


@dsl.container_component
def optional(text: OutputPath(str), word: str = "nothing", taken: Input[Dataset] = None):
    return dsl.ContainerSpec(
        image=IMAGE,
        command=["sh", "-c", 'printf %s "$*" > "$0"', text, word],
        args=[dsl.IfPresentPlaceholder("taken", then=["with", taken.path], else_=["without"])],
    )


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def values(
    n: int, yes: float, flag: bool, words: list, table: dict, text: str, model: Output[Model], metrics: Output[Metrics]
) -> str:
    """Everything that a value can be; the text has what template engines look for."""
    import json
    import os

    with open(model.path, "w") as file:
        file.write("{{item}} {{=1+1}} {{workflow.name}}")
    model.metadata["rows"] = len(words)
    metrics.log_metric("loss", 0.25)
    return json.dumps([n, yes, flag, words, table, text, os.path.exists(model.path)])


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def count(models: Input[List[Dataset]]) -> str:  # noqa: UP006
    return "|".join(open(one.path).read().strip() for one in models or [])  # kfp gives None for an empty list


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def broken(reason: str) -> str:
    def deep():
        raise ValueError(reason)

    return deep()


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def status(folder: str, final: dsl.PipelineTaskFinalStatus):
    with open(f"{folder}/status", "w") as file:
        file.write(f"{final.state} {final.pipeline_task_name}: {final.error_message}")
