"""The classes of tracked files, the four ceilings, and what raises them: in small trees, then in this repository."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.paths import ROOT
from trainyard_dev.verify import budget, classes

LEDGER: dict[str, Any] = {
    "generated": [{"command": "make page", "files": ["docs/page.md", "gen/*.py"]}],
    "recorded": [
        {"command": "measure", "files": ["docs/runs/*.csv"]},
        {"command": "go mod tidy", "files": ["*/go.sum"], "long": "a checksum each"},
    ],
    "ceilings": {
        "tracked lines": {"most": 1500, "why": "x"},
        "hand-written lines": {"most": 40, "why": "x"},
        "hand-written bytes": {"most": 500, "why": "x"},
        "Python lines": {"most": 20, "why": "x"},
    },
    "raised": [],
}
FILES = {
    "docs/page.md": "a\n" * 300,
    "gen/a.py": "x\n" * 5,
    "docs/runs/one.csv": "1\n" * 400,
    "tools/go.sum": "s\n" * 600,
    "src/a.py": "y = 1\n" * 10,
    "src/b.txt": "é\n" * 4,
    "bin/run": "#!/usr/bin/env python3\npass\n",
}
MADE = {"docs/page.md", "gen/a.py"}
Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """`git(words…)` in a new checkout whose branch `main` holds the small tree."""

    def call(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    call("init", "-q", "-b", "main")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    call("add", "-A")
    call("commit", "-qm", "begin")
    return call


def of_classes(root: Path, ledger: dict[str, Any]) -> list[str]:
    """The findings of `verify` about the classes of files."""
    found = classes.differences(classes.entries(ledger), classes.tracked(root), MADE)
    return [f"{file}: {what}" for file, what, _ in found]


def of_budget(root: Path, ledger: dict[str, Any]) -> list[str]:
    """The findings of `verify` about the figures."""
    listed, texts = classes.entries(ledger), classes.tracked(root)
    found = budget.differences(root, ledger, budget.figures(ledger, listed, texts), listed, texts)
    return [f"{file}: {what}" for file, what, _ in found]


def test_each_file_counts_in_its_figures(git: Git, tmp_path: Path) -> None:
    found = budget.figures(LEDGER, classes.entries(LEDGER), classes.tracked(tmp_path))
    assert {one.name: one.have for one in found} == {
        "tracked lines": 300 + 5 + 400 + 600 + 10 + 4 + 2,
        "hand-written lines": 10 + 4 + 2,
        "hand-written bytes": 60 + 12 + 28,
        "Python lines": 5 + 10 + 2,
    }
    assert str(found[0]) == "tracked lines 1,321 of 1,500 (179 left)"
    assert of_budget(tmp_path, LEDGER) == of_classes(tmp_path, LEDGER) == []


def test_only_what_git_tracks_counts(git: Git, tmp_path: Path) -> None:
    (tmp_path / "src/new.py").write_text("y = 1\n" * 100)
    (tmp_path / "src/b.txt").unlink()
    assert of_budget(tmp_path, LEDGER) == []
    git("add", "-A")
    assert [line.partition(": ")[2].partition(":")[0] for line in of_budget(tmp_path, LEDGER)] == [
        "hand-written lines",
        "hand-written bytes",
        "Python lines",
    ]


def test_a_figure_above_its_ceiling_names_the_folders_that_grew(git: Git, tmp_path: Path) -> None:
    git("checkout", "-qb", "branch")
    (tmp_path / "src/deep").mkdir()
    (tmp_path / "src/deep/c.py").write_text("z\n" * 7)
    (tmp_path / "src/a.py").write_text("y = 1\n" * 8)
    (tmp_path / "docs/page.md").write_text("a\n" * 310)
    (tmp_path / "bin/more").write_text("#!/usr/bin/env python3\npass\n")
    git("add", "-A")
    git("commit", "-qm", "more")
    base = git("rev-parse", "main")[:8]
    over = f"Python lines: 24, 4 above the ceiling of 20; since {base} grew most: src/deep +7, bin +2"
    assert of_budget(tmp_path, LEDGER) == [f"files.yaml: {over}"]


def test_an_allowance_raises_every_ceiling_of_lines_and_that_of_bytes_by_forty_five(git: Git, tmp_path: Path) -> None:
    raised = LEDGER | {"raised": [{"lines": 100, "by": "allowance: runs of pipelines"}, {"lines": 1, "by": "why not"}]}
    found = budget.figures(raised, classes.entries(raised), classes.tracked(tmp_path))
    assert [one.most for one in found] == [1601, 141, 500 + 45 * 101, 121]
    assert of_budget(tmp_path, raised) == ["files.yaml: `why not` does not raise a ceiling"]


def test_a_raise_by_a_decision_needs_its_page(git: Git, tmp_path: Path) -> None:
    page = "docs/decisions/0099-larger.md"
    raised = LEDGER | {"raised": [{"lines": 1, "by": page}]}
    assert of_budget(tmp_path, raised) == [f"files.yaml: `{page}` does not raise a ceiling"]
    (tmp_path / page).parent.mkdir(parents=True)
    (tmp_path / page).write_text("# Larger\n")
    assert of_budget(tmp_path, raised) == []


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        ("docs/runs/one.csv", 501, "docs/runs/one.csv: 501 recorded lines, more than 500"),
        ("docs/page.md", 501, "docs/page.md: 501 generated lines, more than 500"),
        ("gen/b.py", 1, "gen/b.py: files.yaml lists it as generated, but no command generates it"),
    ],
)
def test_a_file_that_is_not_as_its_class_says(git: Git, tmp_path: Path, file: str, lines: int, message: str) -> None:
    (tmp_path / file).write_text("a\n" * lines)
    git("add", "-A")
    assert of_classes(tmp_path, LEDGER) == [message]


def test_a_list_that_does_not_fit_the_tree(git: Git, tmp_path: Path) -> None:
    ledger = LEDGER | {"generated": [{"command": "x", "files": ["gen/*", "docs/runs/one.csv", "gone/*"]}]}
    assert of_classes(tmp_path, ledger) == [
        "files.yaml: no tracked file matches gone/*",
        "docs/page.md: `bin/trainyard versions sync` generates it",
        "files.yaml: docs/runs/one.csv is listed twice",
        "docs/runs/one.csv: files.yaml lists it as generated, but no command generates it",
    ]


def test_the_ceilings_of_this_repository_fall_and_rise_only_by_what_is_allowed() -> None:
    raw = classes.read(ROOT)
    most = {name: spec["most"] for name, spec in raw["ceilings"].items()}
    first = {
        "tracked lines": 195_000,
        "hand-written lines": 178_000,
        "hand-written bytes": 7_971_000,
        "Python lines": 130_000,
    }
    assert most.keys() == first.keys()
    assert all(most[name] <= first[name] for name in first), "add an entry to `raised` instead"
    assert all(spec["why"] for spec in raw["ceilings"].values())
    assert list(budget.differences(ROOT, raw, [], [], {})) == []


def test_only_lists_of_hashes_and_the_page_of_values_may_be_long() -> None:
    long = [pattern for one in classes.entries(classes.read(ROOT)) if one.long for pattern in one.files]
    assert long == ["docs/values.md", "*tools/*/go.sum", "*images/*/requirements.txt", "images/notebook/sources.txt"]
    assert all(one.command for one in classes.entries(classes.read(ROOT)))
    assert classes.of(classes.entries(classes.read(ROOT)), "charts/trainyard/values.schema.yaml") == "hand-written"


def test_a_list_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    (tmp_path / classes.FILE).write_text("a: [")
    with pytest.raises(Exception, match="can't be read"):
        classes.read(tmp_path)
    (tmp_path / classes.FILE).write_text(yaml.safe_dump(LEDGER))
    assert classes.read(tmp_path) == LEDGER
