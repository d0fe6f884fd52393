"""Broken pipelines: each is one clear finding at its line, none a traceback.

A case changes one text of something that is clean: (what is wrong, old, new, code, what the line of the finding holds).
"""

import pytest
import yaml
from lint_cases import broken, damaged, misshapen, one, site

from trainyard import contract
from trainyard.pipelines import lint
from trainyard.pipelines.lint.files import check_text

PIPELINE = """\
pipelineInfo: {name: digits}
schemaVersion: 2.1.0
sdkVersion: kfp-2.17.0
components:
  comp-make:
    executorLabel: exec-make
    inputDefinitions:
      parameters:
        rows: {parameterType: NUMBER_INTEGER}
    outputDefinitions:
      parameters:
        count: {parameterType: NUMBER_INTEGER}
      artifacts:
        data: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}}
  comp-train:
    executorLabel: exec-train
    inputDefinitions:
      parameters:
        rows: {parameterType: NUMBER_INTEGER}
        rate: {parameterType: NUMBER_DOUBLE, defaultValue: 0.1}
        note: {parameterType: STRING, isOptional: true}
      artifacts:
        data: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}}
    outputDefinitions:
      artifacts:
        model: {artifactType: {schemaTitle: system.Model, schemaVersion: 0.0.1}}
deploymentSpec:
  executors:
    exec-make:
      container:
        image: site.invalid/trainyard/trainer-torch:0.2.0
        command: [python3, make.py]
    exec-train:
      container:
        image: site.invalid/trainyard/trainer-torch:0.2.0
        command: [python3, train.py]
        args: [--out, "s3://runs/vision/digits"]
        env:
          - {name: MODE, value: fast}
        resources: {resourceCpuLimit: "2", resourceMemoryLimit: 4Gi}
root:
  inputDefinitions:
    parameters:
      rows: {parameterType: NUMBER_INTEGER}
  outputDefinitions:
    artifacts:
      model: {artifactType: {schemaTitle: system.Model, schemaVersion: 0.0.1}}
  dag:
    outputs:
      artifacts:
        model:
          artifactSelectors:
            - {producerSubtask: train, outputArtifactKey: model}
    tasks:
      make:
        componentRef: {name: comp-make}
        taskInfo: {name: make}
        inputs:
          parameters:
            rows: {componentInputParameter: rows}
      train:
        componentRef: {name: comp-train}
        taskInfo: {name: train}
        dependentTasks: [make]
        inputs:
          parameters:
            rows: {taskOutputParameter: {producerTask: make, outputParameterKey: count}}
            rate: {runtimeValue: {constant: 0.5}}
            note: {runtimeValue: {constant: short}}
          artifacts:
            data: {taskOutputArtifact: {producerTask: make, outputArtifactKey: data}}
"""


TRAINER = "    exec-train:\n      container:\n        image: site.invalid/trainyard/trainer-torch:0.2.0"
OTHER = "    exec-train:\n      container:\n        image: "


