"""What kfp means, kept by Argo: conditions, loops, collections, exit tasks, retries, nested pipelines, importers."""

import json
from pathlib import Path
from typing import Any, List  # noqa: UP035  (kfp reads annotations of its own kinds)

import pytest
import samples
from kfp import dsl
from kfp.dsl import Dataset
from pipeline_harness import PipelineHarness


@dsl.pipeline(name="branches")
def branches(word: str, times: int) -> str:
    said = samples.same(value=word).set_caching_options(False)
    with dsl.If(said.outputs["text"] == "left"):
        one = samples.same(value="went left")
    with dsl.Elif(said.outputs["text"] == "right"):
        two = samples.same(value="went right")
    with dsl.Else():
        three = samples.same(value="went on")
    with dsl.If(times > 3):
        samples.note(folder="/nowhere", line="never")
    return dsl.OneOf(one.outputs["text"], two.outputs["text"], three.outputs["text"])


def root(run) -> dict:
    """The outputs of the whole run."""
    node = next(one for one in run.nodes if one["name"] == run.name)
    return {one["name"]: one["value"] for one in node.get("outputs", {}).get("parameters", [])}


def test_one_branch_runs(harness: PipelineHarness) -> None:
    for word, said in (("left", "went left"), ("right", "went right"), ("x", "went on")):
        run = harness.run(branches, {"word": word, "times": 3})
        assert run.phase == "Succeeded", run.message
        assert root(run)["Output"] == said
        assert not run.of("note") and len(run.pods()) + sum(map(run.cached, run.nodes)) == 2


@dsl.pipeline(name="chosen-artifact")
def chosen_artifact(word: str) -> str:
    said = samples.same(value=word)
    with dsl.If(said.outputs["text"] == "left"):
        one = samples.write(text="left hand")
    with dsl.Else():
        two = samples.write(text="right hand")
    picked = dsl.OneOf(one.outputs["made"], two.outputs["made"])
    return samples.read(taken=picked).outputs["text"]


@dsl.pipeline(name="squares")
def squares(upto: int) -> str:
    made = samples.numbers(upto=upto)
    with dsl.ParallelFor(made.outputs["made"], parallelism=2) as item:
        one = samples.square(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["result"])).outputs["text"]


@dsl.pipeline(name="nothing-to-do")
def nothing(items: list = []) -> str:  # noqa: B006
    with dsl.ParallelFor(items) as item:
        one = samples.square(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["result"])).outputs["text"]


TEXTS = ["007", "1.50", "true", "[1]", "a \"b\" 'c'"]


@dsl.pipeline(name="words")
def words() -> str:
    with dsl.ParallelFor(TEXTS) as item:
        one = samples.same(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["text"])).outputs["text"]


@dsl.pipeline(name="inner-loop")
def table(rows: List[dict]) -> str:  # noqa: UP006
    with dsl.ParallelFor(rows) as row, dsl.ParallelFor([1, 2]) as _:
        one = samples.same(value=row.title)
    return samples.listed(values=dsl.Collected(one.outputs["text"])).outputs["text"]


@dsl.pipeline(name="models")
def models() -> str:
    with dsl.ParallelFor(["a", "b", "c"]) as item:
        one = samples.write(text=item)
    return samples.count(models=dsl.Collected(one.outputs["made"])).output


@dsl.pipeline(name="made-in-a-loop")
def made_in_a_loop(words: list) -> List[Dataset]:  # noqa: UP006
    with dsl.ParallelFor(words) as item:
        one = samples.write(text=item)
    return dsl.Collected(one.outputs["made"])


@dsl.pipeline(name="over-artifacts")
def over_artifacts(words: list, suffix: str = "!") -> str:
    made = made_in_a_loop(words=words)
    with dsl.ParallelFor(made.output, parallelism=1) as each:
        one = samples.join(taken=each, suffix=suffix)
    return samples.count(models=dsl.Collected(one.outputs["made"])).output


@dsl.pipeline(name="inner")
def inner(text: str, taken: dsl.Input[Dataset], suffix: str = "!") -> Dataset:
    return samples.join(taken=taken, suffix=suffix).outputs["made"]


@dsl.pipeline(name="outer")
def outer(text: str = "deep") -> str:
    made = samples.write(text=text)
    one = inner(text=text, taken=made.outputs["made"])
    two = inner(text=text, taken=one.output, suffix="?")
    return samples.read(taken=two.output).outputs["text"]


@dsl.pipeline(name="conditional-loop")
def some(items: List[int]) -> str:  # noqa: UP006
    with dsl.ParallelFor(items) as item, dsl.If(item > 2):
        one = samples.square(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["result"])).outputs["text"]


