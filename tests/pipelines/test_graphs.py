"""What kfp means, kept by Argo: conditions, loops, collections, exit tasks, retries, nested pipelines, importers."""

import json
from typing import List  # noqa: UP035  (kfp reads annotations of its own kinds)

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


def test_the_artifact_of_the_branch_that_ran_is_used(harness: PipelineHarness) -> None:
    for word, said in (("left", "left hand"), ("other", "right hand")):
        run = harness.run(chosen_artifact, {"word": word})
        assert (run.phase, root(run).get("Output")) == ("Succeeded", said), run.message


@dsl.pipeline(name="squares")
def squares(upto: int) -> str:
    made = samples.numbers(upto=upto)
    with dsl.ParallelFor(made.outputs["made"], parallelism=2) as item:
        one = samples.square(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["result"])).outputs["text"]


def test_a_loop_collects_in_order_and_keeps_types(harness: PipelineHarness) -> None:
    run = harness.run(squares, {"upto": 12})
    assert run.phase == "Succeeded", run.message
    assert json.loads(root(run)["Output"]) == [n * n for n in range(1, 13)]


@dsl.pipeline(name="nothing-to-do")
def nothing(items: list = []) -> str:  # noqa: B006
    with dsl.ParallelFor(items) as item:
        one = samples.square(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["result"])).outputs["text"]


def test_an_empty_loop_collects_nothing(harness: PipelineHarness) -> None:
    run = harness.run(nothing, {})
    assert (run.phase, root(run).get("Output")) == ("Succeeded", "[]"), run.message


@dsl.pipeline(name="words")
def words() -> str:
    with dsl.ParallelFor(["007", "1.50", "true", "[1]", "a \"b\" 'c'"]) as item:
        one = samples.same(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["text"])).outputs["text"]


def test_collected_texts_stay_texts(harness: PipelineHarness) -> None:
    run = harness.run(words)
    assert run.phase == "Succeeded", run.message
    assert json.loads(root(run)["Output"]) == ["007", "1.50", "true", "[1]", "a \"b\" 'c'"]


@dsl.pipeline(name="inner-loop")
def table(rows: List[dict]) -> str:  # noqa: UP006
    with dsl.ParallelFor(rows) as row, dsl.ParallelFor([1, 2]) as _:
        one = samples.same(value=row.title)
    return samples.listed(values=dsl.Collected(one.outputs["text"])).outputs["text"]


def test_loops_nest_and_parts_of_items_are_read(harness: PipelineHarness) -> None:
    run = harness.run(table, {"rows": [{"title": "a"}, {"title": "b"}]})
    assert run.phase == "Succeeded", run.message
    assert json.loads(root(run)["Output"]) == [["a", "a"], ["b", "b"]]


@dsl.pipeline(name="models")
def models() -> str:
    with dsl.ParallelFor(["a", "b", "c"]) as item:
        one = samples.write(text=item)
    return samples.count(models=dsl.Collected(one.outputs["made"])).output


def test_artifacts_are_collected(harness: PipelineHarness) -> None:
    run = harness.run(models)
    assert (run.phase, root(run).get("Output")) == ("Succeeded", "a|b|c"), run.message


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


def test_a_loop_over_artifacts_takes_each_and_collects_again(harness: PipelineHarness) -> None:
    for words, said in ((["a", "b", "c"], "a!|b!|c!"), ([], "")):
        run = harness.run(over_artifacts, {"words": words})
        assert (run.phase, root(run).get("Output")) == ("Succeeded", said), run.message


@dsl.pipeline(name="inner")
def inner(text: str, taken: dsl.Input[Dataset], suffix: str = "!") -> Dataset:
    return samples.join(taken=taken, suffix=suffix).outputs["made"]


@dsl.pipeline(name="outer")
def outer(text: str = "deep") -> str:
    made = samples.write(text=text)
    one = inner(text=text, taken=made.outputs["made"])
    two = inner(text=text, taken=one.output, suffix="?")
    return samples.read(taken=two.output).outputs["text"]


def test_pipelines_nest_with_defaults(harness: PipelineHarness) -> None:
    run = harness.run(outer)
    assert (run.phase, root(run).get("Output")) == ("Succeeded", "deep!?"), run.message


@dsl.pipeline(name="guarded")
def guarded(folder: str, script: str):
    done = samples.status(folder=folder)
    with dsl.ExitHandler(done):
        samples.shell(script=script).set_caching_options(False)


def test_an_exit_task_runs_and_a_failed_run_stays_failed(harness: PipelineHarness, tmp_path) -> None:
    run = harness.run(guarded, {"folder": str(tmp_path), "script": "echo lost >&2; exit 3"})
    assert run.phase == "Failed"
    assert run.node("status")["phase"] == "Succeeded"
    assert (tmp_path / "status").read_text().startswith("FAILED exit-handler-1")


def test_an_exit_task_runs_after_success(harness: PipelineHarness, tmp_path) -> None:
    run = harness.run(guarded, {"folder": str(tmp_path), "script": "true"})
    assert run.phase == "Succeeded", run.message
    assert (tmp_path / "status").read_text().startswith("SUCCEEDED exit-handler-1")


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


@dsl.pipeline(name="conditional-loop")
def some(items: List[int]) -> str:  # noqa: UP006
    with dsl.ParallelFor(items) as item, dsl.If(item > 2):
        one = samples.square(value=item)
    return samples.listed(values=dsl.Collected(one.outputs["result"])).outputs["text"]


def test_skipped_iterations_are_left_out(harness: PipelineHarness) -> None:
    run = harness.run(some, {"items": [1, 2, 3, 4]})
    assert run.phase == "Succeeded", run.message
    assert json.loads(root(run)["Output"]) == [9, 16]


@dsl.pipeline(name="imports")
def imports(uri: str) -> str:
    brought = dsl.importer(artifact_uri=uri, artifact_class=Dataset, reimport=True, metadata={"from": "outside"})
    return samples.read(taken=brought.output).outputs["text"]


def test_an_object_of_the_store_is_imported(harness: PipelineHarness) -> None:
    first = harness.run(models)
    uri = f"s3://runs/{first.key('write', 'made')}/data"
    run = harness.run(imports, {"uri": uri})
    assert run.phase == "Succeeded", run.message
    assert root(run)["Output"] in ("a", "b", "c")


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


def test_an_artifact_is_given_by_its_uri(harness: PipelineHarness) -> None:
    first = harness.run(models)
    run = harness.run(given, {"taken": f"s3://runs/{first.key('write', 'made')}/data"})
    assert run.phase == "Succeeded", run.message
    assert run.value("read", "text") in ("a", "b", "c")