PIPELINES = [
    ("no YAML", "schemaVersion: 2.1.0", "schemaVersion: [2.1.0", "TY101", ""),
    ("a key twice", "sdkVersion:", "schemaVersion:", "TY101", "schemaVersion: kfp"),
    ("no name", "{name: digits}", "{}", "TY102", "pipelineInfo"),
    ("an unknown field", "pipelineInfo: {name: digits}", "pipelineInfo: {nam: digits}", "TY102", "pipelineInfo"),
    ("a field of an executor that is mistyped", "        args: [--out", "        arg: [--out", "TY102", "arg:"),
    ("a wrong type", "dependentTasks: [make]", "dependentTasks: make", "TY102", ""),
    ("a type of parameter that is none", "rate: {parameterType: NUMBER_DOUBLE", "rate: {parameterType: MANY", "TY102",
     ""),
    ("a component that is not there", "        componentRef: {name: comp-make}",
     "        componentRef: {name: comp-mak}", "TY201", ""),
    ("an executor that is not there", "executorLabel: exec-make", "executorLabel: exec-made", "TY202", "comp-make"),
    ("a task to wait for that is not there", "[make]", "[mae]", "TY203", "train:"),
    ("an argument of a task that is not there", "{producerTask: make, outputArtifactKey: data}",
     "{producerTask: mak, outputArtifactKey: data}", "TY204", "producerTask: mak,"),
    ("an output that is not there", "outputArtifactKey: data}", "outputArtifactKey: date}", "TY204", "Key: date"),
    ("an input that the pipeline has not", "{componentInputParameter: rows}", "{componentInputParameter: row}", "TY205",
     "row}"),
    ("a required argument that is missing",
     "          artifacts:\n            data: {taskOutputArtifact: {producerTask: make, outputArtifactKey: data}}\n",
     "", "TY206", "train:"),
    ("an argument that nobody takes", "            rate: {runtimeValue", "            ratio: {runtimeValue", "TY207",
     "ratio"),
    ("a circle", "        taskInfo: {name: make}", "        dependentTasks: [train]", "TY208", "make:"),
    ("a text for a number", "{constant: 0.5}", "{constant: fast}", "TY209", "constant: fast"),
    ("a model for a data set", "outputArtifactKey: data}", "outputArtifactKey: data}", "TY209",
     "outputArtifactKey: data"),
    ("an output that nobody makes", "producerSubtask: train", "producerSubtask: trial", "TY211", "model:"),
    ("a condition on what is not there", "        dependentTasks: [make]",
     "        dependentTasks: [make]\n        triggerPolicy: {condition: \"inputs.parameter_values['speed'] == 1\"}",
     "TY212", "train:"),
    ("a value that is too large", "{constant: short}", f"{{constant: {'x' * 140_000}}}", "TY213", "constant"),
    ("a component that nobody uses", "components:", "components:\n  comp-spare: {executorLabel: exec-make}", "TY210",
     "spare"),
    ("a name that YAML 1.1 takes for no", "rate: {parameterType: NUMBER_DOUBLE, defaultValue: 0.1}",
     "rate: {parameterType: NUMBER_DOUBLE, defaultValue: 0.1}\n        n: {parameterType: STRING, isOptional: true}",
     "TY107", " n:"),
    ("an image of elsewhere", TRAINER, f"{OTHER}example.org/x:1", "p17", "example.org"),
    ("an image without a version", TRAINER, f"{OTHER}site.invalid/trainyard/trainer-torch", "TY301", "trainer-torch"),
    ("an image of today", TRAINER, f"{OTHER}site.invalid/trainyard/trainer-torch:latest", "TY301", "latest"),
    ("an installation while it runs", "[python3, train.py]", "[sh, -c, pip install torch && python3 train.py]", "TY302",
     "pip install"),
    ("a bucket that is not there", "s3://runs/vision", "s3://run/vision", "TY504", "s3://run/"),
    ("a bucket that is not for teams", "s3://runs/vision", "s3://backup/vision", "TY504", "s3://backup"),
    ("GPUs by environment", "{name: MODE, value: fast}", "{name: NVIDIA_VISIBLE_DEVICES, value: all}", "p11", "NVIDIA"),
    ("an amount that is none", 'resourceCpuLimit: "2"', 'resourceCpuLimit: "many"', "TY405", "resourceCpuLimit"),
    ("more memory than any node has", "resourceMemoryLimit: 4Gi", "resourceMemoryLimit: 900Gi", "TY402", ""),
    ("more GPUs than any node has", "resourceMemoryLimit: 4Gi}",
     'resourceMemoryLimit: 4Gi, accelerator: {resourceType: nvidia.com/gpu, resourceCount: "6"}}', "TY401", ""),
    ("a resolver",
     "      container:\n        image: site.invalid/trainyard/trainer-torch:0.2.0\n        command: [python3, make.py]",
     "      resolver: {outputArtifactQueries: {}}", "TY215", ""),
]  # fmt: skip


def test_what_the_cases_begin_from_is_clean() -> None:
    assert check_text(PIPELINE, "file.yaml", site()) == []


@pytest.mark.parametrize(("about", "old", "new", "code", "line"), PIPELINES, ids=[case[0] for case in PIPELINES])
def test_pipeline(about: str, old: str, new: str, code: str, line: str) -> None:
    text = broken(PIPELINE, old, new)
    if about == "a model for a data set":
        text = text.replace(
            "        data: {artifactType: {schemaTitle: system.Dataset",
            "        data: {artifactType: {schemaTitle: system.Model",
            1,
        )
    one(check_text(text, "pipeline.yaml", site()), text, code, line)


def test_a_device_that_no_pool_has_is_found_by_the_rule_too() -> None:
    device = 'resourceMemoryLimit: 4Gi, accelerator: {resourceType: amd.com/gpu, resourceCount: "1"}}'
    found = check_text(broken(PIPELINE, "resourceMemoryLimit: 4Gi}", device), "pipeline.yaml", site())
    assert {one.code for one in found} == {"TY406", "p30"}
    assert all("amd.com/gpu" in one.reason for one in found)


def test_damaged_files_are_findings_and_no_tracebacks() -> None:
    for made in (*damaged(PIPELINE), *misshapen(PIPELINE)):
        assert all(finding.reason and finding.line >= 0 for finding in check_text(made, "damaged.yaml", site()))


def test_without_a_contract_what_depends_on_the_site_only_warns() -> None:
    text = yaml.safe_dump(yaml.safe_load(PIPELINE)).replace(
        "site.invalid/trainyard/trainer-torch:0.2.0", "example.org/mine:1"
    )
    found = check_text(text, "pipeline.yaml", lint.site(contract.defaults()))
    assert {(finding.code, finding.severity) for finding in found} == {("p17", lint.Severity.WARNING)}
