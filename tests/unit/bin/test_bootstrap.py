"""The first command in a fresh clone: what it creates, and how it ends when something is missing."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from trainyard.paths import ROOT

Program = Callable[[str, str], Path]
NEEDED = ("bash", "cat", "cut", "dirname", "env", "ln", "mkdir", "readlink", "rm", "sha256sum", "chmod")
# python3 whose venv holds a pip that notes its call.
PYTHON = """case "$1" in
--version) echo "Python ${FAKE_PYTHON:-3.11.9}";;
-c) [ -z "$FAKE_PYTHON" ];;
-m) mkdir -p "$3/bin"
  printf '#!/bin/bash\\necho "$*" >> "%s"; [ ! -e "%s" ] || { echo "ERROR: no network" >&2; exit 1; }\\n' \\
    "$NOTE" "$NOTE.refuse" > "$3/bin/pip"
  chmod +x "$3/bin/pip"; cp "$0" "$3/bin/python3"; cp "$0" "$3/bin/python";;
esac"""


@pytest.fixture
def bootstrap(tmp_path: Path, cache: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple]:
    """Runs bin/bootstrap on a machine that has nothing but the shell's tools and the pretended python3."""
    folder = program("python3", PYTHON).parent
    for name in (*NEEDED, "cp"):
        os.symlink(str(shutil.which(name)), folder / name)
    program("id", 'echo "${FAKE_UID:-0}"')
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("NOTE", str(tmp_path / "note"))
    monkeypatch.delenv("IMAGES", raising=False)

    def call(*words: str) -> tuple[int, str, list[str]]:
        done = subprocess.run([ROOT / "bin/bootstrap", *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.strip(), done.stderr.splitlines()

    return call


def test_the_environment_is_made_once(bootstrap: Callable[..., tuple], cache: Path, tmp_path: Path) -> None:
    code, out, err = bootstrap()
    assert (code, len(err)) == (0, 1)
    assert out.startswith(f"{cache}/venv/")
    assert out.endswith("/bin/python")
    assert bootstrap() == (0, out, [])
    calls = (tmp_path / "note").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].endswith(f"-r {ROOT}/requirements.lock")


def test_a_failed_installation_is_reported_and_tried_again(bootstrap: Callable[..., tuple], tmp_path: Path) -> None:
    (tmp_path / "note.refuse").touch()
    code, out, err = bootstrap()
    assert (code, out) == (1, "")
    assert err[-1].startswith("bootstrap: pip could not install requirements.lock. Check the network and the disk")
    (tmp_path / "note.refuse").unlink()
    assert bootstrap()[0] == 0


def test_an_old_python(bootstrap: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_PYTHON", "3.9.2")
    code, out, err = bootstrap()
    assert (code, out) == (1, "")
    assert err[-1] == "bootstrap: Python 3.11 or newer is needed, Python 3.9.2 is here"


@pytest.mark.parametrize("apt", [True, False])
def test_missing_packages_without_root_or_apt(
    bootstrap: Callable[..., tuple], program: Program, monkeypatch: pytest.MonkeyPatch, apt: bool
) -> None:
    if apt:
        program("apt-get", "exit 0")
        monkeypatch.setenv("FAKE_UID", "1000")
    code, out, err = bootstrap("--system")
    assert (code, out, len(err)) == (1, "", 1)
    assert err[0].startswith("bootstrap: missing ")
    asked = err[0].partition("As root on Debian run: apt-get install -y ")[2].split()
    assert {"gcc", "podman", "runc", "conntrack", "iptables", "debootstrap"} <= set(asked)


def asked(err: list[str]) -> set[str]:
    """Packages that the machine lacks, of what bootstrap says; none where it says nothing."""
    return set(" ".join(err).partition("apt-get install -y ")[2].split())


@pytest.mark.parametrize(
    ("docker", "needed"),
    [
        ('[ "$1" != -v ] || echo "Docker version 27.0.3, build 7d4bcd8"', False),
        ('[ "$1" = -v ] && echo "Docker version 27.0.3" || exit 1', True),  # its service does not run
        ("echo podman version 4.3.1", True),  # podman-docker
    ],
)
def test_podman_is_asked_for_only_where_docker_does_not_answer(
    bootstrap: Callable[..., tuple], program: Program, docker: str, needed: bool
) -> None:
    """Ubuntu 22.04 has no netavark and Fedora no apt: with Docker neither is needed."""
    program("docker", docker)
    engine = {"podman", "runc", "conntrack", "iptables"}
    assert engine & asked(bootstrap("--system")[2]) == (engine if needed else set())


@pytest.mark.parametrize(("images", "needed"), [("pull", False), ("auto", True), ("build", True)])
def test_debootstrap_is_asked_for_only_where_images_are_built(
    bootstrap: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch, images: str, needed: bool
) -> None:
    monkeypatch.setenv("IMAGES", images)
    assert ("debootstrap" in asked(bootstrap("--system")[2])) == needed


def test_a_machine_without_apt_that_has_all_with_docker(
    bootstrap: Callable[..., tuple], program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("docker", "echo Docker version 27.0.3")
    program("gcc", "exit 0")
    program("make", "exit 0")
    monkeypatch.setenv("IMAGES", "pull")
    code, out, err = bootstrap("--system")
    assert (code, asked(err)) == (0, set())
    assert out.endswith("/bin/python")


def test_packages_are_installed_where_they_are_missing(
    bootstrap: Callable[..., tuple], program: Program, tmp_path: Path
) -> None:
    program("apt-get", f'echo "$*" >> {tmp_path}/apt')
    program("podman", "exit 0")
    assert bootstrap("--system")[0] == 0
    update, install, *_ = (tmp_path / "apt").read_text().splitlines()
    assert update.startswith("update")
    assert " runc " in install
    assert " podman" not in install


def test_packages_that_can_not_be_installed(bootstrap: Callable[..., tuple], program: Program) -> None:
    program("apt-get", 'echo "E: Unable to fetch some archives" >&2; exit 100')
    code, out, err = bootstrap("--system")
    assert (code, out) == (1, "")
    assert err[-1].startswith("bootstrap: apt-get could not install ")
    assert " podman runc " in err[-1]


@pytest.mark.parametrize(
    ("option", "package", "command"),
    [("--guest", "qemu-system-x86", "qemu-system-x86_64"), ("--browser", "chromium", "chromium")],
)
def test_a_package_that_only_some_checks_need_is_no_condition(
    bootstrap: Callable[..., tuple], program: Program, tmp_path: Path, option: str, package: str, command: str
) -> None:
    program("apt-get", f'echo "$*" >> {tmp_path}/apt; case "$*" in *{package}*) exit 100;; esac')
    assert bootstrap("--system")[0] == 0
    assert package not in (tmp_path / "apt").read_text()
    code, out, err = bootstrap(option)
    assert code == 0
    assert out.endswith("/bin/python")
    assert f"bootstrap: {package} could not be installed; the checks that need it will be skipped" in err
    assert (tmp_path / "apt").read_text().splitlines()[-1].endswith(f" {package}")
    program(command, "exit 0")
    (tmp_path / "apt").unlink()
    assert bootstrap(option)[0] == 0
    assert not (tmp_path / "apt").exists()
