"""Local runs: the order of tasks, arguments, output and refusals."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import UsageError
from trainyard.observe.words import reason
from trainyard.pipelines.ir import compile as compiling
from trainyard.pipelines.ir.model import Pipeline
from trainyard.pipelines.local import arguments, engine, folders, notes

HEAD = """
from typing import Dict, List, NamedTuple
from kfp import dsl, kubernetes

component = dsl.component(base_image="python:3.11", install_kfp_package=False)

@component
def add(a: int, b: int) -> int:
    return a + b

@component
def total(numbers: List[int]) -> int:
    return sum(numbers)

@component
def say(word: str, out: dsl.Output[dsl.Artifact]) -> str:
    with open(out.path, "w") as file:
        file.write(word)
    out.metadata["word"] = word
    return word

@component
def read(given: dsl.Input[List[dsl.Artifact]]) -> str:
    return " ".join(open(one.path).read() for one in given)

@component
def fail(word: str) -> str:
    raise ValueError(f"no {word} today")

@component
def note(status: dsl.PipelineTaskFinalStatus, place: str):
    import json
    with open(place, "w") as file:
        json.dump([status.state, status.error_message], file)

"""


def compiled(tmp_path: Path, text: str, name: str | None = None) -> Pipeline:
    file = tmp_path / "mine.py"
    file.write_text(HEAD + text)
    return compiling.pipeline(file, name)


def run(tmp_path: Path, text: str, **values: Any) -> dict[str, Any]:
    pipeline = compiled(tmp_path, text)
    given = arguments.parse(pipeline, [f"{name}={value}" for name, value in values.items()])
    return engine.run(pipeline, given, folders.make(tmp_path / "out", pipeline.name))


def test_whole_numbers_stay_whole_through_loops_and_collection(tmp_path: Path) -> None:
    """kfp's own local runner hands fractions to `total`, which refuses them."""
    text = """
@dsl.pipeline
def mine(start: int = 3) -> int:
    first = add(a=start, b=1)
    with dsl.ParallelFor([1, 2, 3]) as item:
        one = add(a=item, b=first.output)
    return total(numbers=dsl.Collected(one.output)).output
"""
    assert run(tmp_path, text, start=4) == {"Output": 21}


def test_steps_leave_nothing_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    run(tmp_path, """
@dsl.pipeline
def mine():
    say(word="here")
""")  # fmt: skip
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_outer_pipeline_runs_with_a_workspace_and_the_job_s_name(tmp_path: Path) -> None:
    text = """
@dsl.pipeline
def inner(place: str) -> str:
    return say(word=f"{dsl.PIPELINE_JOB_RESOURCE_NAME_PLACEHOLDER} {place}").outputs["Output"]

@dsl.pipeline(pipeline_config=dsl.PipelineConfig(workspace=dsl.WorkspaceConfig(size="1Gi")))
def mine() -> str:
    return inner(place=dsl.WORKSPACE_PATH_PLACEHOLDER).output
"""
    name, place = run(tmp_path, text)["Output"].split()
    assert name.startswith("mine-") and Path(place).is_dir()


def test_iterations_have_folders_of_their_own(tmp_path: Path) -> None:
    text = """
@dsl.pipeline
def mine() -> str:
    with dsl.ParallelFor(["one", "two", "three"]) as item:
        made = say(word=item)
    return read(given=dsl.Collected(made.outputs["out"])).output
"""
    assert run(tmp_path, text) == {"Output": "one two three"}


@pytest.mark.parametrize(("word", "result"), [("yes", "taken"), ("no", "left")])
def test_branches(tmp_path: Path, word: str, result: str) -> None:
    text = """
@dsl.pipeline
def mine(word: str) -> str:
    with dsl.If(word == "yes"):
        one = say(word="taken")
    with dsl.Else():
        two = say(word="left")
    return dsl.OneOf(one.outputs["Output"], two.outputs["Output"])
"""
    assert run(tmp_path, text, word=word) == {"Output": result}


def test_exit_task_runs_and_the_run_fails_all_the_same(tmp_path: Path) -> None:
    place = tmp_path / "note.json"
    text = f"""
@dsl.pipeline
def mine():
    with dsl.ExitHandler(note(place={str(place)!r})):
        broken = fail(word="luck")
        say(word=broken.output)
"""
    with pytest.raises(engine.PipelineError, match=r"step exit-handler-1/fail failed: ValueError: no luck today"):
        run(tmp_path, text)
    state, message = json.loads(place.read_text())
    assert state == "FAILED" and "fail" in message


def test_failed_step_is_tried_again_as_often_as_it_says(tmp_path: Path) -> None:
    text = """
@dsl.pipeline
def mine():
    fail(word="luck").set_retry(2)
"""
    with pytest.raises(engine.PipelineError):
        run(tmp_path, text)
    assert len(list((tmp_path / "out").glob("mine-*/0*-fail"))) == 3


