"""Pipelines load with line numbers, an error in a file is one sentence with its place, and arguments are split."""

from pathlib import Path

import pytest

from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard.pipelines.ir import arguments, compile, load
from trainyard.pipelines.ir.model import MISSING, Constant, FinalStatus, FromInput, FromTask

COMPILED = """\
pipelineInfo:
  name: small
schemaVersion: 2.1.0
sdkVersion: kfp-2.17.0
root:
  dag:
    tasks:
      first:
        componentRef: {name: comp-first}
        cachingOptions: {enableCache: true}
        inputs:
          parameters:
            n: {runtimeValue: {constant: 3.0}}
            text: {componentInputParameter: word}
        retryPolicy: {maxRetryCount: 2, backoffDuration: 30s, backoffFactor: 2}
      second:
        componentRef: {name: comp-second}
        dependentTasks: [first]
        inputs:
          parameters:
            item:
              taskOutputParameter: {producerTask: first, outputParameterKey: out}
              parameterExpressionSelector: parseJson(string_value)["a"]
            end: {taskFinalStatus: {producerTask: first}}
        parameterIterator: {itemInput: item, items: {raw: '[1, 2]'}}
        iteratorPolicy: {parallelismLimit: 4}
        triggerPolicy: {strategy: ALL_UPSTREAM_TASKS_COMPLETED, condition: "true"}
  inputDefinitions:
    parameters:
      word: {parameterType: STRING, defaultValue: hello}
      rest: {parameterType: STRUCT, isOptional: true}
components:
  comp-first:
    executorLabel: exec-first
    inputDefinitions:
      parameters:
        n: {parameterType: NUMBER_INTEGER}
        text: {parameterType: STRING}
    outputDefinitions:
      parameters: {out: {parameterType: STRUCT}}
      artifacts: {model: {artifactType: {schemaTitle: system.Model, schemaVersion: 0.0.1}}}
  comp-second: {executorLabel: exec-gone}
deploymentSpec:
  executors:
    exec-first:
      container:
        image: example.org/a:1
        command: [echo]
        env: [{name: A, value: b}]
---
platforms:
  kubernetes:
    deploymentSpec:
      executors:
        exec-first: {imagePullPolicy: Always}
    pipelineConfig: {activeDeadlineSeconds: 60}
"""


