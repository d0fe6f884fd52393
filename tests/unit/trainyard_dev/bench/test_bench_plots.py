"""Plots: whole files, the same for the same numbers, readable names and colours."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard_dev.bench import plots


def lines(path: Path) -> None:
    series = {
        "ours": [[x, x**0.5, x**0.5 - 1, x**0.5 + 1] for x in range(1, 1000)],
        "volcano-default": [[x, x / 40] for x in range(1, 1000)],
        "nothing": [],
    }
    plots.lines(path, series, title="T <1> & 2", x="arrived", y="used", limit=[(1, 0), (1000, 30)])


def bars(path: Path) -> None:
    groups = {"1 GPU": {"ours": (3.0, 2.0, 4.0), "kube-default": (4.0,)}, "8 GPUs": {"ours": (1.0, 1.0, 1.0)}}
    plots.bars(path, groups, title="T <1> & 2", y="refused", limit={"8 GPUs": 0.5})


def areas(path: Path) -> None:
    series = {"ours": [(0, 1), (5, 2)], "team-b": [(1, 3), (6, 0), (8, 0)]}
    plots.areas(path, series, title="T <1> & 2", x="s", y="GPUs", total=8, limits=[[(0, 4), (8, 4)]])


@pytest.mark.parametrize("draw", [lines, bars, areas])
def test_the_same_numbers_give_the_same_file(draw: Callable[[Path], None], tmp_path: Path) -> None:
    first, second = tmp_path / "new/first.svg", tmp_path / "second.svg"
    draw(first)
    draw(second)
    assert first.read_bytes() == second.read_bytes()
    assert [file.name for file in first.parent.iterdir()] == ["first.svg"]


@pytest.mark.parametrize("draw", [lines, bars, areas])
def test_title_and_names_are_text_on_a_light_background(draw: Callable[[Path], None], tmp_path: Path) -> None:
    draw(tmp_path / "a.svg")
    said = ["".join(one.itertext()).strip() for one in ET.parse(tmp_path / "a.svg").iter() if one.tag.endswith("text")]
    assert {"T <1> & 2", "ours", "limit"} <= set(said)
    assert "fill: #ffffff" in (tmp_path / "a.svg").read_text()


def test_a_configuration_has_the_same_colour_on_every_plot(tmp_path: Path) -> None:
    for draw in (lines, bars, areas):
        draw(tmp_path / "a.svg")
        assert plots.PALETTE[plots.FIXED["ours"]].lower() in (tmp_path / "a.svg").read_text()
    assert len(set(plots.PALETTE)) == 8


def test_what_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(IndexError):
        plots.lines(tmp_path / "a.svg", {"ours": [[1.0]]}, title="", x="", y="")
    assert not list(tmp_path.iterdir())


def test_long_lines_are_thinned_between_their_ends() -> None:
    points = [(x, x) for x in range(100_000)]
    kept = plots.thinned(points)
    assert (len(kept), kept[0], kept[-1]) == (plots.MOST_POINTS, points[0], points[-1])
    assert plots.thinned(points[:5]) == points[:5]


def test_no_two_lines_look_alike() -> None:
    looks = plots._looks(["new", *plots.FIXED, *(f"other-{index}" for index in range(10))])
    assert len(set(looks.values())) == len(looks)
    assert looks["ours"] == (plots.PALETTE[0], "-")
