"""`python3 -m model_server`: what it does before it serves."""

import os
from types import SimpleNamespace

import pytest

import model_server
from model_server import __main__ as program
from model_server.settings import Settings


def test_libraries_are_told_their_threads_before_they_are_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[int, str]] = []

    def run(settings: Settings) -> None:
        seen.append((settings.threads, os.environ["OMP_NUM_THREADS"]))

    monkeypatch.setattr(model_server, "serve", SimpleNamespace(run=run), raising=False)  # its packages are the image's
    monkeypatch.setenv("THREADS", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "128")
    assert program.main() == 0
    assert seen == [(3, "3")]
    monkeypatch.setenv("THREADS", "many")
    assert program.main() == 1
    assert "THREADS" in capsys.readouterr().err