def test_a_compiled_pipeline_is_typed_and_knows_its_lines() -> None:
    pipeline = load.text(COMPILED, "small.yaml")
    first, second = pipeline.root.dag.tasks.values()
    assert (pipeline.name, pipeline.config) == ("small", {"activeDeadlineSeconds": 60})
    assert first.parameters["n"] == Constant(3, line=13) and first.parameters["text"] == FromInput("word", line=14)
    assert isinstance(first.parameters["n"].value, int) and first.cache and not second.cache
    assert (first.retry.count, first.retry.backoff, first.line) == (2, 30.0, 8)
    assert second.parameters["item"] == FromTask("first", "out", 'parseJson(string_value)["a"]', 21)
    assert isinstance(second.parameters["end"], FinalStatus)
    assert (second.loop.raw, second.loop.item, second.loop.limit) == ([1, 2], "item", 4)
    executor = pipeline.component(first).executor
    assert (executor.image, executor.env, executor.kubernetes) == (
        "example.org/a:1",
        {"A": "b"},
        {"imagePullPolicy": "Always"},
    )
    assert pipeline.where(executor.kubernetes_line) == "small.yaml:55"
    assert pipeline.component(second).executor is None
    assert pipeline.inputs.parameters["word"].default == "hello"
    assert pipeline.inputs.parameters["rest"].default is MISSING and not pipeline.inputs.parameters["rest"].required
    assert [str(place) for place in pipeline.tasks()] == ["first", "second"]


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("dependentTasks: [first]", "dependentTask: [first]", 18, "PipelineTaskSpec has no field dependentTask"),
        ("image: example.org/a:1", "imag: example.org/a:1", 47, "PipelineContainerSpec has no field imag"),
        ("imagePullPolicy: Always", "pullPolicy: Always", 55, "KubernetesExecutorConfig has no field pullPolicy"),
        ("maxRetryCount: 2", "maxRetryCount: lots", 15, "maxRetryCount: invalid literal"),
        ("raw: '[1, 2]'", "raw: '[1, 2'", 25, "the items of the loop second are not a JSON list"),
        ("  name: small", "  displayName: small", 1, "the pipeline has no name"),
        ("n: {runtimeValue: {constant: 3.0}}", "n: {}", 13, "the argument n of the task first has no value"),
        ("      container:", "      contained:", 46, "ExecutorSpec has no field contained"),
        ("cachingOptions: {enableCache: true}", "cachingOptions: {enableCache: true}\n        cachingOptions: {}", 11,
         "duplicate key cachingOptions, first on line 10"),
        ("dependentTasks: [first]", "dependentTasks: [first", 19, "invalid YAML: "),
        ("components:", "root: {}\ncomponents:", 32, "duplicate key root"),
    ],
)  # fmt: skip
def test_an_error_is_named_with_its_line(old: str, new: str, where: int, what: str) -> None:
    assert old in COMPILED
    with pytest.raises(UsageError) as error:
        load.text(COMPILED.replace(old, new, 1), "small.yaml")
    assert what in str(error.value)
    assert abs(int(error.value.where.split(":")[1]) - where) <= 1, error.value.where


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "no pipeline in this file"),
        ("[1, 2]", "a compiled pipeline must be a mapping"),
        ("a: 1", "not a compiled pipeline"),
        ("apiVersion: v1\nkind: Pod", "this is a Pod, not a compiled pipeline"),
        ("name: x\nimplementation: {}", "a component in the format of kfp 1"),
        ("pipelineInfo: {name: a}\nroot: 3", "root"),
        ("pipelineInfo: {name: a}", "the pipeline has no root"),
        ("a: &a [*a", "invalid YAML: "),
        ("\x00", "invalid YAML: "),
    ],
)
def test_what_is_no_pipeline_is_refused(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as error:
        load.text(text, "x.yaml")
    assert error.value.where.startswith("x.yaml")


def test_a_manifest_and_a_job_hold_pipelines_too() -> None:
    import yaml

    spec, platform = yaml.safe_load_all(COMPILED)
    manifest = {"apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "PipelineVersion", "metadata": {"name": "x"},
                "spec": {"pipelineSpec": spec, "platformSpec": platform}}  # fmt: skip
    found = load.text(yaml.safe_dump(manifest), "x.yaml")
    assert (found.name, found.config) == ("small", {"activeDeadlineSeconds": 60})
    job = {"pipelineSpec": spec, "runtimeConfig": {"parameters": {"word": {"stringValue": "given"}}}}
    assert load.text(yaml.safe_dump(job), "x.yaml").arguments == {"word": "given"}


SOURCE = """\
from kfp import dsl

@dsl.component(base_image="example.org/a:1")
def step(x: int) -> int:
    return x

@dsl.pipeline(name="one-name")
def one(x: int = 1):
    step(x=x)
"""


def written(folder: Path, text: str, name: str = "p.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_python_is_compiled(tmp_path: Path) -> None:
    found = compile.pipeline(written(tmp_path, SOURCE))
    assert found.name == "one-name" and found.file.endswith("p.py")
    assert found.executors["exec-step"].image == "example.org/a:1"


def test_one_of_several_pipelines_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, SOURCE + SOURCE.split("\n\n")[-1].replace("one", "two"))
    with pytest.raises(UsageError, match=r"several pipelines: one, two. choose one with --name"):
        compile.pipeline(path)
    assert compile.pipeline(path, "two").name == "two-name" == compile.pipeline(path, "two-name").name
    with pytest.raises(UsageError, match=r"no pipeline three in this file. it has: one, two"):
        compile.pipeline(path, "three")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("x = (", 1, "invalid Python"),
        ("import os\nimport no_such_module_here", 2, "the module no_such_module_here is not installed"),
        (SOURCE.replace("step(x=x)", "step(y=x)"), 9, "unexpected keyword argument"),
        (SOURCE.replace("step(x=x)", "step(x=str)"), 9, "TypeError|ValueError"),
        ("import sys\nsys.exit(3)", 2, "SystemExit: 3"),
        ("raise RuntimeError('two\\nlines')", 1, "RuntimeError: two lines"),
        ("x = 1", 0, "no pipeline in this file"),
        ("import os\nos._exit(7)", 0, "exit code 7"),
    ],
)
def test_the_authors_error_is_reported_with_its_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    with pytest.raises(UsageError, match=what) as error:
        compile.pipeline(written(tmp_path, text))
    assert error.value.where.endswith(f"p.py:{line}" if line else "p.py")
    assert "Traceback" not in str(error.value)


def test_training_components_that_were_not_copied_are_told_of(tmp_path: Path) -> None:
    file = tmp_path / "digits.py"
    file.write_text("from components import pytorch_job\n")
    with pytest.raises(UsageError, match="copy the folder pipelines/components"):
        compile.pipeline(file)


def test_the_authors_module_may_bear_any_name(tmp_path: Path) -> None:
    assert compile.pipeline(written(tmp_path, f"from kfp import Client\n{SOURCE}", "compile.py")).name == "one-name"
    package = tmp_path / "package"
    package.mkdir()
    written(package, SOURCE, "steps.py")
    written(package, "from package.steps import one\n", "__init__.py")
    assert compile.pipeline(package).name == "one-name"


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        compile.pipeline(tmp_path / "gone.py")


def test_names_and_texts() -> None:
    assert arguments.split(["epochs=3", "note=a=b, c", "empty="]) == {"epochs": "3", "note": "a=b, c", "empty": ""}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["epochs"], "--param: expected NAME=VALUE, got 'epochs'. for example: --param epochs=3"),
        (["=3"], "--param: expected NAME=VALUE, got '=3'"),
        (["epochs=3", "epochs=4"], "--param epochs is given twice"),
    ],
)
def test_what_is_wrong(given: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        arguments.split(given)
    assert words in str(caught.value)


def test_gate_and_serving_are_done_anew_in_every_run() -> None:
    pipeline = compile.pipeline(ROOT / "pipelines" / "serve.py")
    cached = {place.task.name: place.task.cache for place in pipeline.tasks()}
    assert cached["gate-model"] is cached["serve-model"] is False
    assert cached["prepare"] is cached["pytorch-job"] is cached["register-model"] is True
