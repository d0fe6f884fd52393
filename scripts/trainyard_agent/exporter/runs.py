"""Ended runs of pipelines: a counter, and how long the last one took."""

from __future__ import annotations

from collections.abc import Iterable

from trainyard_agent.exporter.model import FAILED, STOPPED, SUCCEEDED, Run
from trainyard_agent.exporter.series import Page

OUTCOMES = (SUCCEEDED, FAILED, "error", STOPPED)
MOST = 200  # pipelines per team, because members name them
REST = "others"  # label of the pipelines beyond that


class Runs:
    """Runs that ended since the exporter started.

    Runs that were over before are not counted: a restart would count again those that still exist. Every
    pipeline begins with zeros, so that `increase` sees its first end.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self._last: dict[tuple[str, str], tuple[float, float]] = {}  # when it ended, how long it took
        self._ended: set[str] = set()  # uids of runs that are over and still exist
        self._begun = False

    def look(self, runs: Iterable[Run], teams: set[str]) -> None:
        """Records the runs that ended since the last call."""
        there: set[str] = set()
        for run in runs:
            if run.job.key.namespace not in teams:
                continue
            place = self._place(run)
            counts = self._counts.setdefault(place, dict.fromkeys(OUTCOMES, 0))
            if not run.outcome:
                continue
            there.add(run.uid)
            if self._begun and run.uid not in self._ended:
                counts[run.outcome] += 1
            if run.ended >= self._last.get(place, (0.0, 0.0))[0]:
                self._last[place] = (run.ended, run.seconds)
        self._ended, self._begun = there, True

    def write(self, page: Page) -> None:
        """Writes the series of runs."""
        for (team, pipeline), counts in self._counts.items():
            for outcome, count in counts.items():
                page.add("trainyard_runs_total", (team, pipeline, outcome), count)
        for (team, pipeline), (_, seconds) in self._last.items():
            page.add("trainyard_run_seconds", (team, pipeline), seconds)

    def _place(self, run: Run) -> tuple[str, str]:
        place = (run.job.key.namespace, run.pipeline)
        if place in self._counts or sum(team == place[0] for team, _ in self._counts) < MOST:
            return place
        return place[0], REST
