"""The type of a file to submit, and workflows that were not written with kfp."""

from pathlib import Path

import pytest
import yaml

from trainyard import structured
from trainyard.contract import Team, defaults
from trainyard.errors import UsageError
from trainyard.pipelines import adapt, source
from trainyard.pipelines.translate.settings import Settings

HERA = """
from hera.workflows import Container, Workflow

with Workflow(generate_name="hello-", entrypoint="say", arguments={"name": "ada"}) as w:
    Container(name="say", image="site.invalid/trainyard/pipeline:0.2.0", command=["echo", "hello"])
"""
ARGO = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: by-hand-}
spec:
  entrypoint: say
  arguments: {parameters: [{name: who}, {name: often, value: "1"}]}
  templates: [{name: say, container: {image: i, command: [echo]}}]
"""
TEAM = Team("vision", ("vision", "training"))
SETTINGS = Settings(defaults(), TEAM, queue="training", priority="training-high", experiment="first")


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.py", HERA, source.HERA),
        ("a.py", "from kfp import dsl\n", source.KFP),
        ("a.py", "from kfp import dsl\nfrom hera.shared import x\n", source.KFP),
        ("a.py", "# import hera\n", source.KFP),
        ("a.yaml", ARGO, source.ARGO),
        ("a.json", '{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}', source.ARGO),
        ("a.yaml", "pipelineInfo: {name: x}\n", source.KFP),
        ("a.py", "\x00", source.KFP),
    ],
)
def test_what_it_is(tmp_path: Path, name: str, text: str, kind: str) -> None:
    assert source.kind(_file(tmp_path, name, text)) == kind


def test_a_hera_workflow(tmp_path: Path) -> None:
    found = source.workflow(_file(tmp_path, "hello.py", HERA))
    assert (found["kind"], found["metadata"]["generateName"]) == ("Workflow", "hello-")
    assert found["spec"]["templates"][0]["container"]["command"] == ["echo", "hello"]


def test_one_of_two_hera_workflows(tmp_path: Path) -> None:
    file = _file(tmp_path, "two.py", HERA + HERA.replace("as w", "as other").replace("hello-", "bye-"))
    with pytest.raises(UsageError, match=r"the file has 2 hera workflows; it has: other, w. choose one with --name"):
        source.workflow(file)
    assert source.workflow(file, "other")["metadata"]["generateName"] == "bye-"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.py", "from hera.workflows import Workflow\nraise SystemExit('no')\n", "a.py:2: SystemExit: no"),
        (
            "a.py",
            "from hera.workflows import Workflow\nimport missing_thing\n",
            "a.py:2: the module missing_thing is not",
        ),
        ("a.py", "from hera.workflows import Workflow\ndef broken(:\n", "a.py:2: invalid Python"),
        ("a.py", "from hera.workflows import Workflow\n", "the file has 0 hera workflows; it has: none"),
        ("a.yaml", ARGO.replace("kind: Workflow", "kind: WorkflowTaskSet"), "it is a WorkflowTaskSet, not a Workflow"),
        ("a.yaml", ARGO.replace("kind: Workflow", "kind: CronWorkflow"), "the Workflow has no spec"),
        ("a.yaml", ARGO + "---\na: 1\n", "the file holds 2 documents, not one Workflow"),
        ("a.yaml", ARGO.replace("metadata: {generateName: by-hand-}", ""), "the Workflow has no name"),
        ("a.yaml", ARGO.replace("spec:", "spec: [").replace("  entrypoint", "entrypoint"), "invalid YAML: "),
        ("a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", "the Workflow has no spec"),
    ],
)
def test_files_that_hold_none(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        source.workflow(_file(tmp_path, name, text))
    assert words in str(caught.value)


def test_what_a_workflow_lacks_becomes_the_team_s() -> None:
    made = adapt.workflow(yaml.safe_load(ARGO), SETTINGS, {"who": "ada"})
    spec = made["spec"]
    assert made["metadata"]["namespace"] == "vision"
    assert made["metadata"]["labels"] == {"trainyard.io/pipeline": "by-hand", "trainyard.io/experiment": "first"}
    assert spec["serviceAccountName"] == "pipeline"
    assert spec["schedulerName"] == "volcano"
    assert spec["podPriorityClassName"] == "training-high"
    assert spec["podMetadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "training"}
    assert spec["podMetadata"]["labels"] == {"trainyard.io/api-access": "true"}
    assert spec["securityContext"]["runAsNonRoot"]
    assert 0 < spec["activeDeadlineSeconds"] <= 604800
    assert spec["ttlStrategy"]
    assert spec["arguments"]["parameters"] == [{"name": "who", "value": "ada"}, {"name": "often", "value": "1"}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "the workflow needs a value for who. give --param who=…"),
        ({"who": "ada", "whom": "x"}, "the workflow has no parameter whom; it has: who, often"),
    ],
)
def test_a_workflow_s_parameters(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        adapt.workflow(yaml.safe_load(ARGO), SETTINGS, given)
    assert words in str(caught.value)


def test_yaml_that_every_reader_takes_for_the_same() -> None:
    document = {"parameters": [{"name": "n"}, {"name": "Yes"}, {"name": "x", "value": "010"}], "on": "a\nb\n"}
    text = structured.text(document, "yaml")
    assert yaml.safe_load(text) == document
    assert 'name: "n"' in text
    assert '"on": |' in text
