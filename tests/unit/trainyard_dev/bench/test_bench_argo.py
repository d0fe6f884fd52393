"""The bench of Argo's controllers: what each program is told, and what is written of the figures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard_dev.bench import argo_teams
from trainyard_dev.bench.argo_teams import OWN, SHARED, Fleet, Found, Row

ARGS = ["--configmap=c", "--namespaced", "--managed-namespace=team-00", "--qps=100"]
DEPLOYMENT: dict[str, Any] = {
    "spec": {"template": {"spec": {"containers": [{"args": ARGS, "env": [{"name": "A", "value": "b"}]}]}}}
}


class Program:
    """Instead of a process: what was started, with which words."""

    started: list[list[str]] = []  # noqa: RUF012
    stopped = 0

    def __init__(self, argv: list[Any], log: Path, env: dict[str, str]) -> None:
        assert env == {"A": "b"}
        self.pid = len(self.started)
        self.started.append([str(word) for word in argv[1:-4]])

    def stop(self) -> None:
        type(self).stopped += 1


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> type[Program]:
    Program.started, Program.stopped = [], 0
    monkeypatch.setattr(argo_teams, "Server", Program)
    monkeypatch.setattr(argo_teams.tools, "binary", lambda name: Path(name))
    return Program


def fleet(names: list[str], folder: Path) -> Fleet:
    (folder / "k").write_text('{"users": [{"user": {}}]}')
    return Fleet(SimpleNamespace(kubeconfig=folder / "k"), folder, DEPLOYMENT, names)  # type: ignore[arg-type]


def test_each_serves_its_team_and_a_stopped_one_comes_back_as_it_was(tmp_path: Path, program: type[Program]) -> None:
    own = fleet(["team-00", "team-07"], tmp_path)
    own.start()
    one, other = program.started
    assert one == ARGS
    assert other == ["--configmap=c", "--namespaced", "--managed-namespace=team-07", "--qps=100"]
    own.stop(1)
    own.start()
    assert program.started[2] == other and own.pids == [0, 2]
    own.stop()
    assert program.stopped == 3 and own.pids == []


def test_one_for_all_serves_the_whole_cluster(tmp_path: Path, program: type[Program]) -> None:
    fleet([""], tmp_path).start()
    assert program.started == [["--configmap=c", "--qps=100"]]


def row(way: str, teams: int) -> Row:
    return Row(way, teams, 50.0 * teams, 30, 60, 1, 2, 1, 0.6, 0.7)


FOUND = Found("3.7.2", "2 cores", 10, 120.0, tuple(row(way, teams) for teams in (1, 30) for way in (SHARED, OWN)))


def test_figures_are_read_as_they_were_written_with_a_plot_of_both_ways(tmp_path: Path) -> None:
    argo_teams.write(FOUND, tmp_path)
    assert argo_teams.read(tmp_path) == FOUND
    for name in ("argo-teams-held.svg", "argo-teams-together.svg"):
        text = (tmp_path / name).read_text()
        assert SHARED in text and OWN in text


def test_the_table_has_a_line_for_each_row_and_a_unit_for_each_column() -> None:
    head, _, *lines, _, last = argo_teams.table(FOUND).splitlines()
    assert last.endswith("has 120 MiB resident.")
    assert [line.split("|")[1].strip() for line in lines] == [f"{one.way}, {one.teams}" for one in FOUND.rows]
    assert "MiB on one node" in head and "seconds a step, one team" in head
    assert "1,500" in lines[3]
