"""Patches of upstream charts are applied exactly, or packaging stops and names the one that failed."""

from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev import patches

TEXT = "one\ntwo\n\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
PATCH = """It is needed.

--- a/templates/a.yaml
+++ b/templates/a.yaml
@@ -1,4 +1,5 @@
 one
-two
+zwei
+drei
{blank}
 four
@@ -9,2 +10 @@
 nine
-ten
""".format(blank=" ")


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart of one template."""
    (tmp_path / "chart/templates").mkdir(parents=True)
    (tmp_path / "chart/templates/a.yaml").write_text(TEXT)
    return tmp_path / "chart"


def applied(chart: Path, *texts: str) -> str:
    """The template after these patches of the part `demo`."""
    folder = chart.parent / "demo" / "patches"
    folder.mkdir(parents=True)
    for number, text in enumerate(texts, 1):
        (folder / f"{number:02}-x.patch").write_text(text)
    patches.apply_all(folder, chart)
    return (chart / "templates/a.yaml").read_text()


@pytest.mark.parametrize("patch", [PATCH, PATCH.replace("\n \n", "\n\n")], ids=["as made", "blanks stripped"])
def test_hunks_are_applied(chart: Path, patch: str) -> None:
    assert applied(chart, patch) == "one\nzwei\ndrei\n\nfour\nfive\nsix\nseven\neight\nnine\n"


def test_in_the_order_of_names(chart: Path) -> None:
    second = "Why.\n\n--- a/templates/a.yaml\n+++ b/templates/a.yaml\n@@ -2,1 +2,1 @@\n-zwei\n+dos\n"
    assert applied(chart, PATCH, second).startswith("one\ndos\ndrei\n")


def test_lines_may_have_moved(chart: Path) -> None:
    (chart / "templates/a.yaml").write_text(f"further\n{TEXT}")
    assert applied(chart, PATCH).startswith("further\none\nzwei\n")


def test_a_part_without_patches(chart: Path) -> None:
    assert applied(chart) == TEXT


@pytest.mark.parametrize(
    ("text", "times"), [(TEXT.replace("two", "two!"), 0), (TEXT.replace("four", "four!"), 0), (TEXT + TEXT, 2)]
)
def test_a_chart_that_changed_stops_it(chart: Path, text: str, times: int) -> None:
    (chart / "templates/a.yaml").write_text(text)
    with pytest.raises(TrainyardError) as caught:
        applied(chart, PATCH)
    assert str(caught.value) == (
        "charts/demo/patches/01-x.patch: the demo chart changed: the lines that it changes in templates/a.yaml "
        f"(upstream's line 1) are there {times} times. "
        'check if "It is needed" is still needed, then recreate the patch '
        "(charts/README.md)."
    )


def test_a_file_that_is_gone_stops_it(chart: Path) -> None:
    (chart / "templates/a.yaml").unlink()
    with pytest.raises(TrainyardError, match=r"the demo chart changed: templates/a\.yaml no longer exists"):
        applied(chart, PATCH)


@pytest.mark.parametrize(
    ("patch", "line", "what"),
    [
        ("Why.\n", 1, "no hunk found"),
        (PATCH.replace("@@ -1,4 +1,5 @@", "@@ -1,5 +1,6 @@"), 12, "a hunk is shorter than stated"),
        (PATCH.replace("@@ -1,4 +1,5 @@", "@@ -1,3 +1,4 @@"), 11, "a line outside hunks"),
        (PATCH.removesuffix("-ten\n"), 13, "a hunk is shorter than stated"),
        (PATCH.replace("+++ b/templates/a.yaml\n", ""), 4, "a hunk without a file"),
    ],
)
def test_what_is_no_patch(chart: Path, patch: str, line: int, what: str) -> None:
    with pytest.raises(TrainyardError) as caught:
        applied(chart, patch)
    assert str(caught.value).startswith(f"charts/demo/patches/01-x.patch, line {line}: {what}. recreate it")
