"""Selection of checks: no id is ignored, a selection includes what it needs, the main job stays small."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from trainyard.errors import UsageError
from trainyard.paths import ROOT
from trainyard_dev import changes
from trainyard_dev.e2e import catalog, checks, cli, selection
from trainyard_dev.e2e.catalog import ENTRIES, START, all_ids
from trainyard_dev.e2e.checks import attacks, attacks_data, policies, training, uninstall, upgrade
from trainyard_dev.versions import load

# Of 0.3.0: each id, and behind it, where the check has ended, the check or the function that asserts its outcome now.
BEFORE = dict(line.partition(" ")[::2] for line in Path(__file__).with_name("ids-0.3.0.txt").read_text().splitlines())


@pytest.mark.parametrize("check_id", BEFORE)
def test_the_outcome_of_every_check_of_the_version_before_is_asserted(check_id: str) -> None:
    there, now = check_id in all_ids(), BEFORE[check_id]
    assert there is not bool(now), "an id that ended names who asserts its outcome, and one that is there names nobody"
    file, _, name = now.partition("::")
    assert there or now in all_ids() or f"def {name}(" in (ROOT / file).read_text()


def test_an_id_stands_once() -> None:
    assert len(BEFORE) == 212
    assert len(all_ids()) == len(set(all_ids()))


def test_the_catalog_knows_every_attack_refusal_and_kind() -> None:
    context: Any = SimpleNamespace(
        contract={"priorityClasses": [{"value": 1, "name": "x"}], "teams": [{"name": "speech", "maxGpusPerJob": 4}]},
        gpu_nodes=["n"],
        pod=lambda *args, **kwargs: {"metadata": {}, "spec": {"containers": [{}]}},
    )
    made = {f"attack.{attempt.id}" for attempt in attacks.attempts(context)}
    made |= {f"attack.bucket-{end}" for end in attacks_data.ATTEMPTS} | {"attack.volume-claim"}
    made |= {"attack.network-pod", "attack.network-nfs", "attack.network-api"}
    made |= {f"policies.{refusal.id}" for refusal in policies._refusals()} | {"policies.installed"}
    assert made == {i for i in all_ids() if i.startswith(("attack.", "policies."))}
    assert {kind.id for kind in training.ALL} | set(uninstall.TITLES) | set(upgrade.TITLES) <= set(all_ids())


def test_the_main_job_has_one_attack_of_each_guard_and_every_kind_of_today() -> None:
    main = selection.chosen([], full=False)
    assert {*START, "gang.refused", "storage.rwx", "pipelines.mnist"} <= main
    assert {kind.id for kind in training.KINDS} <= main
    assert {
        "attack.queue-job",  # admission policy
        "attack.host-path",  # Pod Security
        "attack.secret",  # RBAC
        "attack.bucket-read",  # object store
        "attack.volume-claim",  # volume binding
        "attack.network-pod",  # network policy
    } <= main
    assert len(main) < len(all_ids()) / 3
    assert selection.chosen([], full=True) == frozenset(all_ids())


def test_what_the_main_job_needs_belongs_to_it() -> None:
    main = selection.chosen([], full=False)
    assert {need for entry in selection.entries(main) for need in entry.needs} <= main


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        (["gang"], {"gang.refused"}),
        (["train.tfjob"], {"train.tfjob", "storage.bucket", "storage.dataset-cache"}),
        (["train.again"], {"train.folder", "train.again", "train.failing", "train.traces"}),
        (["attack.secret", "attack.bucket-read"], {"attack.secret", "attack.bucket-read"}),
        (["upgrade.diff"], {*upgrade.TITLES, *uninstall.TITLES, "storage.bucket"}),
    ],
)
def test_a_choice_brings_what_it_needs(only: list[str], ids: set[str]) -> None:
    assert selection.chosen(only, full=False) == ids


def test_a_word_that_names_no_check() -> None:
    with pytest.raises(UsageError, match=r"unknown check: `gnag`\. use an id of `make e2e LIST=1` or a group: "):
        selection.chosen(["gnag"], full=False)


def test_needs_and_images_exist() -> None:
    known = set(all_ids())
    for entry in ENTRIES:
        assert {*entry.needs, *entry.after} <= known and set(entry.main) <= set(entry.ids)
        assert set(entry.images) <= set(load().images)
        assert entry.main in ((), entry.ids) or entry.parts, f"{entry.ids} can't run in parts"


def test_what_a_check_needs_stands_before_it() -> None:
    place = {check_id: number for number, entry in enumerate(ENTRIES) for check_id in entry.ids}
    late = {one for entry in ENTRIES for one in (*entry.needs, *entry.after) if place[one] >= place[entry.ids[0]]}
    assert not late, "what conflicts with it would wait for it, and it for them"


def test_a_check_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = "from trainyard_dev.e2e.entry import ALONE, check\n\n\n@check({})\ndef run(context):\n    pass\n"
    (tmp_path / "aa_alone.py").write_text(declared.format('"new.alone", locks={ALONE}'))
    (tmp_path / "zz_first.py").write_text(declared.format('"new.first", "new.second", main=True, each=True, rank=0'))
    (tmp_path / "zz_asked.py").write_text(declared.format('"new.asked", asked="ASKED_FOR"'))
    monkeypatch.setattr(checks, "__path__", [str(tmp_path)])
    monkeypatch.setattr(catalog, "REGISTERED", list(ENTRIES))
    monkeypatch.setattr("trainyard_dev.e2e.entry.REGISTERED", catalog.REGISTERED)
    ids = [entry.ids for entry in catalog.found()]
    assert set(ids) - {entry.ids for entry in ENTRIES} == {("new.alone",), ("new.first", "new.second")}
    assert ids.index(("new.first", "new.second")) < ids.index(("train.tfjob",)) < ids.index(("new.alone",))


def test_a_changed_file_chooses_the_groups_that_check_it() -> None:
    ids = selection.changed(["pipelines/mnist.py"])
    assert {"pipelines.mnist", "pipelines.sweep", "storage.bucket"} <= ids and "teams.add" not in ids
    assert selection.changed(["docs/train.md"]) == frozenset()


@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        ("scripts/trainyard/observe/gpus.py", "seeing.gpus"),
        ("scripts/trainyard/commands/runs_compare.py", "seeing.compare"),
        ("scripts/trainyard/commands/data.py", "data.put"),
        ("scripts/trainyard/commands/data.py", "readme.data-scientist"),
        ("pipelines/mnist.py", "readme.data-scientist"),
        ("pyproject.toml", "readme.data-scientist"),
    ],
)
def test_a_command_that_changes_chooses_the_checks_that_call_it(file: str, chosen: str) -> None:
    assert chosen in selection.changed([file])


def test_long_checks_wait_for_a_full_run_unless_another_needs_them() -> None:
    assert selection.long(["seeing.alerts", "seeing.panels", "seeing.gpus"]) == {"seeing.alerts", "seeing.panels"}
    assert selection.long(["pipelines.mnist", "storage.bucket"]) == frozenset()


@pytest.mark.parametrize(
    ("file", "ran", "remembered"),
    [("charts/monitoring/values.yaml", "seeing.targets", False), ("pipelines/mnist.py", "pipelines.mnist", True)],
)
def test_a_run_of_what_changed_names_what_it_leaves_and_is_not_remembered_then(
    file: str, ran: str, remembered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    good: list[bool] = []
    monkeypatch.setattr(changes, "paths", lambda *_: [file])
    monkeypatch.setattr(changes, "remember", lambda *_: good.append(True))
    monkeypatch.setattr(cli, "run", lambda options: not asked.append(options.only))
    result = CliRunner().invoke(cli.e2e, ["--changed"])
    assert result.exit_code == 0 and ran in asked[0]
    assert ("run with FULL=1: seeing.alerts" in result.output) is not remembered
    assert not any(one in asked[0] for one in ("seeing.alerts", "seeing.panels"))
    assert good == [True] * remembered


def test_inputs_are_paths_of_the_repository() -> None:
    lost = {path for entry in ENTRIES for path in entry.inputs if not any(ROOT.glob(path))}
    assert not lost


def test_the_list_says_tier_and_needs(trainyard: Callable[..., Any]) -> None:
    ended = trainyard("e2e", "--list")
    rows = {line.split()[0]: line.split()[1:] for line in ended.out.splitlines()}
    assert rows["train.tfjob"] == ["main", "storage.bucket,", "storage.dataset-cache"]
    assert rows["pipelines.outages"] == ["full", "storage.bucket", "everything"]
