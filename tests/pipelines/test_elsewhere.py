"""What comes from elsewhere on the real controller: workflows written for Argo, and components from YAML."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import test_submit
from pipeline_harness import PipelineHarness, Run

from waiting import wait

FILES = Path(__file__).with_name("elsewhere")
VCJOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/vision/jobs"
IMAGE = "site.invalid/trainyard/pipeline:0.2.0"
Call = Callable[..., tuple[int, str, str]]
USES = """
from pathlib import Path
from kfp import components, dsl

count = components.load_component_from_file(str(Path(__file__).with_name("component.yaml")))
shout = components.load_component_from_file(str(Path(__file__).with_name("shout.yaml")))
quote = components.load_component_from_text({text!r})


@dsl.container_component
def say(text: str, made: dsl.Output[dsl.Artifact]):
    return dsl.ContainerSpec(image={image!r}, command=["sh", "-c", 'printf %s "$0" > "$1"', text, made.path])


@dsl.pipeline(name="counted")
def counted(text: str = "a few longer words and longer ones") -> str:
    said = say(text=text)
    first = count(text=said.outputs["made"], ignore="longer")
    second = count(text=said.outputs["made"], least_length=1)
    shouted = shout(taken=first.outputs["report"])
    return quote(first=first.outputs["total"], second=second.outputs["total"], third=shouted.outputs["text"]).output
"""
QUOTE = """
name: quote
inputs: [{name: first, type: Integer}, {name: second, type: Integer}, {name: third, type: String}]
outputs: [{name: Output, type: String}]
implementation:
  container:
    image: site.invalid/trainyard/pipeline:0.2.0
    command: [sh, -c, 'mkdir -p "$(dirname "$3")"; printf "%s of %s: %s" "$0" "$1" "$2" > "$3"', {inputValue: first},
      {inputValue: second}, {inputValue: third}, {outputPath: Output}]
"""
SHOUT = """
from kfp import compiler, dsl

@dsl.container_component
def shout(taken: dsl.Input[dsl.Artifact], text: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image={image!r}, command=["sh", "-c", 'tr a-z A-Z < "$0" > "$1"', taken.path, text])

