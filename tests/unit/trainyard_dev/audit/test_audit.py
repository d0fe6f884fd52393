"""`trainyard audit`: what is planted is found, with and without a database; what was not asked is named and counts."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.audit import cli, held, report, sources
from trainyard_dev.audit.report import CLEAN, FOUND, UNASKED, Report

TODAY = datetime.date(2026, 11, 23)
ARGO = "github.com/argoproj/argo-workflows/v3"
RAW: dict[str, Any] = {
    "tools": {"argo": {"module": ARGO, "version": "v3.7.2", "packages": [{"path": ".", "name": "argoexec"}]}},
    "images": {"argoexec": {"ref": "docker.io/trainyard/argoexec:0.1.0", "bin": ["argoexec"], "stage": "check"}},
}
Ask = Callable[..., Report]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one image that installs urllib3 and one set of Go binaries."""
    for folder in ("images/platform", "tools/argo"):
        (tmp_path / folder).mkdir(parents=True)
    plant(tmp_path, urllib3="2.7.0", argo="v3.7.18")
    return tmp_path


def plant(root: Path, *, urllib3: str = "", argo: str = "") -> None:
    """Pins these versions."""
    if urllib3:
        pins = f"urllib3=={urllib3} \\\n    --hash=sha256:00\n"
        (root / "images/platform/requirements.txt").write_text(pins)
    if argo:
        (root / "tools/argo/go.mod").write_text(f"module x\n\nrequire {ARGO} {argo}\n")


def silent(url: str, body: bytes | None) -> bytes:
    raise OSError(-2, "Name or service not known")


def knows_nothing(url: str, body: bytes | None) -> bytes:
    return json.dumps({"results": [{} for _ in json.loads(body or b"")["queries"]]}).encode()


def from_go_mod(folder: Path, spec: dict[str, Any]) -> held.Modules:
    return {module: (version, frozenset({f"{module}/workflow"}))
            for module, (version, _) in held._required(folder / "go.mod").items()}  # fmt: skip


@pytest.fixture
def ask(tree: Path) -> Ask:
    """The audit of that tree; nothing answers unless `fetch` does."""

    def collect(*copies: Path, fetch: sources.Fetch = silent, listed: Any = from_go_mod, areas: tuple[str, ...] = (
            "python", "go"), images: Any = lambda: ([], [])) -> Report:  # fmt: skip
        return cli.collect(tree, RAW, areas, copies, cli.Means(fetch, listed, images, TODAY))

    return collect


def shown(found: Report) -> set[tuple[str, str, str]]:
    return {(one.name, one.version, one.advisory.id) for one in found.findings}


def test_urllib3_2_5_0_is_found_where_nobody_can_be_asked(tree: Path, ask: Ask) -> None:
    plant(tree, urllib3="2.5.0")
    found = ask()
    assert found.code == FOUND
    assert {("urllib3", "2.5.0", f"CVE-{number}") for number in ("2025-66418", "2025-66471", "2026-21441")} <= shown(
        found
    )
    assert found.findings[0].places == ("images/platform/requirements.txt",)


def test_argo_3_7_2_is_found_where_nobody_can_be_asked(tree: Path, ask: Ask) -> None:
    plant(tree, argo="v3.7.2")
    found = ask()
    assert found.code == FOUND
    assert (ARGO, "v3.7.2", "CVE-2026-40886") in shown(found)
    lines = list(found.lines())
    line = next(line for line in lines if ARGO in line)
    assert "3.7.14" in line and "tools/argo" in line
    assert lines.index("shipped:") < lines.index(line)


def test_argo_is_found_by_its_go_mod_where_go_can_not_tell_what_it_compiles(tree: Path, ask: Ask) -> None:
    plant(tree, argo="v3.7.2")

    def offline(folder: Path, spec: dict[str, Any]) -> held.Modules:
        raise TrainyardError("the module can't be had")

    found = ask(listed=offline)
    assert (ARGO, "v3.7.2", "CVE-2026-40886") in shown(found)
    assert any("what tools/argo compiles" in one.what for one in found.open)


def test_what_is_mended_leaves_the_question_that_nobody_answered(ask: Ask) -> None:
    found = ask()
    assert not found.findings
    assert found.code == UNASKED
    assert "osv.dev, for 2 packages of Python and Go: Name or service not known" in "\n".join(found.lines())


def test_all_asked_and_nothing_found_is_clean(ask: Ask) -> None:
    assert ask(fetch=knows_nothing).code == CLEAN


def test_a_database_is_asked_for_every_part_page_by_page(tree: Path, ask: Ask) -> None:
    record = {
        "id": "GHSA-aaaa", "aliases": ["CVE-2027-1"], "summary": "new",
        "affected": [{"package": {"ecosystem": "PyPI", "name": "urllib3"},
                      "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.8.0"}]}]}],
    }  # fmt: skip
    asked: list[dict[str, Any]] = []

    def database(url: str, body: bytes | None) -> bytes:
        if body is None:
            return json.dumps(record).encode()
        queries = json.loads(body)["queries"]
        asked.extend(queries)
        first = [{"next_page_token": "2"} if q["package"]["name"] == "urllib3" else {} for q in queries]
        second = [{"vulns": [{"id": "GHSA-aaaa"}]}]
        return json.dumps({"results": second if "page_token" in queries[0] else first}).encode()

    found = ask(fetch=database)
    assert shown(found) == {("urllib3", "2.7.0", "GHSA-aaaa")}
    assert {(q["package"]["name"], q["version"]) for q in asked} == {("urllib3", "2.7.0"), (ARGO, "3.7.18")}


