"""The bench of sizes: control groups as the kubelet writes them, and what is said of the figures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.bench import sizes, summary
from trainyard_dev.bench.sizes import SIZES, Found, Row, Size

FOUND = Found("8 cores", 2, 30, (Row("the peak", 1.0, 1.0, 2, 0.4, 1.01), Row("less", 0.46, 0.0, 4, 0.87, 1.09)))


def test_groups_of_version_1_have_shares_and_a_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Path.mkdir

    def mkdir(self: Path) -> None:
        make(self)
        (self / "cpu.shares").touch()

    monkeypatch.setattr(Path, "mkdir", mkdir)
    group = sizes._group(tmp_path / "pod", Size("a", 0.5, 2.0))
    assert (group / "cpu.shares").read_text() == "512"
    assert (group / "cpu.cfs_quota_us").read_text() == "200000"
    open_ended = sizes._group(tmp_path / "other", Size("a", 1.0))
    assert (open_ended / "cpu.cfs_quota_us").read_text() == "-1"


def test_groups_of_version_2_have_a_weight_and_a_maximum(tmp_path: Path) -> None:
    group = sizes._group(tmp_path / "pod", Size("a", 1.0, 0.46))
    assert (group / "cpu.weight").read_text() == "39", "as the kubelet makes 1024 shares a weight"
    assert (group / "cpu.max").read_text() == "46000 100000"
    assert (sizes._group(tmp_path / "other", Size("a", 1.0)) / "cpu.max").read_text() == "max 100000"


def test_a_user_who_may_make_no_groups_is_told(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=r"no control groups can be made: .*run it as root, on the host"):
        sizes.measure(1, 1, tmp_path / "absent")
    with pytest.raises(TrainyardError, match="this machine has"):
        sizes.measure(len(os.sched_getaffinity(0)) + 1, 1, tmp_path)


def test_figures_are_a_table_and_a_file(tmp_path: Path) -> None:
    assert "| less | 0.46 | none | 4 | 87 | 1.09 |" in sizes.table(FOUND)
    file = sizes.write(FOUND, tmp_path)
    read = {one.metric: one.value for one in summary.read(tmp_path, ["sizes"]).figures if one.column == "less"}
    assert (file.name, read["request"], read["used"]) == ("sizes.csv", 0.46, 0.87)


def test_sizes_range_from_the_peak_to_less_than_is_used() -> None:
    requests = [size.request for size in SIZES]
    assert requests == sorted(requests, reverse=True)
    assert requests[0] == 1.0
    assert requests[-1] < sizes.USED < requests[1]
    assert {bool(size.limit) for size in SIZES if size.request == requests[1]} == {True, False}
