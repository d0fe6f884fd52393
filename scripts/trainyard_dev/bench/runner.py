"""Measures runs one after the other: resumable, with a forecast; a failed run doesn't stop the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from time import localtime, monotonic, strftime, time

from trainyard.errors import TrainyardError
from trainyard.paths import OUT
from trainyard_dev.bench import configurations, environment, registry, results
from trainyard_dev.bench.harness import Harness, harness
from trainyard_dev.bench.results import Result, Run
from trainyard_dev.progress import Progress

FOLDER = OUT / "bench"
RUNS, FAILED = "runs", "failed"
GUESS_S = 30.0  # of a run when none was ever measured
ALL_JOBS = 1000  # about as many as a whole trace has
LOG_LINES = 30
CLEARED = 2000  # pods: with more, starting a new API server is faster than emptying this one

Opener = Callable[[], AbstractContextManager[Harness]]


@dataclass
class Outcome:
    """The outcome of the runs."""

    measured: list[Run] = field(default_factory=list)
    kept: list[Run] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def held(run: Run, folder: Path) -> Result | None:
    """The result of this run if still valid: same settings, configuration and versions of programs."""
    found = results.read_one(folder / RUNS / f"{run.id}.json")
    if found is None or found.run.settings_digest != run.settings_digest:
        return None
    return found if today(run) == (found.digest, environment.programs(found.versions)) else None


def today(run: Run) -> tuple[str, dict[str, str]] | None:
    """The current digest of the run's configuration and versions of its programs; None where it no longer exists."""
    try:
        column = configurations.column(run.column)
    except TrainyardError:
        return None
    return column.digest, environment.programs(environment.versions(column.scheduler))


def execute(runs: Sequence[Run], folder: Path, *, again: bool = False, opener: Opener | None = None) -> Outcome:
    """Measures runs that have no result yet, or all of them `again`; writes each result at once."""
    outcome = Outcome(kept=[] if again else [run for run in runs if held(run, folder)])
    todo = [run for run in runs if run not in outcome.kept]
    clock = Forecast(results.read(folder / RUNS))
    if outcome.kept:
        print(f"{len(outcome.kept)} of {len(runs)} runs have results", flush=True)
    progress = Progress(len(todo), f"Measuring, about {minutes_text(sum(map(clock.of, todo)))}" if todo else "")
    with _Worlds(opener or _open) as worlds:
        for at, run in enumerate(todo):
            done = strftime("%H:%M", localtime(time() + sum(map(clock.of, todo[at:]))))
            began = monotonic()
            try:
                with progress.step(f"{run.bench} {run.case} {run.column}, seed {run.seed} (all by {done})"):
                    _measure(run, worlds, folder)
                outcome.measured.append(run)
            except Exception as error:  # whatever fails in a bench, the other runs are worth having
                outcome.failed[run.id] = _keep_failure(run, error, worlds.logs(), folder)
                worlds.close()
            clock.add(run, monotonic() - began)
    return outcome


class Forecast:
    """Seconds that a run will take, from runs like it: same case and configuration, else case, else bench by size."""

    def __init__(self, known: Sequence[Result]) -> None:
        self._seconds: dict[tuple[str, ...], list[float]] = {}
        for result in known:
            self.add(result.run, result.seconds)

    def add(self, run: Run, seconds: float) -> None:
        """Adds the duration of a run to the forecast."""
        for key in _keys(run):
            self._seconds.setdefault(key, []).append(seconds / _size(run))

    def of(self, run: Run) -> float:
        """The seconds that this run is expected to take."""
        return next((fmean(self._seconds[key]) * _size(run) for key in _keys(run) if key in self._seconds), GUESS_S)


def _size(run: Run) -> float:
    """The work of a run relative to others of its bench: pods times nodes where it has a share of both, or jobs."""
    jobs = run.settings.get("count", ALL_JOBS) or ALL_JOBS
    return float(run.settings.get("share", 1.0)) ** 2 * jobs / ALL_JOBS


def minutes_text(seconds: float) -> str:
    """Formats seconds as `40 s`, `12 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Worlds:
    """The API server that runs share; replaced where a bench is FRESH, and after a large run."""

    def __init__(self, opener: Opener) -> None:
        self._opener, self._stack = opener, ExitStack()
        self._world: Harness | None = None

    def __enter__(self) -> _Worlds:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def empty(self, fresh: bool) -> Harness:
        """Returns an API server without nodes, pods and queues."""
        if fresh or (self._world and len(self._world.pods) > CLEARED):
            self.close()
        if self._world is None:
            self._world = self._stack.enter_context(self._opener())
        else:
            self._world.clear()
        return self._world

    def logs(self) -> str:
        """The last lines of every program's log."""
        files = sorted(self._world.server.folder.glob("*.log")) if self._world else []
        tails = (file.read_text(errors="replace").splitlines()[-LOG_LINES:] for file in files)
        return "\n".join("\n".join([f"== {file.name}", *tail]) for file, tail in zip(files, tails, strict=True))

    def close(self) -> None:
        """Ends the API server."""
        self._world = None
        self._stack.close()


def _open() -> AbstractContextManager[Harness]:
    return harness(configurations.crds())


def _measure(run: Run, worlds: _Worlds, folder: Path) -> None:
    bench = registry.load(run.bench)
    column = configurations.column(run.column)
    began = monotonic()
    found = bench.measure(run, worlds.empty(bench.FRESH))
    seconds = round(monotonic() - began, 1)
    versions = environment.versions(column.scheduler)
    result = Result(run, found, column.digest, versions, seconds, run.command)
    text = result.to_json()
    if bench.FRESH:
        worlds.close()
    file = folder / RUNS / f"{run.id}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_text(text)
    beside.replace(file)
    (folder / FAILED / f"{run.id}.txt").unlink(missing_ok=True)


def _keep_failure(run: Run, error: Exception, logs: str, folder: Path) -> str:
    """Writes a file about the failure; returns the sentence to print."""
    file = folder / FAILED / f"{run.id}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(traceback.format_exception(error)) + "\n" + logs)
    what = str(error) if isinstance(error, TrainyardError) else f"{type(error).__name__}: {error}"
    return f"{what} ({file})"


def _keys(run: Run) -> list[tuple[str, ...]]:
    return [(run.bench, run.case, run.column), (run.bench, run.case), (run.bench,)]
