"""Fixtures that several unit tests share: a separate cache and fake programs."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from error_lines import sentence
from local_server import Answers, serving

import trainyard_dev  # noqa: F401  values become a contract by the pinned helm
from trainyard_dev.e2e.sites.tracking_server import Server

if TYPE_CHECKING:
    from pretended_machine import Machine


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder for this test alone."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRAINYARD_CACHE", str(folder))
    return folder


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """`program(name, script)` puts a shell script of that name first on PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def image_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A repository with one image and one tool set; images and tools know no other."""
    from images_demo import demo_tree

    return demo_tree(tmp_path / "tree", monkeypatch)


@dataclass
class Ended:
    """How a run of the command line ended."""

    code: int
    out: str
    err: str

    def error(self) -> str:
        """Standard error in one line; fails when it has anything but an error and perhaps its hint."""
        assert self.code != 0
        assert "Traceback" not in self.out + self.err
        return sentence(self.err)


@pytest.fixture
def trainyard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Ended]]:
    """`trainyard("cluster", "up")` runs the command line in this process, as its entry point does."""
    from trainyard_dev.cli import main

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it

    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["trainyard", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return Ended(int(ended.value.code or 0), shown.out, shown.err)

    yield call
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def site() -> Iterator[SimpleNamespace]:
    """A web server whose next answer the test sets."""
    answer = SimpleNamespace(code=200, headers={}, body=b"", url="")

    class Handler(Answers):
        def get(self) -> None:
            self.send_response(answer.code)
            for key, value in answer.headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(answer.body)

    with serving(Handler) as address:
        answer.url = f"{address}/v2/"
        yield answer


@pytest.fixture
def machine(
    tmp_path: Path,
    cache: Path,
    program: Callable[[str, str], Path],
    site: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> Machine:
    """A machine on which podman, kind and kubectl pretend, as root, with room, /dev/fuse and no GPU."""
    from pretended_machine import pretend

    return pretend(tmp_path, cache, site.url.split(":")[2].split("/")[0], program, monkeypatch)


def _draw(figures: Sequence[Any], results: Sequence[Any], folder: Path) -> None:
    """Bars of all figures, and a curve of the results that there are."""
    (folder / "fake-bars.svg").write_text(f"{[one.value for one in figures]}")
    if results:
        (folder / "fake-curve.svg").write_text(f"{len(results)} runs")


@pytest.fixture
def fake_bench(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The only bench, `fake`, with two configurations; its parts may be replaced. No chart, no API server."""
    from trainyard_dev.bench import configurations, registry, tables
    from trainyard_dev.bench.results import Run, summarise

    def column(name: str, config: str) -> configurations.Configuration:
        return configurations.Configuration(name, f"label of {name}", "kube", config)

    made = SimpleNamespace(
        TITLE="A fake bench",
        FRESH=False,
        HEADINGS={"used": "GPUs used, %"},
        SHORT=(),
        LESS=(),
        plan=lambda full: [
            Run("fake", case, name, seed, {"size": 3})
            for case in (("small", "large") if full else ("small",))
            for name in ("ours", "kube-default")
            for seed in (1, 2)
        ],
        measure=lambda run, harness: {"used": 90.0 + run.seed},
        figures=lambda results: summarise(results, "used", "%", 100),
        section=lambda figures: tables.by_column(figures, "small", {"used": "GPUs used, %"}),
        configurations={"ours": column("ours", "a"), "kube-default": column("kube-default", "b")},
    )

    def makers() -> dict[str, Any]:
        return dict.fromkeys(made.configurations, made.configurations.__getitem__)

    monkeypatch.setattr(configurations, "_makers", makers)
    monkeypatch.setattr(configurations, "column", configurations.column.__wrapped__)  # nothing is kept
    monkeypatch.setattr(registry, "BENCHES", {"fake": made})
    return made


@pytest.fixture
def bench_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of its own for results and what is published of them."""
    from trainyard_dev import changes
    from trainyard_dev.bench import page, runner, summary

    monkeypatch.setattr(changes, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(runner, "FOLDER", tmp_path / "out")
    monkeypatch.setattr(page, "PAGE", tmp_path / "docs/benchmarks.md")
    monkeypatch.setattr(page, "DRAW", {"fake": lambda figures, folder: (folder / "fake.svg").write_text("<svg/>")})
    monkeypatch.setattr(summary, "FOLDER", tmp_path / "docs/benchmarks")
    return tmp_path


@pytest.fixture
def tracking() -> Iterator[Server]:
    """An MLflow server that keeps what it is asked."""
    with Server(("127.0.0.1", 0)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
