"""The cache follows the content of inputs, the image and the component, and never leaves the team."""

import json
from typing import Any

import pytest
import samples
from kfp import dsl
from pipeline_harness import PipelineHarness, Run

STEPS = ("write", "upper", "read")


@dsl.pipeline(name="line")
def line(text: str) -> str:
    first = samples.write(text=text)
    second = samples.upper(taken=first.output)
    return samples.read(taken=second.output).output


def variant(image: str = samples.IMAGE, script: str = 'tr a-z A-Z < "$1" > "$2"', cached: bool = True):
    """The same pipeline with another second step."""

    @dsl.container_component
    def upper(taken: dsl.Input[dsl.Dataset], made: dsl.Output[dsl.Dataset]):
        return dsl.ContainerSpec(image=image, command=["sh", "-c", script, "sh", taken.path, made.path])

    @dsl.pipeline(name="line")
    def changed(text: str) -> str:
        first = samples.write(text=text)
        second = upper(taken=first.output).set_caching_options(cached)
        return samples.read(taken=second.output).output

    return changed


@pytest.fixture(scope="module")
def first(harness: PipelineHarness) -> Run:
    """A run that has filled the cache."""
    run = harness.run(line, {"text": "a b"})
    assert run.phase == "Succeeded", run.message
    assert [run.cached(run.node(task)) for task in STEPS] == [False] * 3
    return run


def hits(run: Run) -> list[bool]:
    """Which steps were served from cache; the result must be right in any case."""
    assert run.phase == "Succeeded", run.message
    assert run.value("read", "text") == "A B"
    found = [run.cached(run.node(task)) for task in STEPS]
    assert len(run.pods()) == found.count(False)
    return found


@pytest.mark.parametrize(
    ("pipeline", "text", "more", "found"),
    [
        pytest.param(line, "a b", {}, [True] * 3, id="an equal run has no pods"),
        pytest.param(line, " a   b ", {}, [False, True, True], id="equal content of other arguments is found"),
        pytest.param(variant(image=f"{samples.IMAGE}1"), "a b", {}, [True, False, True], id="another image"),
        pytest.param(variant(script='tr abc ABC < "$1" > "$2"'), "a b", {}, [True, False, True], id="another command"),
        pytest.param(variant(cached=False), "a b", {}, [True, False, True], id="a task can stay out"),
        pytest.param(line, "a b", {"cache": False}, [False] * 3, id="a run can stay out"),
    ],
)
def test_steps_are_found_by_what_they_are(
    harness: PipelineHarness, first: Run, pipeline: Any, text: str, more: dict[str, Any], found: list[bool]
) -> None:
    assert hits(harness.run(pipeline, {"text": text}, **more)) == found


def test_teams_share_nothing(harness: PipelineHarness, first: Run) -> None:
    assert hits(harness.run(line, {"text": "a b"}, team="speech")) == [False] * 3
    kept = caches(harness, "").values()
    kinds = [one for one in kept if one["metadata"].get("labels", {}).get("workflows.argoproj.io/configmap-type")]
    assert {one["metadata"]["name"].split(".")[0] for one in kinds} == {"vision", "speech"}
    for one in kinds:
        team = one["metadata"]["name"].split(".")[0]
        other = {"vision": "speech", "speech": "vision"}[team]
        assert f"{other}/pipelines/" not in str(one["data"]), one["metadata"]["name"]


@dsl.pipeline(name="full")
def full(text: str) -> str:
    written = samples.write(text=text).set_retry(0)
    return samples.read(taken=written.output).outputs["text"]


def caches(harness: PipelineHarness, prefix: str) -> dict[str, dict[str, Any]]:
    """The caches whose names begin so."""
    kept = harness.server.call("GET", f"/api/v1/namespaces/{harness.controller.namespace}/configmaps").body["items"]
    return {one["metadata"]["name"]: one for one in kept if one["metadata"]["name"].startswith(prefix)}


def test_a_full_cache_fails_no_run(harness: PipelineHarness) -> None:
    """A ConfigMap holds a MiB. What finds no room is not remembered; what was remembered is still found."""
    assert harness.run(full, {"text": "first"}).phase == "Succeeded"
    for name, one in caches(harness, "vision.full.").items():
        (text,) = one["data"].values()
        ballast = json.dumps(json.loads(text) | {"nodeID": ""})
        room = 2**20 - len(text) - len("k-" + "0" * 77) - len("k-ballast")
        one["data"]["k-ballast"] = ballast.replace('"nodeID": ""', f'"nodeID": "{"x" * (room - len(ballast))}"')
        answer = harness.server.call("PUT", f"/api/v1/namespaces/{harness.controller.namespace}/configmaps/{name}", one)
        assert answer.ok, answer.message
    for text, hit in (("second", False), ("second", False), ("first", True)):
        run = harness.run(full, {"text": text})
        assert run.phase == "Succeeded", run.message
        assert run.value("read", "text") == text
        assert [run.cached(run.node(task)) for task in ("write", "read")] == [hit, hit]
    assert "error creating cache entry" in harness.controller.log


def test_a_deleted_artifact_is_named(harness: PipelineHarness) -> None:
    """The cache still has the step; who needs its bytes says what is missing, and a run without cache helps."""
    run = harness.run(line, {"text": "gone"})
    assert harness.store.delete(run.key("write", "made"))
    again = harness.run(variant(script='cat "$1" > "$2"'), {"text": "gone"}, cache=True)
    assert again.phase in ("Failed", "Error")
    assert f"input artifact taken is not in the store any more: s3://runs/{run.key('write', 'made')}" in again.message
    assert harness.run(line, {"text": "gone"}, cache=False).value("read", "text") == "GONE"