def test_importer_reads_a_bucket_of_this_machine(tmp_path: Path) -> None:
    text = """
@component
def show(given: dsl.Input[dsl.Dataset]) -> str:
    return open(given.path).read() + given.metadata["kind"]

@dsl.pipeline
def mine() -> str:
    found = dsl.importer(artifact_uri="s3://raw-data/words.txt", artifact_class=dsl.Dataset, metadata={"kind": "!"})
    return show(given=found.output).output
"""
    with pytest.raises(UsageError, match=r"s3://raw-data/words.txt is not on this machine. copy it to "):
        run(tmp_path, text)
    file = tmp_path / "out" / "buckets" / "raw-data" / "words.txt"
    file.parent.mkdir()
    file.write_text("hello")
    assert run(tmp_path, text) == {"Output": "hello!"}


def test_container_component_runs_by_this_machines_programs(tmp_path: Path) -> None:
    text = """
@dsl.container_component
def shell(word: str, out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="docker.io/library/alpine:3.22", command=["sh", "-c"],
                             args=["mkdir -p $(dirname $1); echo -n $0 > $1", word, out])

@dsl.pipeline
def mine() -> str:
    return shell(word="hello").outputs["out"]
"""
    assert run(tmp_path, text) == {"Output": "hello"}
    with pytest.raises(engine.PipelineError, match="the program no-such-program of its image is not on this machine"):
        run(tmp_path, text.replace('"sh", "-c"', '"no-such-program"'))


def test_what_is_not_honoured_is_said(tmp_path: Path) -> None:
    text = """
@dsl.pipeline
def mine():
    task = add(a=1, b=2)
    kubernetes.use_secret_as_env(task, secret_name="mine", secret_key_to_env={"a": "A"})
    kubernetes.mount_pvc(task, pvc_name="workspace", mount_path="/work")
    kubernetes.add_node_selector(task, "disk", "fast")
    task.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(1).set_memory_limit("2G")
    other = say(word="a")
    kubernetes.use_secret_as_env(other, secret_name="trainyard-s3", secret_key_to_env={"endpoint": "S3_ENDPOINT"})
"""
    lines = notes.not_honoured(compiled(tmp_path, text))
    assert "secrets as variables: add" in lines
    assert "volumes: add" in lines and "placement: add" in lines and "GPUs: add" in lines
    assert "CPU and memory requests: add" in lines
    assert "the secret trainyard-s3 (s3:// leads to folders instead): say" in lines
    assert any(line.startswith("images: steps run with this machine's programs") for line in lines)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["number"], "--param: expected NAME=VALUE, got 'number'"),
        (["number=1", "number=2"], "--param number is given twice"),
        (["wrong=1"], "has no input wrong; its inputs: facts, flag, names, number, rate"),
        (["number=x"], "--param number: expected a whole number, got 'x'"),
        (["number=1", "flag=perhaps"], "--param flag: expected true or false, got 'perhaps'"),
        (["number=1", "names=a"], "--param names: expected a JSON list, got 'a'"),
        (["number=1", "facts=[1]"], "--param facts: expected a JSON object, got [1]"),
        ([], "the pipeline needs a value for number. pass --param number=VALUE"),
    ],
)
def test_wrong_arguments_are_reported(tmp_path: Path, given: list[str], words: str) -> None:
    text = """
@dsl.pipeline
def mine(number: int, rate: float = 0.5, flag: bool = False, names: list = [], facts: dict = {}):
    add(a=number, b=1)
"""
    with pytest.raises(UsageError, match=re.escape(words)):
        arguments.parse(compiled(tmp_path, text), given)


def test_arguments_take_their_types_and_defaults_stay_whole(tmp_path: Path) -> None:
    text = """
@dsl.pipeline
def mine(number: int = 2, rate: float = 0.5, flag: bool = False, names: list = [1], text: str = ""):
    add(a=number, b=1)
"""
    pipeline = compiled(tmp_path, text)
    values = arguments.parse(pipeline, ["flag=True", 'names=["a"]'])
    assert values == {"number": 2, "rate": 0.5, "flag": True, "names": ["a"], "text": ""}
    assert isinstance(values["number"], int)
    values = arguments.parse(pipeline, ["flag=1", "rate=2", "text=3"])
    assert (values["flag"], values["rate"], values["text"]) == (True, 2.0, "3")
    assert isinstance(values["rate"], float)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ["Traceback (most recent call last):", '  File "a"', "    b()", "ValueError: no", "more"],
            "ValueError: no | more",
        ),
        (["one", "error: accuracy is low", "after"], "accuracy is low"),
        (["error: accuracy is low", "hint: train longer", "after"], "accuracy is low. train longer"),
        (["Traceback (most recent call last):", "mnist.errors.TrainError: no"], "TrainError: no"),
        (["a", "b", "c", "d"], "b | c | d"),
        (["[1,0]<stderr>:Traceback (most recent call last):", "[1,0]<stderr>:  x", "[1,0]<stderr>:E: no"], "E: no"),
        ([], ""),
    ],
)
def test_reason_of_a_failure(lines: list[str], words: str) -> None:
    assert reason(lines) == words
