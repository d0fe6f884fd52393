"""`trainyard audit`: the real osv-scanner finds planted vulnerabilities; sources not queried are named and count."""

import datetime
import json
import re
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.audit import cli
from trainyard_dev.audit.cli import CLEAN, FOUND, UNASKED
from trainyard_dev.tools import build
from trainyard_dev.versions import load

TODAY = datetime.date(2026, 11, 23)
ARGO = "github.com/argoproj/argo-workflows/v3"
PLANTED = {"PyPI": ("PyPI", "flask"), "Go": ("Go", "example.org/Planted"), "Debian": ("Debian:13", "openssl")}
Ask = Callable[..., tuple[bool, list[str], str]]
scanner = pytest.mark.skipif(
    not build.is_built(load().tools["osv-scanner"]), reason="osv-scanner takes minutes to build: run `make audit`"
)


def plant(copy: Path, day: str = "2026-11-20", **packages: tuple[str, str]) -> Path:
    """A copy of osv.dev's exports, with one advisory for each ecosystem that is named."""
    for ecosystem, (release, package) in packages.items():
        kind = "SEMVER" if ecosystem == "Go" else "ECOSYSTEM"
        ranges = [{"type": kind, "events": [{"introduced": "0"}, {"fixed": "3.0.0"}]}]
        affected = [{"package": {"ecosystem": release, "name": package}, "ranges": ranges}]
        record = {"id": f"PLANTED-{ecosystem}", "modified": f"{day}T00:00:00Z", "affected": affected}
        file = copy / "osv-scanner" / ecosystem / "all.zip"
        file.parent.mkdir(parents=True)
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("planted.json", json.dumps(record))
    return copy


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Asks a copy about pins, modules and packages of Debian 13: whether it found, what is open, what was said."""

    def asked(copy: Path, urllib3: str = "2.7.0", further: str = "", modules: str = f"{ARGO} v3.7.18",
              openssl: str = "1:3.5.1~rc1-1+deb13u2", files: tuple[str, ...] = (),
              ) -> tuple[bool, list[str], str]:  # fmt: skip
        (pins := tmp_path / "pins.txt").write_text(f"urllib3=={urllib3} \\\n    --hash=sha256:00\n{further}\n")
        (go_mod := tmp_path / "go.mod").write_text(f"module x\n\ngo 1.26\n\nrequire {modules}\n")
        packages = cli.debian(answers(0, f"13\ninstalled openssl {openssl}\n"), "ref")
        image = tmp_path / "image.cdx.json"
        image.write_text(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "components": packages}))
        named = [f"requirements.txt:{pins}", f"go.mod:{go_mod}", str(image), *files]
        left: list[str] = []
        found = cli.ask(named, left, tmp_path / "work", str(copy), TODAY)
        return found, left, capsys.readouterr().out

    return asked


@scanner
def test_one_planted_advisory_of_each_ecosystem_is_found(tmp_path: Path, ask: Ask) -> None:
    found, left, said = ask(plant(tmp_path / "copy", **PLANTED), further="flask==1.0", openssl="3.0.0~rc1-1+deb13u2",
                            modules="example.org/Planted v1.2.3")  # fmt: skip
    assert found and not left
    assert set(re.findall(r"PLANTED-\w+", said)) == {"PLANTED-PyPI", "PLANTED-Go", "PLANTED-Debian"}


@scanner
def test_all_asked_and_nothing_found_is_clean(tmp_path: Path, ask: Ask) -> None:
    assert ask(plant(tmp_path / "copy", **PLANTED))[:2] == (False, [])


@scanner
def test_modules_are_read_out_of_a_binary(tmp_path: Path, ask: Ask) -> None:
    inside = PLANTED | {"Go": ("Go", "github.com/BurntSushi/toml")}
    found, _, said = ask(plant(tmp_path / "copy", **inside), files=(str(build.binary("osv-scanner")),))
    assert found and "PLANTED-Go" in said


@scanner
@pytest.mark.parametrize(
    ("held", "id"), [({"urllib3": "2.5.0"}, "CVE-2026-21441"), ({"modules": f"{ARGO} v3.7.2"}, "CVE-2026-40886")]
)
def test_our_own_list_finds_what_no_database_knows(tmp_path: Path, ask: Ask, held: dict[str, str], id: str) -> None:
    found, left, said = ask(tmp_path / "nothing", **held)
    assert found and id in said
    assert left == [f"{one}, of {tmp_path / 'nothing'}: all.zip is missing" for one in cli.ECOSYSTEMS]


@scanner
def test_what_is_accepted_is_told_with_its_reason_and_no_finding(tmp_path: Path, ask: Ask) -> None:
    minio = "github.com/minio/minio v0.0.0-20260212201848-7aac2a2c5b7c"
    found, _, said = ask(plant(tmp_path / "copy", **PLANTED), modules=minio)
    assert not found
    assert "CVE-2026-97731 has been filtered out because: Upstream is archived" in said


@scanner
def test_a_file_without_packages_counts_as_not_asked(tmp_path: Path, ask: Ask) -> None:
    (empty := tmp_path / "requirements.txt").write_text("# nothing\n")
    left = ask(plant(tmp_path / "copy", **PLANTED), files=(f"requirements.txt:{empty}",))[1]
    assert left == [f"{empty}: osv-scanner found no packages"]


@scanner
def test_a_file_that_can_not_be_read_ends_the_audit(tmp_path: Path, ask: Ask) -> None:
    with pytest.raises(TrainyardError, match=r"osv-scanner exited with 127: .*nowhere"):
        ask(plant(tmp_path / "copy", **PLANTED), files=(f"go.mod:{tmp_path / 'nowhere'}",))


@pytest.mark.parametrize(("day", "why"), [
    ("2026-11-09", ""), (None, "all.zip is missing"),
    ("2026-11-08", "the newest entry is of 2026-11-08; at most 14 days are allowed"),
])  # fmt: skip
def test_an_old_copy_counts_as_not_asked(tmp_path: Path, day: str | None, why: str) -> None:
    copy = plant(tmp_path / "copy", day, PyPI=PLANTED["PyPI"]) if day else tmp_path
    assert cli.take(copy, "PyPI", tmp_path / "all.zip", TODAY) == why


def test_an_empty_copy_counts_as_not_asked(tmp_path: Path) -> None:
    (tmp_path / "Go").mkdir()
    zipfile.ZipFile(tmp_path / "Go/all.zip", "w").close()
    assert cli.take(tmp_path, "Go", tmp_path / "all.zip", TODAY).startswith("the newest entry is of 0001-01-01")


@pytest.mark.parametrize("own", [True, False])
def test_a_service_that_does_not_answer_counts_as_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    def scan(files: list[str], left: list[str], *how: str) -> bool:
        if "--offline" not in how:
            raise TrainyardError("no such host")
        return own

    monkeypatch.setattr(cli, "scan", scan)
    left: list[str] = []
    assert cli.ask([], left, tmp_path, "", TODAY) == own
    assert left == ["osv.dev, for PyPI, Go, Debian: no such host"]


@pytest.mark.parametrize(("found", "over", "left", "code"), [
    (False, [], [], CLEAN), (True, [], ["one"], FOUND), (False, ["helm 3: its support ended"], [], FOUND),
    (False, [], ["one"], UNASKED),
])  # fmt: skip
def test_the_code_says_whether_all_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trainyard: Callable[..., Any], found: bool, over: list[str],
    left: list[str], code: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(cli, "OUT", tmp_path)
    monkeypatch.setattr(cli, "held", lambda versions, work: ([], left))
    monkeypatch.setattr(cli, "ask", lambda *_: found)
    monkeypatch.setattr(cli, "past_support", lambda *_: iter(over))
    done = trainyard("audit")
    assert done.code == code
    assert [line for line in (*over, *(f"open: {one}" for one in left)) if line not in done.out] == []


def test_all_pins_sets_and_images_are_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = [{"type": "library", "name": "acl", "purl": "pkg:deb/debian/acl@1?distro=debian-13"}]
    monkeypatch.setattr(build, "is_built", lambda tool: tool.name == "helm")
    monkeypatch.setattr(cli.engines, "find", lambda: SimpleNamespace(has_image=lambda ref: "/platform:" in ref))
    monkeypatch.setattr(cli, "debian", lambda engine, ref: entry)
    files, left = cli.held(load(), tmp_path)
    assert f"requirements.txt:{ROOT / 'requirements.lock'}" in files
    assert f"requirements.txt:{ROOT / 'images/platform/requirements.txt'}" in files
    assert f"go.mod:{ROOT / 'charts/argo/tools/argo/go.mod'}" in files
    assert [file for file in files if ":" not in file] == [
        str(build.bin_dir(load().tools["helm"]) / "helm"), str(tmp_path / "platform.cdx.json")
    ]  # fmt: skip
    assert json.loads((tmp_path / "platform.cdx.json").read_text())["components"] == entry
    assert "dependencies of charts/argo/tools/argo: not built here" in left
    assert "packages of the image minio: not built here" in left


def test_a_machine_without_an_engine_leaves_the_images_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise TrainyardError("neither docker nor podman is there")

    monkeypatch.setattr(cli.engines, "find", none)
    assert cli.held(load(), tmp_path)[1][-1] == "packages of images: neither docker nor podman is there"


def answers(code: int, said: str = "") -> Any:
    return lambda *argv, check: SimpleNamespace(returncode=code, stdout=said, stderr="no space")


def test_debian_is_asked_by_source_packages() -> None:
    glibc = "installed glibc 2.36-9\n"
    said = f"12\ninstalled openssl 1:3.0.16-1~deb12u1+b1\n{glibc}{glibc}config-files gone 1\n"
    assert [one["purl"] for one in cli.debian(answers(0, said), "ref")] == [
        "pkg:deb/debian/glibc@2.36-9?distro=debian-12",
        "pkg:deb/debian/openssl@1%3A3.0.16-1~deb12u1%2Bb1?distro=debian-12",
    ]


def test_an_image_without_a_shell_has_no_packages_and_one_that_does_not_run_is_told() -> None:
    assert cli.debian(answers(127), "ref") == []
    with pytest.raises(TrainyardError, match="ref does not say it: no space"):
        cli.debian(answers(125), "ref")


@pytest.mark.parametrize(("day", "old"), [("2026-11-20", False), ("2026-10-24", False), ("2026-10-23", True)])
def test_packages_of_images_grow_old(monkeypatch: pytest.MonkeyPatch, day: str, old: bool) -> None:
    raw = load().raw | {"debian": {"packages": day}}
    found = [line for line in cli.past_support(ROOT, raw, TODAY) if "Debian's packages" in line]
    wanted = f"Debian's packages of {day}: an update was due by 2026-11-22"
    assert found == ([wanted] if old else [])


def test_our_own_files_can_be_read_and_name_what_is_there() -> None:
    for one in tomllib.loads((cli.ASSETS / "osv-scanner.toml").read_text())["IgnoredVulns"]:
        assert one["ignoreUntil"] and one["reason"].strip()
        for path in re.findall(r"\b(?:charts|tools|tests)/[\w./-]+\.(?:patch|py)", one["reason"]):
            assert (ROOT / path).is_file(), f"{one['id']}: {path}"
