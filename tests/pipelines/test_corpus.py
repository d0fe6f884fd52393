"""KFP's own samples: nearly all translate, and those that run end as KFP says. Skipped where they can't be fetched."""

import json
import re
from pathlib import Path
from typing import Any

import corpus
import pytest
import samples
from pipeline_harness import PipelineHarness

from trainyard.errors import TrainyardError
from trainyard.pipelines import translate
from trainyard.pipelines.ir import load

pytestmark = pytest.mark.long
PIPELINES = "sdk/python/test_data/pipelines"
SUCCEED = [
    "pipeline_with_after", "pipeline_with_condition", "pipeline_with_nested_conditions", "pipeline_with_loops",
    "pipeline_with_nested_loops", "pipeline_with_loops_and_conditions", "pipeline_with_outputs",
    "pipeline_in_pipeline", "pipeline_in_pipeline_complex", "pipeline_with_params_containing_format",
    "pipeline_with_placeholders", "component_with_optional_inputs", "if_elif_else_with_oneof_parameters",
    "if_elif_else_complex", "if_else_with_oneof_artifacts", "parallelfor_fan_in/parameters_simple",
    "parallelfor_fan_in/parameters_complex", "parallelfor_fan_in/nested_with_parameters",
    "parallelfor_fan_in/artifacts_simple", "parallelfor_fan_in/artifacts_complex",
    "parallelfor_fan_in/pipeline_producer_consumer", "parallelfor_fan_in/conditional_producer_and_consumers",
    "lightweight_python_functions_with_outputs", "pythonic_artifacts_with_multiple_returns"
]  # fmt: skip
FAIL = [
    "pipeline_with_exit_handler", "pipeline_with_multiple_exit_handlers", "pipeline_with_task_final_status",
    "pipeline_with_task_using_ignore_upstream_failure"
]  # fmt: skip
GIVEN = {"loop_parameter": ["a", "b"]}


@pytest.fixture(scope="module")
def module() -> Path:
    """The folder of KFP's module."""
    try:
        return corpus.folder()
    except (TrainyardError, FileNotFoundError) as error:
        pytest.skip(str(error))


def test_nearly_all_translate_and_are_clean(module: Path) -> None:
    found = [corpus.outcome(path) for path in corpus.compiled()]
    assert len(found) > 100 and corpus.linted(found) == ""
    others = {one.name: one.reason for one in found if one.state != "translated"}
    assert len(others) <= len(found) / 10, others
    assert all("uses" in reason for reason in others.values()), others


def runnable(workflow: dict[str, Any]) -> dict[str, Any]:
    """Its steps with this machine's Python: an allowed image, no packages, the executor where kfp has it now."""
    for template in workflow["spec"]["templates"]:
        if "initContainers" in template:
            template["initContainers"] = [one for one in template["initContainers"] if one["name"] == "collect"]
        for container in [template.get("container"), *template.get("initContainers", ())]:
            if container:
                container["image"] = samples.IMAGE
        words = template.get("container", {}).get("args", [])
        if "--json" in template.get("container", {}).get("command", []):
            words[0] = json.dumps([_of_now(word) for word in json.loads(words[0])]).replace("{{", "{\\u007b")
        else:
            words[:] = [_of_now(word) for word in words]
    return workflow


def _of_now(word: str) -> str:
    return re.sub(r"kfp\.components\.executor_main", "kfp.dsl.executor_main", word)


@pytest.mark.parametrize("name", [*SUCCEED, *FAIL])
def test_a_sample_ends_as_kfp_says(harness: PipelineHarness, module: Path, name: str) -> None:
    pipeline = load.file(module / PIPELINES / f"{name}.yaml")
    given = corpus.arguments(pipeline) | {
        key: value for key, value in GIVEN.items() if key in corpus.arguments(pipeline)
    }
    made = translate.workflow(pipeline, given, translate.Settings.of(harness.contract, "vision", cache=False))
    run = harness.submit(runnable(made)).wait()
    assert run.phase == ("Failed" if name in FAIL else "Succeeded"), f"{run.summary()}\n{run.log()[-3000:]}"
    if name in FAIL:
        assert "exit" in run.message.lower() or "error" in run.message.lower()
