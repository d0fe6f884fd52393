"""Plots: whole files, the same for the same numbers, readable names and colours."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from trainyard_dev.bench import plots


def bars(path: Path) -> None:
    groups = {"1 GPU": {"ours": (3.0, 2.0, 4.0), "kube-default": (4.0,)}, "8 GPUs": {"ours": (1.0, 1.0, 1.0)}}
    plots.bars(path, groups, title="T <1> & 2", y="refused", limit={"8 GPUs": 0.5})


def test_the_same_numbers_give_the_same_file(tmp_path: Path) -> None:
    first, second = tmp_path / "new/first.svg", tmp_path / "second.svg"
    bars(first)
    bars(second)
    assert first.read_bytes() == second.read_bytes()
    assert [file.name for file in first.parent.iterdir()] == ["first.svg"]


def test_title_and_names_are_text_on_a_light_background(tmp_path: Path) -> None:
    bars(tmp_path / "a.svg")
    said = ["".join(one.itertext()).strip() for one in ET.parse(tmp_path / "a.svg").iter() if one.tag.endswith("text")]
    assert {"T <1> & 2", "ours", "limit"} <= set(said)
    assert "fill: #ffffff" in (tmp_path / "a.svg").read_text()


def test_a_configuration_has_the_same_colour_on_every_plot(tmp_path: Path) -> None:
    bars(tmp_path / "a.svg")
    assert plots.PALETTE[plots.FIXED["ours"]].lower() in (tmp_path / "a.svg").read_text()
    assert len(set(plots.PALETTE)) == 8


def test_what_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(IndexError):
        plots.bars(tmp_path / "a.svg", {"a": {"ours": ()}}, title="", y="")
    assert not list(tmp_path.iterdir())


def test_what_is_no_known_configuration_gets_a_colour_that_is_free() -> None:
    found = plots._colours(["new", "ours", "kube-default", *(f"other-{index}" for index in range(5))])
    assert len(set(found.values())) == len(found) and found["ours"] == plots.PALETTE[0]


def test_a_path_is_one_line(tmp_path: Path) -> None:
    bars(tmp_path / "a.svg")
    assert all(line.count('"') % 2 == 0 for line in (tmp_path / "a.svg").read_text().splitlines() if " d=" in line)
