"""`trainyard values migrate`: writes current names, and leaves everything else in the file unchanged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard import contract
from trainyard.contract import renamed
from trainyard.errors import UsageError

Call = Callable[..., Any]
VALUES = """\
# Of the site.
global:
  contract:
    queues: [{name: training, weight: 1, reclaimable: true}]   # in flow style
    scheduler:
      preempt: false
      order:   "strict"    # since the large jobs starved

      name: volcano
"""
BLOCK = "global: {{contract: {{scheduler: {{{}}}}}}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "values.yaml"
    place.write_text(VALUES)
    return place


def test_the_difference_is_shown_and_nothing_written(file: Path, trainyard: Call) -> None:
    ended = trainyard("values", "migrate", str(file))
    assert ended.code == 1
    assert [line for line in ended.out.splitlines() if line.startswith(("-", "+")) and "values.yaml" not in line] == [
        '-      order:   "strict"    # since the large jobs starved',
        '+      queueingStrategy:   "StrictFIFO"    # since the large jobs starved',
    ]
    assert "1 of 1 files would change; to write them, add --write" in ended.err
    assert file.read_text() == VALUES


@pytest.mark.parametrize("flag", ["--write", "-i"])
def test_it_is_written_once(file: Path, flag: str, trainyard: Call) -> None:
    assert trainyard("values", "migrate", flag, str(file)).code == 0
    wanted = VALUES.replace('order:   "strict"', 'queueingStrategy:   "StrictFIFO"')
    assert file.read_text() == wanted
    again = trainyard("values", "migrate", flag, str(file))
    assert (again.code, again.out, again.err) == (0, "", "nothing to change\n")
    assert file.read_text() == wanted


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BLOCK.format("order: priority"), BLOCK.format("queueingStrategy: BestEffortFIFO")),
        (BLOCK.format("'order': 'submission'"), BLOCK.format("'queueingStrategy': 'ReservingFIFO'")),
        ('{"global": {"contract": {"scheduler": {"order": "strict"}}}}',
         '{"global": {"contract": {"scheduler": {"queueingStrategy": "StrictFIFO"}}}}'),
        ("a: 1\r\n" + BLOCK.format("order: strict") + "b: ä\r\n",
         "a: 1\r\n" + BLOCK.format("queueingStrategy: StrictFIFO") + "b: ä\r\n"),
        ("---\na: 1\n---\n" + BLOCK.format("order: strict"),
         "---\na: 1\n---\n" + BLOCK.format("queueingStrategy: StrictFIFO")),
        (BLOCK.format("order: null"), BLOCK.format("order: null")),
        ("order: strict\nscheduler: {order: strict}\n", "order: strict\nscheduler: {order: strict}\n"),
        ("global:\n", "global:\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_layouts(before: str, after: str, file: Path, trainyard: Call) -> None:
    file.write_bytes(before.encode())
    ended = trainyard("values", "migrate", "-i", str(file))
    assert (ended.code, file.read_bytes().decode()) == (0, after)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (BLOCK.format("order: strict, queueingStrategy: StrictFIFO"), 1, "are both set. remove order."),
        (BLOCK.format("order: random"), 1, "is random, which the chart never accepted"),
        (BLOCK.format("order: [strict]"), 1, "which the chart never accepted"),
        ("x: &x strict\n" + BLOCK.format("order: *x").replace("*x}", "*x }"), 2, "can't be rewritten"),
        ("x: &x {order: strict}\n" + BLOCK.format("<<: *x"), 2, "can't be rewritten"),
        ("a: [\n", 2, "invalid YAML: "),
        ("- 1\n", 0, "not a values file"),
        ("apiVersion: v1\nkind: ConfigMap\n", 0, "this is a ConfigMap, not a values file"),
        ("order: 1\norder: 2\n", 2, "duplicate key order"),
    ],
)
def test_what_needs_a_hand_is_one_sentence_and_nothing_is_written(
    text: str, line: int, says: str, file: Path, tmp_path: Path, trainyard: Call
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(text)
    ended = trainyard("values", "migrate", "-i", str(file), str(other))
    assert ended.code == 2
    sentence = ended.error()
    assert says in sentence
    assert sentence.startswith(f"{other}:{line}: " if line else f"{other}: ")
    assert file.read_text() == VALUES


def test_what_cannot_be_read(file: Path, tmp_path: Path, trainyard: Call) -> None:
    assert trainyard("values", "migrate", str(tmp_path / "absent")).error().endswith("No such file or directory.")
    file.write_bytes(b"a: \xff\n")
    assert trainyard("values", "migrate", str(file)).error() == f"{file}: not UTF-8 text."
    ended = trainyard("values", "migrate")
    assert (ended.code, "Traceback" in ended.err) == (2, False)


def test_the_contracts_reader_refuses_the_old_name(file: Path) -> None:
    with pytest.raises(
        UsageError, match=r"scheduler\.order was renamed to .*queueingStrategy, and strict to StrictFIFO"
    ):
        contract.load(file)


def test_the_table_renames_the_last_key_only_and_to_what_there_is() -> None:
    defaults = yaml.safe_load((renamed.CHART / "values.yaml").read_text())
    for rename in renamed.table():
        assert rename.old[:-1] == rename.new[:-1]
        found = defaults
        for key in rename.new:
            found = found[key]
        assert not rename.values or found in rename.values.values()
        assert renamed.used(defaults) == []
