"""Specs of training jobs: names, amounts, and how trainyard.yaml is checked."""

import pytest

from trainyard.errors import UsageError
from trainyard.kinds import JobSpec, Mount, check, registry
from trainyard.kinds.spec import amount_of, seconds


@pytest.mark.parametrize("name", ["Upper", "1st", "a" * 51, "a_b", "", "ends-"])
def test_names_that_no_pod_can_have_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="invalid job name"):
        JobSpec(name=name, command=("x",))


def test_lengths_of_time_and_amounts() -> None:
    assert [seconds(text) for text in ("90m", "1d12h", "45", 30)] == [5400, 129600, 45, 30]
    assert [amount_of(text) for text in ("500m", "2", "4Gi", "1.5k", "x")] == [0.5, 2, 4 * 1024**3, 1500, 0]
    for text in ("", "soon", "0", "5x"):
        with pytest.raises(UsageError, match="invalid duration"):
            seconds(text)


def test_settings_of_the_file_become_a_spec() -> None:
    text = """
name: digits
framework: tensorflow
command: [python, train.py]
parameterServers: 1
sharedMemory: 1Gi
memory: 4Gi
deadline: 2h
env: {LR: "0.1", KEY: {secret: wandb, key: token}}
mounts: [{claim: shared, path: /data, readOnly: true}]
"""
    spec = JobSpec.of(check.settings(text, "trainyard.yaml"))
    assert (spec.parameter_servers, spec.shared_memory, spec.deadline) == (1, "1Gi", 7200)
    assert spec.mounts == (Mount("shared", "/data", True),)
    assert spec.env["KEY"] == {"secret": "wandb", "key": "token"}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: x\ngpu: 2\n", 2, "unknown setting gpu. did you mean gpus"),
        ("name: x\nnodes: two\n", 2, 'nodes is "two". it must be a whole number'),
        ("name: x\nnodes: 0\n", 2, "nodes is 0. use at least 1"),
        ("name: x\nframework: caffe\n", 2, f'framework is "caffe". use one of {", ".join(registry.FRAMEWORKS)}'),
        ("name: x\nenv:\n  LR: 0.1\n", 3, "env.LR is 0.1. write each value as a string in quotes"),
        ("name: x\nenv:\n  DEBUG: yes\n", 3, "env.DEBUG is true, which YAML reads as yes or no"),
        ("name: x\nenv:\n  yes: a\n", 2, "env has the name true; use letters, digits and _ only"),
        ("command: python train.py\n", 1, "write it as a list of words"),
        ("name: x\nmounts:\n- {claim: shared}\n", 3, "it needs claim, path"),
        ("name: x\nname: y\n", 2, "duplicate key name, first on line 1"),
        ("- a\n", 1, "settings must be a map of `key: value`"),
        ("name: [\n", 2, "invalid YAML: "),
        ("name: x\nresults: ../up\n", 2, "invalid results: "),
        ("name: x\n---\nname: y\n", 0, "several documents"),
    ],
)
def test_errors_of_the_file_have_their_line(text: str, line: int, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        check.settings(text, "trainyard.yaml")
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"trainyard.yaml:{line}: " if line else "trainyard.yaml: ")


def test_the_schema_names_every_setting_that_a_spec_can_be_made_of() -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(check.schema())
    for key, rule in check.schema()["properties"].items():
        assert rule.get("description"), key
        sample = {"command": ["x"], "env": {}, "mounts": [], "deadline": "1h", "keep": "1h"}.get(
            key, rule.get("default")
        )
        if sample is not None:
            JobSpec.of({"name": "x", "command": ["x"], "framework": "tensorflow", key: sample})
    defaults = {key: rule["default"] for key, rule in check.schema()["properties"].items() if "default" in rule}
    assert JobSpec.of({"name": "x", "command": ["x"], **defaults}) == JobSpec(name="x", command=("x",))
