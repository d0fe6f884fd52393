"""The kit: parts, the limits of a borrowed machine, and the machine's script as far as it needs no cluster."""

import io
import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.kit import build, rehearse


@pytest.fixture(autouse=True)
def _as_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(build.MACHINE.parent))


def test_parts_are_small_and_whole(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5
    made = build.split(io.BytesIO(content), tmp_path, "node.tar.xz", size=500)
    assert made == ["node.tar.xz.00", "node.tar.xz.01", "node.tar.xz.02"]
    assert [(tmp_path / name).read_bytes() for name in made] == [content[:500], content[500:1000], content[1000:]]


@pytest.mark.parametrize(
    ("times", "size", "said"),
    [
        ([0, 300, 329, 900], 64 * rehearse.MIB, ""),
        ([0, 1], 65 * rehearse.MIB, "a transfer of 65.0 MiB (at most 64)"),
        ([0, 601], 0, "a call of 601 s (at most 600)"),
        ([0, 1, 31, 32], 0, "a pause of 30 s (less than 30)"),
        ([0, 450, 460, 901], 0, "901 s in all (at most 900)"),
    ],
)
def test_limits_of_a_borrowed_machine(times: list[float], size: int, said: str) -> None:
    lease = rehearse.Lease(clock=iter(times).__next__)
    with pytest.raises(TrainyardError, match=re.escape(said)) if said else nullcontext():
        for _ in times[::2]:
            assert lease.call(size, lambda: 75) == 75


def test_a_machine_without_a_gpu_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from machine import node, record

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(record.RefusedError, match=f"{tmp_path}/nvidia0 and nvidia-smi missing"):
        node.device(node.Kit(tmp_path), dev=tmp_path)


def test_a_rerun_goes_on_after_the_steps_that_are_done(tmp_path: Path) -> None:
    from machine import record

    ran, broken = [], [True]

    def breaks(_: object) -> str:
        ran.append("second")
        if broken:
            raise RuntimeError("no room")
        return "room"

    def lacks(_: object) -> str:
        raise record.NotHereError("no card")

    steps = [("first", ran.append), ("second", breaks), ("third", lacks)]
    book = record.Book(tmp_path, tmp_path / "out", mock=True, seconds=60)
    assert book.run("kit", steps, needed=2) == 1
    assert [one["outcome"] for one in book.read()] == ["passed", "failed"]
    broken.clear()
    assert book.run("kit", steps, needed=2) == 0
    assert ran == ["kit", "second", "second"]
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert [one["outcome"] for one in summary["steps"]] == ["passed", "passed", "not here"]
    assert "| third | not here |" in (tmp_path / "out/report.md").read_text()
    late = record.Book(tmp_path, tmp_path / "out", mock=True, seconds=-1)
    assert late.run("kit", [*steps, ("fourth", lacks)]) == record.AGAIN


def test_a_refused_machine_runs_nothing(tmp_path: Path) -> None:
    from machine import record

    def refuses(_: object) -> None:
        raise record.RefusedError("no GPU")

    book = record.Book(tmp_path, tmp_path / "out", mock=False, seconds=60)
    assert book.run("kit", [("device", refuses), ("next", lambda _: pytest.fail("ran"))]) == record.REFUSED


def test_training_on_the_processor_does_not_pass_for_a_card() -> None:
    from machine import proof

    said = "rank 0 of 1 computes on cpu\naccuracy 0.99 on 2000 points"
    assert proof.trained(said, mock=True) == "accuracy 0.99 on cpu"
    with pytest.raises(RuntimeError, match="not trained on the card"):
        proof.trained(said, mock=False)