compiler.Compiler().compile(shout, {path!r})
"""


def _ended(harness: PipelineHarness, call: Call, name: str, *options: str) -> Run:
    code, out, err = call("submit", FILES / f"{name}.yaml", "--wait", *options)
    run = Run(harness, "vision", test_submit._name(err), {}).refresh()
    assert code == 0, f"{out}\n{err}\n{run.summary()}"
    return run


def test_steps_with_parameters_scripts_and_conditions(harness: PipelineHarness, call: Call) -> None:
    run = _ended(harness, call, "steps", "-p", "word=whale")
    assert run.value("whisper", "quiet") == "(whale)"
    assert run.node("count")["outputs"]["result"] == "7"
    assert run.node("never")["phase"] == "Skipped"
    assert sorted(line for line in run.log().splitlines() if line) == ["(whale)", "7", "7 letters"]
    assert run.body["spec"]["serviceAccountName"] == "pipeline"


def test_a_diamond_hands_files_on_in_the_team_s_bucket(harness: PipelineHarness, call: Call) -> None:
    run = _ended(harness, call, "dag")
    key = f"vision/diamonds/{run.name}.txt"
    assert run.key("a", "kept") == key
    assert harness.store.read(key) == b"from the file\none\n"
    assert run.key("a", "text").startswith(f"vision/pipelines/{run.name}/")
    log = run.log()
    assert log.count("from the file\none\ntwo\n") == 2
    assert "no name of its own" in log


def test_a_set_of_containers(harness: PipelineHarness, call: Call) -> None:
    run = _ended(harness, call, "set")
    [pod] = run.pods()
    assert run.value(pod["displayName"], "note") == "first\nthen"


def test_a_resource_template_makes_a_job_and_waits(harness: PipelineHarness, member: Any, call: Call) -> None:
    process = member("submit", FILES / "resource.yaml", "--wait")
    made = wait(lambda: _job(harness), "the job", 120)
    name, uid = made["metadata"]["name"], made["metadata"]["uid"]
    assert made["spec"]["queue"] == "vision"
    run = Run(harness, "vision", made["metadata"]["ownerReferences"][0]["name"], {})
    wait(lambda: "Waiting for conditions: " in run.log(), "that it is waited for", 60)
    assert process.poll() is None, process.communicate()
    answer = harness.server.call(
        "PUT", f"{VCJOBS}/{name}/status", {**made, "status": {"state": {"phase": "Completed"}}}
    )
    assert answer.ok, answer.message
    out, err = process.communicate(timeout=240)
    assert run.refresh().name == test_submit._name(err)
    assert process.returncode == 0, f"{out}\n{err}\n{run.summary()}\n{run.log()}"
    assert made["metadata"]["ownerReferences"][0]["uid"] == run.body["metadata"]["uid"]
    assert run.value("train", "job") == name
    assert harness.server.call("GET", f"{VCJOBS}/{name}").body["metadata"]["uid"] == uid


def _job(harness: PipelineHarness) -> dict[str, Any] | None:
    """The job that a template makes, once it is there."""
    found = harness.server.call("GET", VCJOBS).body["items"]
    return next((one for one in found if one["metadata"]["name"].startswith("from-argo-")), None)


def test_what_a_resource_template_may_not_make_is_said_with_the_server_s_words(
    harness: PipelineHarness, call: Call
) -> None:
    code, _, err = call("submit", FILES / "resource.yaml", "--wait", "-p", "queue=speech")
    assert code == 1
    assert "step train failed" in err
    assert "queue speech" in Run(harness, "vision", test_submit._name(err), {}).refresh().log()


def test_components_from_yaml_run_as_any_other(harness: PipelineHarness, call: Call, tmp_path: Path) -> None:
    """One of kfp's first form from a file, one from a text, one that kfp 2 has compiled."""
    (tmp_path / "component.yaml").write_text((FILES / "component.yaml").read_text())
    compiling = SHOUT.format(image=IMAGE, path=str(tmp_path / "shout.yaml"))
    subprocess.run([sys.executable, "-W", "ignore", "-c", _as_file(tmp_path, compiling)], check=True, timeout=120)
    file = tmp_path / "counted.py"
    file.write_text(USES.format(text=QUOTE, image=IMAGE))
    code, out, err = call("submit", file, "--no-cache")
    assert code == 0, f"{out}\n{err}"
    run = Run(harness, "vision", test_submit._name(err), {}).refresh()
    assert '= 4 of 7: {"TOTAL": 4, "WORDS": "AT-LEAST-3"}' in out
    report = json.loads(harness.store.read(f"{run.key('count-words', 'report')}/data"))
    assert report == {"total": 4, "words": "at-least-3"}


def _as_file(folder: Path, text: str) -> str:
    """A program that runs the text from a file: kfp reads a component's source."""
    path = folder / "shout.py"
    path.write_text(text)
    return f"import runpy; runpy.run_path({str(path)!r})"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("{inputValue: least length}", "{inputPath: least length}"),
            "kfp 2 treats an input of this type as a parameter: use inputValue",
        ),
        (("implementation:", "implementations:"), "not a component: the YAML has neither implementation"),
        (("name: Count words", "name: [Count"), "counted.py:4: "),
    ],
)
def test_a_component_that_kfp_does_not_take_is_said(
    call: Call, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    (tmp_path / "component.yaml").write_text((FILES / "component.yaml").read_text().replace(*change))
    file = tmp_path / "counted.py"
    file.write_text(
        "from pathlib import Path\nfrom kfp import components\n\n"
        'count = components.load_component_from_file(str(Path(__file__).with_name("component.yaml")))\n'
    )
    code, _, err = call("submit", file)
    assert code == 2
    assert str(file) in err and words in err
