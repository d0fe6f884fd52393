"""The doctor on machines that lack rights, disk space, limits or programs, and its command's output."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from doctor_box import Box, find

from trainyard_dev.doctor import cli, examine, probes, table
from trainyard_dev.doctor.finding import Wanted, healthy


def test_a_good_machine_lacks_nothing() -> None:
    findings = examine(Box())
    assert healthy(findings)
    assert {f.state for f in findings} <= {"ok", "not needed"}
    assert len({f.check for f in findings}) == len(findings)


@pytest.mark.parametrize(
    ("change", "check", "hint"),
    [
        ({"user": 1000}, "root", "sudo"),
        ({"free": 3.0, "built": (18, 18)}, "disk", "TRAINYARD_CACHE"),
        ({"free": 12.0}, "disk", "TRAINYARD_CACHE"),
        ({"version": (3, 9, 2)}, "Python", "python3"),
        ({"venv": False}, "Python", "python3-venv"),
        ({"programs": {"runc", "iptables", "debootstrap", "go", "gcc", "make"}}, "podman", "apt-get install"),
        ({"answers": {"podman info": (125, "Error: cannot find newuidmap")}}, "podman", "podman info"),
    ],
)
def test_what_stops_a_run(change: dict[str, Any], check: str, hint: str) -> None:
    box = Box(**change)
    finding = find(box, check)
    assert finding.state == "missing"
    assert hint in finding.hint
    assert not healthy(examine(box))


@pytest.mark.parametrize(
    ("program", "check"),
    [
        ("debootstrap", "debootstrap"),
        ("gcc", "C compiler"),
        ("make", "C compiler"),
        ("go", "Go"),
        ("iptables", "iptables"),
    ],
)
def test_a_missing_program(program: str, check: str) -> None:
    box = Box()
    box.programs.discard(program)
    assert find(box, check).state == "missing"
    assert find(box, check).hint


def test_every_missing_or_warning_has_a_hint() -> None:
    bare = Box(user=7, programs=set(), answers={}, paths=set(), files={}, free=1, limits={"nofile": 1024, "nproc": 100})
    findings = examine(bare)
    assert not healthy(findings)
    for finding in findings:
        if finding.state == "missing" or (finding.state == "warn" and "can't be read" not in finding.found):
            assert finding.hint, finding


def test_disk_depends_on_the_cache() -> None:
    assert find(Box(free=12, built=(18, 18)), "disk").state == "ok"
    assert "a warm run needs 12" in find(Box(free=12, built=(18, 18)), "disk").found


@pytest.mark.parametrize(
    ("total", "free", "state"),
    [(4_000_000, 3_000_000, "missing"), (16_000_000, 1_000_000, "warn"), (16_000_000, 9_000_000, "ok")],
)
def test_memory(total: int, free: int, state: str) -> None:
    box = Box()
    box.files["/proc/meminfo"] = f"MemTotal: {total} kB\nMemAvailable: {free} kB\n"
    assert find(box, "memory").state == state


def test_limits() -> None:
    assert find(Box(limits={"nofile": 1024, "nproc": None}), "hard limit nofile").state == "warn"


def test_go_is_not_needed_once_all_is_built() -> None:
    box = Box(built=(18, 18))
    box.programs.discard("go")
    assert find(box, "Go").state == "not needed"
    old = Box()
    old.answers["go version"] = (0, "go version go1.9.7 linux/amd64")
    assert find(old, "Go").state == "missing"


def test_an_older_go_fetches_the_one_that_is_needed() -> None:
    """Ubuntu's Go is 1.22, and modules ask for 1.26; Go itself fetches that, unless it is forbidden to."""
    box = Box()
    box.answers["go version"] = (0, "go version go1.22.2 linux/amd64")
    assert find(box, "Go").state == "ok"
    assert "it downloads Go 1.26.0" in find(box, "Go").found
    box.variables["GOTOOLCHAIN"] = "local"
    assert find(box, "Go").state == "missing"


def test_a_program_that_sudo_does_not_find_is_asked_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go").write_text("#!/bin/sh\necho go version go1.26.8 linux/amd64\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setattr(probes, "ELSEWHERE", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(probes.shutil, "which", _found_only_there(tmp_path))
    assert probes.Machine().run("go", "version") == (0, "go version go1.26.8 linux/amd64")


def _found_only_there(folder: Path) -> Callable[..., str | None]:
    """Acts as shutil.which on a machine whose PATH has no Go."""
    return lambda name, path=None: str(folder / name) if path == str(folder) else None


def test_images_are_pulled_or_built() -> None:
    pull = Wanted(images="pull")
    assert "built here" in find(Box(reached=True), "images").found
    assert "pulled" in find(Box(reached=True), "images", pull).found
    assert find(Box(), "images", pull).state == "missing"
    without = Box(reached=True)
    without.programs.discard("debootstrap")
    assert find(without, "debootstrap", pull).state == "not needed"
    assert find(without, "debootstrap").state == "missing"


def test_table_reads_well() -> None:
    text = table.render(examine(Box(user=1000)))
    assert text.splitlines()[0] == "Rights"
    assert "hint: sudo -E make e2e" in text
    assert "Missing: root" in text.splitlines()[-1]
    assert "\x1b" not in text
    assert "\x1b[31mmissing" in table.render(examine(Box(user=1000)), colour=True)
    assert table.verdict(examine(Box())) == "This machine meets all requirements of `make e2e`."


@pytest.mark.parametrize(("user", "code"), [(0, 0), (1000, 1)])
def test_command_and_its_exit_code(monkeypatch: pytest.MonkeyPatch, user: int, code: int) -> None:
    monkeypatch.setattr(cli, "Machine", lambda: Box(user=user))
    result = CliRunner().invoke(cli.doctor, ["-o", "json"])
    assert result.exit_code == code
    data = json.loads(result.output)
    assert data["ok"] == (code == 0)
    assert {"group", "check", "found", "state", "hint"} == set(data["checks"][0])
    assert CliRunner().invoke(cli.doctor, []).exit_code == code
    assert CliRunner().invoke(cli.doctor, ["--images", "fetch"]).exit_code == 2


def test_the_real_machine_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes.Machine, "registry", lambda self: False)
    monkeypatch.setattr(probes.Machine, "tools_built", lambda self: (0, 1))
    assert {"root", "disk", "podman", "overlay", "GPUs"} <= {f.check for f in examine(probes.Machine())}


def test_probes_never_raise(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host = probes.Machine()
    assert host.run("no-such-program-here")[0] == 127
    assert host.read(str(tmp_path)) == ""
    (tmp_path / "x.gz").write_text("no gzip")
    assert host.read(str(tmp_path / "x.gz")) == ""
    monkeypatch.setenv("TRAINYARD_CACHE", str(tmp_path / "not" / "yet"))
    assert host.free_gb() > 0
    assert not (tmp_path / "not").exists()
