"""Comparison of runs: differing rows, the table, the data, and the drawing."""

import xml.etree.ElementTree as ElementTree

from trainyard.observe import comparison, comparison_svg
from trainyard.observe.comparison import Facts

SVG = "{http://www.w3.org/2000/svg}"
ONE = Facts(
    "digits-a", "PyTorchJob", "succeeded", 61.0, {"lr": "0.1", "epochs": "3"}, {"accuracy": 0.9, "loss": 0.5},
    {"data": "s3://datasets/x (4 files, ab)"}, {"code": "sha256 aaa"},
)  # fmt: skip
TWO = Facts(
    "digits-b", "PyTorchJob", "failed", None, {"lr": "0.01", "epochs": "3"}, {"accuracy": 0.45}, {},
    {"code": "sha256 aaa"},
)  # fmt: skip


def test_rows_that_differ_are_marked_and_can_be_had_alone() -> None:
    table = comparison.table([ONE, TWO], comparison.lines([ONE, TWO])).splitlines()
    rows = {line[1:].split()[0]: line for line in table if line[1:].split()}
    assert rows["lr"].split() == ["≠", "lr", "0.1", "0.01"] and rows["epochs"].split() == ["epochs", "3", "3"]
    assert rows["loss"].split() == ["≠", "loss", "0.5", "-"] and rows["took"].split() == ["took", "1m01s", "-"]
    assert [line.name for line in comparison.lines([ONE, TWO], different=True)] == ["lr", "accuracy", "loss", "data"]


def test_data_keeps_values_in_the_order_of_the_runs() -> None:
    found = comparison.data([TWO, ONE], comparison.lines([TWO, ONE]))
    assert [run["name"] for run in found["runs"]] == ["digits-b", "digits-a"]
    assert found["metrics"][0] == {"name": "accuracy", "same": False, "values": [0.45, 0.9]}
    assert found["code"] == [{"name": "code", "same": True, "values": ["sha256 aaa", "sha256 aaa"]}]


def bars(text: str) -> dict[str, float]:
    """Widths of the coloured bars, by colour, of a drawing with one metric."""
    drawn = ElementTree.fromstring(text).iter(f"{SVG}rect")
    return {one.get("fill", ""): float(one.get("width", "0")) for one in drawn if one.get("fill") != "#ffffff"}


def test_bars_are_as_long_as_their_numbers() -> None:
    one, two = Facts("a", "", "", metrics={"m": 0.9}), Facts("b", "", "", metrics={"m": 0.45})
    blue, red = bars(comparison_svg.draw([one, two], comparison.lines([one, two]))).values()
    assert abs(blue - 2 * red) < 0.2


def test_bars_of_negative_numbers_begin_left_of_zero() -> None:
    runs = [Facts("a", "", "", metrics={"m": -1.0}), Facts("b", "", "", metrics={"m": 3.0})]
    drawn = ElementTree.fromstring(comparison_svg.draw(runs, comparison.lines(runs)))
    first, second = (one for one in drawn.iter(f"{SVG}rect") if one.get("fill") != "#ffffff")
    assert abs(float(first.get("x", "")) + float(first.get("width", "")) - float(second.get("x", ""))) < 0.2


def test_names_are_escaped_and_no_metrics_are_said() -> None:
    runs = [Facts("<a>", "", "", metrics={"x<y&z": 1.0}), Facts("b", "", "")]
    texts = [one.text for one in ElementTree.fromstring(comparison_svg.draw(runs, comparison.lines(runs))).iter()]
    assert "x<y&z" in texts and "<a>" in texts and "none" in texts
    empty = [Facts("a", "", ""), Facts("b", "", "")]
    assert "None of them has metrics." in comparison_svg.draw(empty, comparison.lines(empty))
