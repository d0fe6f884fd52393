"""The report's model, files, JUnit and console text."""

import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from report_runs import FILES, nasty_run, passed, run_of

from trainyard.errors import TrainyardError
from trainyard_dev.report import Check, Gpu, Span, console, html, plain, writer
from trainyard_dev.report.sample import sample

# ---- model


@pytest.mark.parametrize("status", ["failed", "skipped"])
@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_skip_or_failure_needs_a_reason(status: str, reason: str) -> None:
    with pytest.raises(TrainyardError, match="without a reason"):
        Check("a.b", "t", status, reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Check("", "t", "passed"),
        lambda: Check("Train.Job", "t", "passed"),
        lambda: Check("a..b", "t", "passed"),
        lambda: Check("a b", "t", "passed"),
        lambda: Check("a", "t", "ok"),  # type: ignore[arg-type]
        lambda: Check("a", "t", "passed", seconds=-1),
        lambda: Check("a", "t", "passed", seconds=math.nan),
        lambda: Span("a", "b", 2, 1),
        lambda: Span("a", "b", math.inf, math.inf),
        lambda: Gpu("fake", ""),  # type: ignore[arg-type]
    ],
)
def test_what_can_not_be_true_is_refused(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TrainyardError):
        make()


def test_verdict() -> None:
    skip = Check("a.skip", "t", "skipped", "no GPU")
    fail = Check("a.fail", "t", "failed", "broke")
    assert run_of(passed(), skip).verdict.ok
    assert str(run_of(passed(), skip, fail).verdict) == "1 passed, 1 failed, 1 skipped"
    assert run_of(passed(), fail).verdict.word == "failed"
    for nothing in (run_of(), run_of(skip)):
        assert not nothing.verdict.ok
        assert nothing.verdict.word == "proved nothing"


def test_two_checks_of_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainyardError, match=r"a\.b"):
        writer.write(run_of(passed(), passed()), tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---- files


def test_write_puts_every_file_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out" / "e2e"
    paths = writer.write(sample(), out)
    assert {p.name for p in out.iterdir()} == FILES == {p.name for p in paths}
    assert all(p.stat().st_mode & 0o777 == 0o644 for p in paths)


def test_summary_has_the_promised_shape(tmp_path: Path) -> None:
    run = sample(failing=True)
    run.checks.append(Check("odd.figures", "t", "passed", "", 1, {"nan": math.nan, "path": tmp_path, "set": {2, 1}}))
    writer.write(run, tmp_path)
    data = json.loads((tmp_path / "summary.json").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert {"versions", "images", "checks", "image_source", "gpu", "mocks", "environment", "spans"} <= set(data)
    assert all({"id", "status", "reason", "seconds", "figures"} <= set(check) for check in data["checks"])
    by_id = {check["id"]: check for check in data["checks"]}
    assert by_id["train.tfjob"]["status"] == "failed"
    assert by_id["storage.csi"]["reason"]
    assert by_id["odd.figures"]["figures"] == {"nan": "nan", "path": tmp_path.as_posix(), "set": [1, 2]}
    assert data["verdict"] == "failed"
    assert data["failed"] == 2
    assert data["gpu"]["kind"] == "mock"


def test_a_failed_write_keeps_the_earlier_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.write(run_of(passed()), tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    whole = Path.write_text

    def full(path: Path, *text: str, **more: str) -> int:
        if path.name == "timeline.svg":
            raise OSError(28, "No space left on device")
        return whole(path, *text, **more)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(TrainyardError, match="No space left on device"):
        writer.write(run_of(passed("c.d")), tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainyardError, match="cannot write the report"):
        writer.write(run_of(passed()), tmp_path / "file" / "e2e")


def test_junit_reads_back() -> None:
    run = sample(failing=True)
    root = ET.fromstring(html.junit(run))
    assert root.tag == "testsuites"
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("18", "2", "1")
    assert [s.get("name") for s in root] == [
        "cluster",
        "install",
        "train",
        "gang",
        "nodes",
        "storage",
        "teams",
        "policies",
        "attack",
        "upgrade",
        "airgap",
        "uninstall",
    ]
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("skipped") == str(len(suite.findall("testcase/skipped")))
        assert float(suite.get("time", "x")) == pytest.approx(sum(float(c.get("time", "x")) for c in cases), abs=0.01)
    failure = root.find(".//testcase[@name='train.tfjob']/failure")
    assert failure is not None
    assert failure.get("message") == "accuracy 0.411 is below the bar of 0.90 after 3 epochs"
    assert "<step 1200 loss=nan & lr=0.1>" in (failure.text or "")
    skipped = root.find(".//testcase[@name='storage.csi']/skipped")
    assert skipped is not None
    assert skipped.get("message") == "its image needs a registry"


def test_junit_stays_xml_with_control_characters() -> None:
    assert "<script>" in (ET.fromstring(html.junit(nasty_run())).findtext(".//failure") or "")
    ET.fromstring(html.junit(run_of()))


# ---- console


def test_console_ends_with_the_verdict_and_fits() -> None:
    text = console.render(sample(failing=True), width=80)
    lines = text.splitlines()
    assert "15 passed, 2 failed, 1 skipped" in lines
    assert lines.index("15 passed, 2 failed, 1 skipped") < next(
        i for i, line in enumerate(lines) if line.startswith("Probable cause:")
    )
    assert all(len(line) <= 80 for line in lines)
    assert "accuracy 0.411" in text
    assert "Probable cause: train.tfjob" in text
    assert "\x1b" not in text


def test_console_colour_and_nasty_text() -> None:
    assert "\x1b[31mfailed" in console.render(sample(failing=True), colour=True)
    assert "\x1b" not in console.render(nasty_run())
    assert "nothing was proved" in console.render(run_of()).splitlines()[-2]


# ---- small conversions


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.42, "0.42 s"),
        (8.26, "8.3 s"),
        (9.96, "10 s"),
        (47.4, "47 s"),
        (119.7, "2 min 00 s"),
        (3720, "1 h 02 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert plain.duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.92341, "0.923"),
        (4, "4"),
        (True, "yes"),
        ([1, "b"], "1, b"),
        ([], "none"),
        ({"a": [1]}, "a: 1"),
        (118.4, "118"),
        (2500.7, "2501"),
        (1765432, "1,765,432"),
    ],
)
def test_figure(value: object, text: str) -> None:
    assert plain.figure(value) == text