@pytest.mark.parametrize("answer", [b"<html>", b"{}", b'{"results": []}', b'{"results": 1}'])
def test_an_answer_that_is_none_counts_as_not_asked(ask: Ask, answer: bytes) -> None:
    found = ask(fetch=lambda url, body: answer)
    assert found.code == UNASKED and "can't be read" in found.open[0].why


@pytest.mark.parametrize(("image", "shipped"), [
    ({}, True), ({"stage": "cluster"}, False), ({"local": True}, False), ({"bin": []}, False),
])  # fmt: skip
def test_what_sites_install_is_told_first_and_apart(
    tree: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, image: dict[str, Any], shipped: bool
) -> None:
    plant(tree, argo="v3.7.2")
    monkeypatch.setitem(RAW, "images", {"argoexec": RAW["images"]["argoexec"] | image})
    lines = list(ask().lines())
    assert ("shipped:" in lines, "test cluster, tools and development only:" in lines) == (shipped, not shipped)


@pytest.mark.parametrize(("day", "old"), [("2026-11-20", False), ("2026-10-24", False), ("2026-10-23", True)])
def test_packages_of_images_grow_old(ask: Ask, monkeypatch: pytest.MonkeyPatch, day: str, old: bool) -> None:
    monkeypatch.setitem(RAW, "debian", {"suite": "bookworm", "packages": day})
    found = ask(areas=("support",))
    assert shown(found) == ({("debian packages", day, "old-packages")} if old else set())
    RAW["debian"]["packages"] = "soon"
    with pytest.raises(TrainyardError, match="debian\\.packages is soon, which is no day"):
        ask(areas=("support",))


def osv_copy(folder: Path, day: str = "2026-11-20", **affected: Any) -> Path:
    """A copy of a database that knows one hole of our argo and one of another Python package."""
    folder.mkdir()
    ranges = [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "3.7.19"}]}]
    for name, entry in {
        "GO-2026-1": {"package": {"ecosystem": "Go", "name": ARGO}, "ranges": ranges} | affected,
        "PYSEC-1": {"package": {"ecosystem": "PyPI", "name": "flask"}, "ranges": []},
    }.items():
        record = {"id": name, "modified": f"{day}T00:00:00Z", "affected": [entry]}
        (folder / f"{name}.json").write_text(json.dumps(record))
    (folder / "index.json").write_text("[]")
    return folder


def test_a_copy_of_a_database_is_asked_too(tmp_path: Path, ask: Ask) -> None:
    found = ask(osv_copy(tmp_path / "copy"))
    assert shown(found) == {(ARGO, "v3.7.18", "GO-2026-1")}
    assert [one.what.split(",")[0] for one in found.open] == ["osv.dev"]


def test_an_old_copy_counts_as_not_asked(tmp_path: Path, ask: Ask) -> None:
    found = ask(osv_copy(tmp_path / "copy", day="2026-08-21"), fetch=knows_nothing)
    assert [one.why for one in found.open] == ["the copy is 94 days old, 14 are allowed"]


def test_a_hole_in_a_package_that_is_not_compiled_in_is_none(tmp_path: Path, ask: Ask) -> None:
    elsewhere = {"ecosystem_specific": {"imports": [{"path": f"{ARGO}/server"}]}}
    here = {"ecosystem_specific": {"imports": [{"path": f"{ARGO}/server"}, {"path": f"{ARGO}/workflow"}]}}
    windows = {"ecosystem_specific": {"imports": [{"path": f"{ARGO}/workflow", "goos": ["windows"]}]}}
    assert not ask(osv_copy(tmp_path / "a", **elsewhere)).findings
    assert ask(osv_copy(tmp_path / "b", **here)).findings
    assert not ask(osv_copy(tmp_path / "c", **windows)).findings


def test_a_fix_that_is_no_version_is_shown_as_it_is(tmp_path: Path, ask: Ask) -> None:
    events = [{"introduced": "0"}, {"fixed": "RELEASE.2027"}]
    found = ask(osv_copy(tmp_path / "copy", ranges=[{"type": "SEMVER", "events": events}]))
    assert any(ARGO in line and "RELEASE.2027" in line for line in found.lines())


def test_a_folder_without_advisories_is_refused(tmp_path: Path, ask: Ask) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrainyardError, match="no advisory lies there"):
        ask(tmp_path / "empty")


def accept(monkeypatch: pytest.MonkeyPatch, **further: str) -> None:
    entry = {"id": "GO-2026-5148", "package": ARGO, "until": TODAY + datetime.timedelta(1), "why": "a rule", **further}
    monkeypatch.setattr(report, "acceptances", lambda: [report.Acceptance(**entry)])


@pytest.mark.parametrize(("further", "stays"), [
    ({}, False), ({"until": TODAY}, True), ({"package": "other"}, True), ({"where": "images/"}, True),
    ({"where": "tools/argo"}, False),
])  # fmt: skip
def test_a_finding_is_accepted_by_name_until_its_day(
    tree: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch, further: dict[str, Any], stays: bool
) -> None:
    plant(tree, argo="v3.7.13")
    accept(monkeypatch, **further)
    found = ask(fetch=knows_nothing)
    assert (found.code == FOUND) == stays
    assert bool(found.accepted) != stays, "what is accepted is reported, with the reason"


def test_an_acceptance_without_a_reason_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "accepted.yaml"
    file.write_text("accepted: [{id: CVE-1, package: a, until: 2027-01-01, why: ' '}]")
    with pytest.raises(TrainyardError, match="CVE-1 has no reason"):
        report.acceptances(file)


def test_our_own_files_can_be_read_and_name_what_is_there() -> None:
    for one in report.acceptances():
        for path in re.findall(r"\b(?:tools|tests)/[\w./-]+\.(?:patch|py)", one.why):
            assert (ROOT / path).is_file(), f"{one.id}: {path}"
