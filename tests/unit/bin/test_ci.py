"""`.ci/run`: both stages, their seconds, and what a failed run leaves to read."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.paths import ROOT

Program = Callable[[str, str], Path]
MAKE = 'shift; echo "make $*, data: ${TRAINYARD_DATA:-none}"; [ "$1" != "$FAILS" ]'


@pytest.fixture
def ci(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Runs .ci/run in a checkout whose `make` pretends; `fails` is the verb that fails."""
    checkout = tmp_path / "site/checkout"
    (checkout / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", checkout / ".ci/run")
    program("make", MAKE)
    monkeypatch.delenv("TRAINYARD_DATA", raising=False)

    def call(fails: str = "") -> tuple[int, str]:
        done = subprocess.run(
            [checkout / ".ci/run"],
            cwd="/",
            env={**os.environ, "FAILS": fails},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return call


def test_both_stages_pass(ci: Callable[..., tuple[int, str]]) -> None:
    code, out = ci()
    assert code == 0
    began, end, then = map(out.index, ("make test FULL=1, data: none", "== make test: passed after", "make e2e, data"))
    assert began < end < then
    tail = out.splitlines()[-4:]
    assert tail[0] == "== summary"
    assert re.fullmatch(r"make test +passed +\d+ s", tail[1])
    assert re.fullmatch(r"make e2e +passed +\d+ s", tail[2])
    assert re.fullmatch(r"total +\d+ s", tail[3])


def test_a_failed_test_stage_stops_the_run(ci: Callable[..., tuple[int, str]]) -> None:
    code, out = ci("test")
    assert code == 1
    assert "make e2e, data" not in out
    assert re.search(r"^make test +FAILED +\d+ s$", out, re.M)
    assert re.search(r"^make e2e +not run", out, re.M)


def test_a_failed_run_shows_the_probable_cause(ci: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    folder = tmp_path / "site/checkout/out/e2e/diagnosis"
    folder.mkdir(parents=True)
    (folder / "cause.txt").write_text("The queue training is closed.\n")
    code, out = ci("e2e")
    assert code == 1
    assert "-- out/e2e/diagnosis/cause.txt\nThe queue training is closed.\n" in out
    assert out.index("The queue") < out.index("== summary")


def test_data_beside_the_checkout(
    ci: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site/shared/data").mkdir(parents=True)
    assert f"make e2e, data: {tmp_path}/site/shared/data" in ci()[1]
    monkeypatch.setenv("TRAINYARD_DATA", "/my/data")
    assert "make e2e, data: /my/data" in ci()[1]
