"""Translation of a whole run: its owner, size, cache, arguments and settings."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import List  # noqa: UP035  (kfp reads annotations of its own kinds)

import pytest
from kfp import dsl
from translated import IMAGE, SETTINGS, VISION, of, on, step, template

from trainyard.errors import UsageError
from trainyard.pipelines.translate import values


def test_a_run_belongs_to_its_team(tmp_path: Path) -> None:
    @dsl.pipeline(name="My Pipeline")
    def one(word: str = "x"):
        step(word=word)

    workflow = of(one, tmp_path)
    spec, metadata = workflow["spec"], workflow["metadata"]
    assert (metadata["generateName"], metadata["namespace"]) == ("my-pipeline-", "vision")
    assert spec["podMetadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "training"}
    assert spec["podMetadata"]["labels"]["trainyard.io/api-access"] == "true"
    assert (spec["schedulerName"], spec["podPriorityClassName"]) == ("volcano", "training-normal")
    filled = replace(VISION, fill={"priorityClass": "training-low"})
    unasked = of(one, tmp_path, settings=replace(SETTINGS, priority="", team=filled))
    assert unasked["spec"]["podPriorityClassName"] == "training-low"
    assert spec["serviceAccountName"] == "pipeline" and spec["ttlStrategy"]["secondsAfterCompletion"]
    assert spec["securityContext"]["runAsNonRoot"] and "podSpecPatch" not in json.dumps(workflow)
    container = template(workflow, "step")["container"]
    assert container["command"] == ["/var/run/argo/trainyard-step", "run", "--"]
    assert container["args"][-1] == "{{$.outputs.parameters['made'].output_file}}"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert of(one, tmp_path) == workflow
    known = on(namespace="platform", source="a file")
    elsewhere = template(of(one, tmp_path, settings=known), "step")["container"]["env"]
    assert {"name": "TRAINYARD_SYSTEM", "value": "platform"} in elsewhere
    assert "TRAINYARD_SYSTEM" not in [one["name"] for one in container["env"]]


def test_equal_components_share_a_template(tmp_path: Path) -> None:
    @dsl.pipeline(name="many")
    def many():
        before = None
        for number in range(500):
            task = step(word=f"word {number}")
            if before:
                task.after(before)
            before = task

    workflow = of(many, tmp_path)
    assert len(workflow["spec"]["templates"]) == 3
    assert len(json.dumps(workflow)) < 200_000


def test_a_workflow_too_large_is_refused_with_size_and_hint(tmp_path: Path) -> None:
    @dsl.pipeline(name="large")
    def large():
        for number in range(30):
            step(word=f"{number}" + "x" * 50_000)

    with pytest.raises(UsageError) as error:
        of(large, tmp_path)
    assert "but etcd accepts at most 1,048,576; largest parts: template root 1,5" in str(error.value)
    with pytest.raises(UsageError, match=r"word has 1,100,000 bytes.*pass large values as artifacts"):

        @dsl.pipeline(name="large")
        def argued(word: str):
            step(word=word)

        of(argued, tmp_path, {"word": "x" * 1_100_000})


def test_the_cache_key_follows_content_and_team(tmp_path: Path) -> None:
    @dsl.pipeline(name="cached")
    def cached(word: str):
        step(word=word)
        step(word=word).set_caching_options(False)

    workflow = of(cached, tmp_path, {"word": "a"})
    first, second = template(workflow, "step-cached"), template(workflow, "step-2")
    assert first["memoize"]["cache"]["configMap"]["name"] == "vision.cached.step"
    assert '{{=sprig.sha256sum(toJson([inputs.parameters["word"]]))}}' in first["memoize"]["key"]
    assert "memoize" not in second
    off = of(cached, tmp_path, {"word": "a"}, replace(SETTINGS, cache=False))
    assert "memoize" not in json.dumps(off)


def test_the_pipelines_own_settings(tmp_path: Path) -> None:
    config = dsl.PipelineConfig(
        workspace=dsl.WorkspaceConfig(
            size="5Gi", kubernetes=dsl.KubernetesWorkspaceConfig(pvcSpecPatch={"storageClassName": "nfs"})
        )
    )

    @dsl.pipeline(name="spacious", pipeline_config=config)
    def spacious():
        step(word=dsl.WORKSPACE_PATH_PLACEHOLDER)

    workflow = of(spacious, tmp_path)
    (claim,) = workflow["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "nfs" and claim["spec"]["resources"]["requests"]["storage"] == "5Gi"
    mounts = {one["mountPath"] for one in template(workflow, "step")["container"]["volumeMounts"]}
    assert "/kfp-workspace" in mounts
    (task,) = template(workflow, "root")["dag"]["tasks"]
    assert {"name": "word", "value": "/kfp-workspace"} in task["arguments"]["parameters"]


def test_a_command_with_braces_is_kept_from_argo(tmp_path: Path) -> None:
    @dsl.container_component
    def braces():
        return dsl.ContainerSpec(image=IMAGE, command=["sh", "-c", "echo {{workflow.name}} '{{item}}'"])

    @dsl.pipeline(name="braces")
    def one():
        braces()

    container = template(of(one, tmp_path), "braces")["container"]
    assert container["command"][-1] == "--json" and "{{" not in container["args"][0]
    assert json.loads(container["args"][0]) == ["sh", "-c", "echo {{workflow.name}} '{{item}}'"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({}, "the pipeline needs a value for n"),
        ({"n": 1, "m": 2}, "has no input m; its inputs: flag, n, words"),
        ({"n": "one"}, "--param n: expected a whole number, got 'one'"),
        ({"n": 1.5}, "--param n: expected a whole number, got 1.5"),
        ({"n": True}, "--param n: expected a whole number, got True"),
        ({"n": 1, "words": "{}"}, "--param words: expected a JSON list, got {}"),
        ({"n": 1, "words": ["{{x}}"]}, ""),
        ({"n": 1, "flag": "maybe"}, "--param flag: expected true or false, got 'maybe'"),
    ],
)
def test_arguments_are_checked(tmp_path: Path, arguments: dict, what: str) -> None:
    @dsl.pipeline(name="typed")
    def typed(n: int, words: List[str] = ["a"], flag: bool = False):  # noqa: B006, UP006
        with dsl.ParallelFor(words) as word:
            step(word=word)

    if not what:
        (value,) = [
            p["value"]
            for p in of(typed, tmp_path, arguments)["spec"]["arguments"]["parameters"]
            if p["name"] == "words"
        ]
        assert "{{" not in value and json.loads(value) == ["{{x}}"]
        return
    with pytest.raises(UsageError, match=what):
        of(typed, tmp_path, arguments)


def test_no_text_reads_like_a_costly_expression() -> None:
    text = 'up... {{=$env}} repeat(2) "sprig"'
    code = values.quoted(text)
    assert json.loads(code) == text
    assert not re.search(r"\.\.|[{}$(]|sprig", code)
