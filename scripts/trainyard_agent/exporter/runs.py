"""Runs of pipelines as they end: a counter, and how long the last one took."""

from __future__ import annotations

from collections.abc import Iterable

from trainyard_agent.exporter.model import FAILED, STOPPED, SUCCEEDED, Run
from trainyard_agent.exporter.series import Page

OUTCOMES = (SUCCEEDED, FAILED, "error", STOPPED)
MOST = 200  # pipelines of a team; members name them
REST = "others"  # those beyond


class Runs:
    """What ended since this began.

    Runs that were over before count for nothing: a restart would count those of them again that are still there. Every
    pipeline begins with zeros, so that `increase` sees its first end.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], dict[str, int]] = {}
        self._last: dict[tuple[str, str], tuple[float, float]] = {}  # when it ended, how long it took
        self._ended: set[str] = set()  # uids of runs that are over and still there
        self._begun = False

    def look(self, runs: Iterable[Run], teams: set[str]) -> None:
        """Takes over what ended since the last time."""
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
        """Its series."""
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
