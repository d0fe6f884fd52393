"""Collected artifacts, optional inputs, every kind of value, importers: what a step sees is what kfp promises."""

import json

import samples
from kfp import dsl
from pipeline_harness import PipelineHarness


@dsl.pipeline(name="artifacts")
def artifacts():
    with dsl.ParallelFor(["a", "b"]) as outer_item:
        name = samples.same(value=outer_item)
        with dsl.ParallelFor(samples.numbers(upto=2).output) as inner_item:
            made = samples.write(text=f"{name.output}-{inner_item}")
    samples.count(models=dsl.Collected(made.output))


def test_artifacts_of_nested_loops_are_collected(harness: PipelineHarness) -> None:
    run = harness.run(artifacts)
    assert (run.phase, run.value("count", "Output")) == ("Succeeded", "a-1|a-2|b-1|b-2"), run.message
    taken = run.lineage("count")["inputs"]
    assert [one["name"] for one in taken] == ["models"] * 4 and len({one["uri"] for one in taken}) == 4
    again = harness.run(artifacts)
    assert again.cached(again.node("count")) and not again.pods(), again.summary()


@dsl.pipeline(name="one-fails")
def one_fails():
    with dsl.ParallelFor([1, 2, 3], parallelism=1) as value:
        samples.shell(script=f"test {value} -ne 2")


def test_one_failed_iteration_fails_the_run(harness: PipelineHarness) -> None:
    run = harness.run(one_fails)
    assert run.phase == "Failed"
    assert [one["phase"] for one in run.pods()].count("Failed") == 1


@dsl.pipeline(name="optional-inputs")
def optional_inputs():
    samples.optional().set_display_name("none")
    samples.optional(taken=samples.write(text="x").output, word="word")


def test_optional_inputs(harness: PipelineHarness) -> None:
    run = harness.run(optional_inputs)
    assert run.phase == "Succeeded", run.message
    assert run.value("optional", "text") == "nothing without"
    found = run.value("optional-2", "text").split()
    assert found[:2] == ["word", "with"] and found[2].endswith("/kfp/in/taken/data")


@dsl.pipeline(name="all-values")
def all_values(n: int, yes: float, flag: bool, words: list, table: dict, text: str):
    samples.values(n=n, yes=yes, flag=flag, words=words, table=table, text=text)


def test_values_and_metadata_survive(harness: PipelineHarness) -> None:
    """Also parameters that YAML 1.1 reads as truth values, and text that template engines look for."""
    given = {
        "n": 7, "yes": 0.1, "flag": True, "words": ["007", 'q"\\', "ü"], "table": {"a": [1, 2.5, None]},
        "text": "two\nlines {x} 'q' \"d\" $HOME \\n",
    }  # fmt: skip
    run = harness.run(all_values, given)
    assert run.phase == "Succeeded", run.message
    assert json.loads(run.value("values", "Output")) == [*given.values(), True]
    assert harness.store.read(run.key("values", "model") + "/data") == b"{{item}} {{=1+1}} {{workflow.name}}"
    assert json.loads(harness.store.read(run.key("values", "model") + "/meta.json"))["metadata"] == {"rows": 3}
    assert json.loads(harness.store.read(run.key("values", "metrics") + "/meta.json"))["metadata"] == {"loss": 0.25}


@dsl.pipeline(name="imports")
def imports(uri: str):
    found = dsl.importer(artifact_uri=uri, artifact_class=dsl.Dataset, metadata={"rows": 2})
    samples.read(taken=found.output)


def test_an_imported_object_is_an_artifact(harness: PipelineHarness) -> None:
    (harness.folder / "set.csv").write_text("a,b")
    harness.store.save(harness.folder / "set.csv", "vision/set.csv", archived=False)
    run = harness.run(imports, {"uri": "s3://runs/vision/set.csv"})
    assert (run.phase, run.value("read", "text")) == ("Succeeded", "a,b"), run.message
    (taken,) = run.lineage("read")["inputs"]
    assert taken["task"] == "importer"
    run = harness.run(imports, {"uri": "s3://runs/vision/nothing.csv"})
    assert run.phase == "Failed" and "s3://runs/vision/nothing.csv does not exist" in run.message


def test_users_code_sees_no_keys_of_the_store(harness: PipelineHarness) -> None:
    run = harness.run(artifacts, team="speech")
    assert run.phase == "Succeeded", run.message
    for life in harness.kubelet.of(run.name):
        main = next(one for one in life.pod["spec"]["containers"] if one["name"] == "main")
        assert not [one for one in main["env"] if "valueFrom" in one]
        assert not [one for one in main["volumeMounts"] if "secret" in one["name"]]