@pytest.mark.parametrize(
    ("pipeline", "given", "said"),
    [
        pytest.param(chosen_artifact, {"word": "left"}, "left hand", id="the artifact of the branch that ran"),
        pytest.param(chosen_artifact, {"word": "other"}, "right hand", id="the artifact of the other branch"),
        pytest.param(squares, {"upto": 12}, [n * n for n in range(1, 13)], id="a loop keeps order and types"),
        pytest.param(nothing, {}, "[]", id="an empty loop collects nothing"),
        pytest.param(words, {}, TEXTS, id="collected texts stay texts"),
        pytest.param(table, {"rows": [{"title": "a"}, {"title": "b"}]}, [["a", "a"], ["b", "b"]], id="loops nest"),
        pytest.param(some, {"items": [1, 2, 3, 4]}, [9, 16], id="skipped iterations are left out"),
        pytest.param(models, {}, "a|b|c", id="artifacts are collected"),
        pytest.param(over_artifacts, {"words": ["a", "b", "c"]}, "a!|b!|c!", id="a loop over artifacts"),
        pytest.param(over_artifacts, {"words": []}, "", id="a loop over no artifacts"),
        pytest.param(outer, {}, "deep!?", id="pipelines nest with defaults"),
    ],
)
def test_a_graph_gives(harness: PipelineHarness, pipeline: Any, given: dict[str, Any], said: Any) -> None:
    run = harness.run(pipeline, given)
    assert run.phase == "Succeeded", run.message
    found = root(run)["Output"]
    assert (found if isinstance(said, str) else json.loads(found)) == said


@dsl.pipeline(name="guarded")
def guarded(folder: str, script: str):
    done = samples.status(folder=folder)
    with dsl.ExitHandler(done):
        samples.shell(script=script).set_caching_options(False)


@pytest.mark.parametrize(
    ("script", "phase", "told"), [("echo lost >&2; exit 3", "Failed", "FAILED"), ("true", "Succeeded", "SUCCEEDED")]
)
def test_an_exit_task_runs_and_hides_no_failure(
    harness: PipelineHarness, tmp_path: Path, script: str, phase: str, told: str
) -> None:
    run = harness.run(guarded, {"folder": str(tmp_path), "script": script})
    assert run.phase == phase, run.message
    assert run.node("status")["phase"] == "Succeeded"
    assert (tmp_path / "status").read_text().startswith(f"{told} exit-handler-1")


@dsl.container_component
def kept(text: dsl.OutputPath(str), word: str = "nothing"):
    return dsl.ContainerSpec(image=samples.IMAGE, command=["sh", "-c", 'printf %s "$1" > "$0"', text, word])


@dsl.pipeline(name="regardless")
def regardless() -> str:
    bad = samples.broken(reason="lost")
    return kept(word=bad.output).ignore_upstream_failure().outputs["text"]


def test_a_task_that_ignores_failures_hides_none(harness: PipelineHarness) -> None:
    run = harness.run(regardless)
    assert run.phase == "Failed" and "ValueError: lost" in run.message
    assert run.node("kept")["phase"] == "Succeeded" and run.value("kept", "text") == "nothing"


@dsl.pipeline(name="tried")
def tried(folder: str, tries: int):
    step = samples.shell(script=f'echo x >> "{folder}/tries"; [ $(wc -l < "{folder}/tries") -gt {tries} ]')
    step.set_caching_options(False).set_retry(num_retries=2, backoff_duration="1s", backoff_factor=2)


def test_retries_end_with_success_or_after_the_last(harness: PipelineHarness, tmp_path) -> None:
    for tries, phase, count in ((2, "Succeeded", 3), (9, "Failed", 3)):
        folder = tmp_path / phase
        folder.mkdir()
        run = harness.run(tried, {"folder": str(folder), "tries": tries})
        assert run.phase == phase, run.message
        assert len((folder / "tries").read_text().split()) == count


def test_a_failing_command_is_not_tried_again_unless_asked(harness: PipelineHarness, tmp_path) -> None:
    run = harness.run(guarded, {"folder": str(tmp_path), "script": f'echo x >> "{tmp_path}/tries"; exit 3'})
    assert run.phase == "Failed"
    assert (tmp_path / "tries").read_text().split() == ["x"]


@dsl.pipeline(name="imports")
def imports(uri: str) -> str:
    brought = dsl.importer(artifact_uri=uri, artifact_class=Dataset, reimport=True, metadata={"from": "outside"})
    return samples.read(taken=brought.output).outputs["text"]


@dsl.pipeline(name="formats")
def formats(name: str, upto: int = 2) -> str:
    said = samples.same(value=f"{name} has {upto} in {dsl.PIPELINE_JOB_NAME_PLACEHOLDER}")
    return samples.same(value=f"<{said.outputs['text']}>").outputs["text"]


def test_texts_are_put_together(harness: PipelineHarness) -> None:
    run = harness.run(formats, {"name": 'it\'s "x" ~ {y}'})
    assert (run.phase, root(run).get("Output")) == ("Succeeded", f'<it\'s "x" ~ {{y}} has 2 in {run.name}>'), (
        run.message
    )


@dsl.pipeline(name="given")
def given(taken: dsl.Input[Dataset]) -> str:
    return samples.read(taken=taken).outputs["text"]


@pytest.mark.parametrize(("pipeline", "taken"), [(imports, "uri"), (given, "taken")])
def test_an_object_of_the_store_is_imported_or_given_by_its_uri(
    harness: PipelineHarness, pipeline: Any, taken: str
) -> None:
    first = harness.run(models)
    run = harness.run(pipeline, {taken: f"s3://runs/{first.key('write', 'made')}/data"})
    assert run.phase == "Succeeded", run.message
    assert run.value("read", "text") in ("a", "b", "c")
    assert pipeline is given or root(run)["Output"] == run.value("read", "text")
