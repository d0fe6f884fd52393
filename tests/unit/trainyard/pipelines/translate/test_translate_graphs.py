"""Translation of the order of steps: conditions, dangling references, exit tasks."""

import json
from pathlib import Path

import pytest
from kfp import compiler, dsl
from translated import IMAGE, SETTINGS, of, plain, step, template

from trainyard.pipelines import translate
from trainyard.pipelines.ir import load
from trainyard.pipelines.translate import conditions, values


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("inputs.parameter_values['a'] == 'x'", 'A == "x"'),
        ("!(int(inputs.parameter_values['n']) < 5) && true", "! ( int ( float(N) ) < 5 ) && true"),
        ("inputs.parameter_values['b'] == true", '(lower(B) == "true") == true'),
        ("inputs.parameters['a'].string_value != '{{x}}'", 'A != "\\u007b\\u007bx\\u007d\\u007d"'),
        ("double(inputs.parameter_values['n']) >= -1.5e3", "float ( float(N) ) >= - 1.5e3"),
    ],
)
def test_conditions(condition: str, code: str) -> None:
    kinds = {"a": "STRING", "n": "NUMBER_INTEGER", "b": "BOOLEAN"}
    found = conditions.code(condition, lambda name: values.Value(name.upper(), ""), lambda name: kinds[name])
    assert found == code


def test_an_unknown_condition_is_refused(tmp_path: Path) -> None:
    @dsl.pipeline(name="odd")
    def odd(word: str = "x"):
        with dsl.If(word == "x"):
            step(word=word)

    path = tmp_path / "p.yaml"
    compiler.Compiler().compile(odd, str(path))
    path.write_text(path.read_text().replace("== 'x'", "matches 'x'"))
    with pytest.raises(
        translate.Unsupported, match=r"condition-1 uses the condition .*, not understood from `matches 'x'` on"
    ):
        translate.workflow(load.file(path), {}, SETTINGS)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("name: comp-step", "name: comp-gone", "step uses the component comp-gone, which does not exist"),
        (
            "componentInputParameter: word",
            "componentInputParameter: words",
            "step uses the input words, which does not exist",
        ),
        ("executorLabel: exec-step", "executorLabel: exec-gone", "uses the executor exec-gone, which does not exist"),
        ("image: example.org/step:1", "image: '{{$.inputs.parameters[''word'']}}'", "an image that is a parameter"),
        ("        command:\n", "        args:\n        - --size\n", "a container without a command"),
    ],
)
def test_what_dangles_is_refused_by_name(tmp_path: Path, old: str, new: str, what: str) -> None:
    @dsl.pipeline(name="fine")
    def fine(word: str = "x"):
        step(word=word)

    path = tmp_path / "p.yaml"
    compiler.Compiler().compile(fine, str(path))
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(translate.Unsupported, match=what) as error:
        translate.workflow(load.file(path), {}, SETTINGS)
    assert error.value.where.startswith(f"{path}:") and error.value.exit_code == 2


def test_a_failed_task_counts_although_a_later_one_ran(tmp_path: Path) -> None:
    @dsl.pipeline(name="guarded")
    def guarded():
        with dsl.ExitHandler(plain()):
            step()
        step()

    workflow = of(guarded, tmp_path)
    root = template(workflow, "root")["dag"]
    assert "onExit" not in workflow["spec"]
    assert set(root["target"].split()) == {"exit-handler-1", "plain", "step-2"} and root["failFast"] is False
    (exit_task,) = [one for one in root["tasks"] if one["name"] == "plain"]
    assert "exit-handler-1.Failed" in exit_task["depends"] and "exit-handler-1.Succeeded" in exit_task["depends"]


def test_the_exit_task_of_a_whole_pipeline_is_told_what_failed(tmp_path: Path) -> None:
    @dsl.container_component
    def reported(status: dsl.PipelineTaskFinalStatus, word: str):
        return dsl.ContainerSpec(image=IMAGE, command=["echo", word, status])

    @dsl.pipeline(name="guarded")
    def guarded(word: str = "x"):
        with dsl.ExitHandler(reported(word=word)):
            step()

    workflow = of(guarded, tmp_path)
    assert [one["name"] for one in template(workflow, "root")["dag"]["tasks"]] == ["exit-handler-1"]
    last = template(workflow, workflow["spec"]["onExit"])
    assert last["inputs"]["parameters"] == [{"name": "word", "default": "x"}]
    ((task,),) = last["steps"]
    assert (task["name"], "depends" in task) == ("reported", False)
    env = {one["name"]: one["value"] for one in template(workflow, task["template"])["container"]["env"]}
    assert json.loads(env["TRAINYARD_STEP"])["task"] == "reported"
    assert "memoize" not in template(workflow, task["template"])
    given = {one["name"]: one["value"] for one in task["arguments"]["parameters"]}
    assert given["word"] == "{{inputs.parameters.word}}"
    assert "workflow.status" in given["status"] and "workflow.failures" in given["status"]
    # Argo gives steps at the exit no deadline of the workflow's.
    assert template(workflow, task["template"])["activeDeadlineSeconds"] == workflow["spec"]["activeDeadlineSeconds"]
