"""Upstream's examples of the end-to-end run: each is admitted, its images are in the table, and our program fits."""

import functools
import importlib.machinery
import importlib.util
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import contract
from trainyard.errors import TrainyardError
from trainyard.kinds import registry
from trainyard.paths import ROOT
from trainyard.policy import fill, lint
from trainyard.policy.lint.finding import Severity
from trainyard.policy.lint.report import site
from trainyard_dev import tools
from trainyard_dev.corpus import picked, stand_in
from trainyard_dev.corpus.sources import GROUPS

TEAMS = ROOT / "manifests" / "cluster" / "teams.yaml"
PROGRAM = ROOT / stand_in.FOLDER / "program.py"
EXAMPLES = pytest.mark.parametrize("one", picked.PICKED, ids=lambda one: one.name)


def program() -> Any:
    spec = importlib.util.spec_from_file_location("stand_in_program", PROGRAM)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def site_of_a_run() -> contract.Contract:
    """The contract of the values that a run installs."""
    values = yaml.safe_load(TEAMS.read_text())
    values["policies"]["fill"]["images"] |= stand_in.values()["policies"]["fill"]["images"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.yaml"
        file.write_text(yaml.safe_dump(values))
        return contract.load(file)


def images(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("image"), str):
            yield value["image"]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from images(one)


@functools.cache
def examples(group: str) -> Path:
    """The folder of a group; the test is skipped where the module can't be had."""
    tool, folder = GROUPS[group]
    try:
        return tools.module_dir(tool) / folder
    except TrainyardError as error:
        pytest.skip(f"the module of {group} can't be had: {error.what}")


def objects(one: picked.Picked) -> list[dict[str, Any]]:
    """The example's objects after a member's edits."""
    root = examples(one.group)
    found = [obj for file in one.files for obj in yaml.safe_load_all((root / file).read_text()) if obj]
    return picked.edited([json.loads(json.dumps(obj)) for obj in found], one.by_hand)


def test_at_most_three_of_each_kind() -> None:
    for kind in picked.kinds():
        assert 1 <= len(picked.of_kind(kind)) <= 3


@EXAMPLES
def test_an_example_is_admitted_once_it_is_filled_in(one: picked.Picked) -> None:
    known = site_of_a_run()
    team = known.team("vision")
    for obj in objects(one):
        made = fill.filled(obj, known, team).obj
        wrong = [f for f in lint.manifest(made, site(known, team.name)) if f.severity is Severity.ERROR]
        if one.kind == "workflow":  # whose pods get their image when Argo makes them
            wrong = [finding for finding in wrong if finding.code not in ("p17", "TY601")]
        assert [f"{finding.code} {finding.field}: {finding.reason}" for finding in wrong] == []


@EXAMPLES
def test_the_table_has_a_stand_in_of_the_right_trainer_for_each_image(one: picked.Picked) -> None:
    table = stand_in.values()["policies"]["fill"]["images"]
    due = stand_in.image(one.trainer).ref if one.trainer else "pipeline"
    for image in {image for obj in objects(one) for image in images(obj)}:
        assert table[image.removeprefix("docker.io/").partition(":")[0]] == due


@EXAMPLES
def test_the_stand_in_has_every_file_that_an_example_starts(one: picked.Picked) -> None:
    """By its whole path, or in the folder where the container begins."""
    linked = set(re.findall(r"(/\S+\.py)", (PROGRAM.parent / "Containerfile").read_text()))
    for path, folder in {found for obj in objects(one) for found in started(obj)}:
        assert str(Path(folder, path)) in linked


def started(value: Any) -> Iterator[tuple[str, str]]:
    """Python files in commands and arguments, and the folder where their container begins."""
    if isinstance(value, dict):
        words = " ".join(str(word) for key in ("command", "args") for word in value.get(key) or [] if "image" in value)
        yield from ((path, value.get("workingDir", "/tmp")) for path in re.findall(r"\S+\.py\b", words))
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from started(one)


@pytest.mark.parametrize("there", [kind.modules[0] for kind in registry.KINDS if kind.build])
def test_the_trainer_is_that_of_the_framework_which_is_there(there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started, mnist = program(), importlib.machinery.ModuleSpec("mnist", None)
    mnist.submodule_search_locations = [str(ROOT / "images/trainer/mnist")]
    monkeypatch.setattr(started, "find_spec", {"mnist": mnist, "numpy": mnist, there: mnist}.get)
    assert started.trainer({}) == ["-m", f"mnist.train_{there}"]


@pytest.mark.parametrize(
    ("argv", "env", "due"),
    [
        ([], {}, {}),
        (
            ["--job_name=worker", "--task_index=1", "--ps_hosts=p:2222,", "--worker_hosts=a:2222,b:2222,"],
            {},
            {"cluster": {"ps": ["p:2222"], "worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 1}},
        ),
        ([], {"TF_CONFIG": '{"cluster": {"ps": ["p:1",]}}'}, {"cluster": {"ps": ["p:1"]}}),
    ],
    ids=["none", "options", "comma"],
)
def test_peers_of_tensorflow(argv: list[str], env: dict[str, str], due: dict[str, Any]) -> None:
    assert json.loads(program().peers(argv, env, "host-0").get("TF_CONFIG", "{}")) == due


def test_peers_of_mxnet_are_ranks_of_one_world() -> None:
    env = {"DMLC_NUM_SERVER": "2", "DMLC_NUM_WORKER": "2", "DMLC_PS_ROOT_URI": "host", "DMLC_PS_ROOT_PORT": "9000"}
    roles = [("scheduler", 0), ("server", 0), ("server", 1), ("worker", 0), ("worker", 1)]
    found = [program().peers([], env | {"DMLC_ROLE": role}, f"mxnet-job-{role}-{at}") for role, at in roles]
    assert [one["RANK"] for one in found] == ["0", "1", "2", "3", "4"]
    assert {one["WORLD_SIZE"] for one in found} == {"5"} and {one["MASTER_ADDR"] for one in found} == {"host"}
