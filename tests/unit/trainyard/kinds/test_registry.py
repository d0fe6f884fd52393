"""The registry of kinds: every list of kinds is complete, and no other code names a kind by hand."""

import copy
import importlib
import re
from pathlib import Path

import pytest
import yaml

from trainyard import contract
from trainyard.chart import values_schema
from trainyard.chart.release import removal
from trainyard.components import find
from trainyard.errors import TrainyardError
from trainyard.kinds import JobSpec, TeamConfig, check, manifest, registry, status
from trainyard.kinds.manifests import builder
from trainyard.observe import jobs
from trainyard.paths import CHART, ROOT
from trainyard.policy import offline, rules
from trainyard.policy.lint import shapes
from trainyard_dev import tools
from trainyard_dev.chart import parts
from trainyard_dev.e2e.checks import training
from trainyard_dev.sync import kinds
from trainyard_dev.versions import load

collected = importlib.import_module("trainyard.chart.diagnose.collect")  # the package has a function of that name
KINDS = pytest.mark.parametrize("kind", registry.KINDS, ids=lambda kind: kind.framework)
GANGS = pytest.mark.parametrize("kind", registry.with_gang(), ids=lambda kind: kind.framework)
EXAMPLES = [yaml.safe_load(file.read_text()) for file in (ROOT / "manifests/jobs").glob("*.yaml")]
MOST_FILES = 8  # of the product that may name one kind


@KINDS
def test_it_has_a_builder_an_image_and_a_place_in_the_schema(kind: registry.Kind) -> None:
    assert callable(builder(kind))
    images = yaml.safe_load((CHART / "values.yaml").read_text())["global"]["contract"]["images"]
    assert images[kind.image].partition("/")[2].partition(":")[0] in load().images
    assert kind.framework in check.schema()["properties"]["framework"]["enum"]


@KINDS
def test_lint_policies_diagnosis_and_watching_know_it(kind: registry.Kind) -> None:
    assert f"{kind.kind}.{kind.group}" in shapes.known()
    assert offline.RESOURCES[kind.group, kind.kind] == kind.plural
    assert kind.resource in collected.KINDS.values()
    assert (kind.api_version, kind.kind) in jobs.KINDS


@GANGS
def test_rules_and_removal_know_it(kind: registry.Kind) -> None:
    looks = {rule.name: rule.looks for rule in offline.policies()}
    for name in ("job-gpus", "gpu-toleration", "image-source", "job-deadline", "gang-size"):
        assert any(group == kind.group and kind.plural == plural for group, plural, _ in looks[name]), name
    assert kind.resource in removal.JOBS
    if kind.replicas:
        assert f"variables.spec.?{kind.replicas}" in rules.shared()["replicaSpecs"]


@GANGS
def test_it_is_a_step_of_pipelines(kind: registry.Kind) -> None:
    text = "".join(file.read_text() for file in (ROOT / "pipelines/components").glob("*.py"))
    assert f"def {kind.step}(" in text and f'steps.train("{kind.framework}"' in text


@KINDS
def test_it_has_an_example_that_is_trained_end_to_end(kind: registry.Kind) -> None:
    found = [job for job in EXAMPLES if registry.of_object(job) == kind]
    assert found, "manifests/jobs has no example"
    trained = {yaml.safe_load((ROOT / "manifests/jobs" / one.file).read_text())["kind"] for one in training.ALL}
    assert kind.kind in trained


@KINDS
def test_the_docs_name_it(kind: registry.Kind) -> None:
    rows = [row for row in (ROOT / "docs/kinds.md").read_text().splitlines() if row.startswith(f"| `{kind.framework}`")]
    assert len(rows) == 1 and kind.kind in rows[0]


def test_the_operator_runs_its_kinds_and_no_others() -> None:
    schemes = yaml.safe_load((ROOT / "charts/training-operator/values.yaml").read_text())["schemes"]
    assert {f"{scheme}s" for scheme in schemes} == {kind.plural for kind in registry.of_part(registry.OPERATOR)}
    schema = values_schema.read(ROOT / "charts/training-operator")
    assert set(schema["properties"]["schemes"]["items"]["enum"]) == set(schemes)
    assert set(find(registry.OPERATOR).crds.plurals) == {kind.plural for kind in registry.of_part(registry.OPERATOR)}
    files = {file.stem.partition("_")[2]: file.read_text() for file in parts.crd_files()[registry.OPERATOR]}
    for kind in registry.of_part(registry.OPERATOR):
        assert kind.scales == ("specReplicasPath" in files[kind.plural])


def test_a_kind_without_a_crd_upstream_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "module_dir", lambda pin: tmp_path)
    with pytest.raises(TrainyardError, match=r"the module of \S+ has no CRD file \S+\.yaml"):
        parts.crd_files()


def test_no_kind_is_named_in_more_files_than_it_must_be() -> None:
    folders = ("scripts/trainyard", "scripts/trainyard_agent", "charts", "policies", "pipelines")
    files = [
        file
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".yaml", ".tpl", ".json", ".txt") and not file.match("charts/*/tests/*")
    ]
    named = [
        str(file.relative_to(ROOT))
        for file in files
        if not file.name.endswith(".cases.yaml") and re.search("PyTorchJob|pytorchjob", file.read_text())
    ]
    by_hand = sorted({*named} - {*kinds.WRITTEN})
    assert len(by_hand) <= MOST_FILES, "\n".join(by_hand)


def test_what_is_no_job_has_no_entry() -> None:
    assert registry.of_object({"apiVersion": "v1", "kind": "Pod"}) is None
    with pytest.raises(KeyError):
        registry.of_framework("caffe")


@KINDS
def test_the_policies_let_a_member_stop_it(kind: registry.Kind) -> None:
    site = contract.load(ROOT / "tests" / "policies" / "teams.yaml")
    team = site.team("vision")
    made = manifest(JobSpec("digits", ("python",), framework=kind.framework, gpus=1), TeamConfig.of(site, "vision"))
    change = status.stop_of(kind)
    after = copy.deepcopy(made)
    for key, value in (change or {"spec": {}})["spec"].items():
        after["spec"][key] = {**after["spec"].get(key, {}), **value} if isinstance(value, dict) else value
    assert status.stopped(after) == bool(change)
    requester = offline.Requester("mia", team.queues)
    request = offline.Request(offline.defaulted(after, team), requester, team, offline.defaulted(made, team))
    assert offline.violations(request, site) == []
