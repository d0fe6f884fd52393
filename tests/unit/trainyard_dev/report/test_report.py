"""The report's model, files, page, JUnit and console text."""

from __future__ import annotations

import base64
import json
import math
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from trainyard.errors import TrainyardError
from trainyard_dev.report import Check, Gpu, Picture, Run, Span, console, html, junit, plain, writer
from trainyard_dev.report.sample import sample

NASTY = "<script>alert('x')</script> & \"q\" $title ${css} \x1b[31mred\x00"
FILES = {"report.html", "timeline.svg", "junit.xml", "summary.json"}
VOID = {"meta", "link", "br", "hr", "img", "input"}


def run_of(*checks: Check) -> Run:
    return Run(100.0, 160.0, {}, {}, "build", Gpu("mock", "4 GPUs"), checks=list(checks))


def passed(name: str = "a.b") -> Check:
    return Check(name, "title", "passed", seconds=1.5)


class Page(HTMLParser):
    """Checks that tags are balanced and collects tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def nasty_run() -> Run:
    run = run_of(
        Check("a.one", NASTY, "failed", NASTY, 1.0, {NASTY: NASTY, "devices": {NASTY: [NASTY]}, "accuracy": NASTY}),
        Check("a.two", NASTY, "skipped", NASTY),
    )
    run.versions = {NASTY: NASTY}
    run.images = {NASTY: NASTY}
    run.environment = {NASTY: NASTY}
    run.mocks = [NASTY]
    run.cause = NASTY
    run.image_source = NASTY
    run.gpu = Gpu("mock", NASTY)
    run.spans = [Span(NASTY, NASTY, 100, 120, NASTY), Span("train.x", "queued", 130, 131, NASTY)]
    return run


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
    count = 0

    def full(handle: int) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer.os, "fsync", full)
    with pytest.raises(TrainyardError, match="No space left on device"):
        writer.write(run_of(passed("c.d")), tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_an_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainyardError, match="can't be written"):
        writer.write(run_of(passed()), tmp_path / "file" / "e2e")


# ---- page


@pytest.mark.parametrize("run", [sample(), sample(failing=True, warm=True), run_of(), nasty_run()])
def test_page_is_balanced_and_self_contained(run: Run) -> None:
    text = html.render(run)
    page = Page(text)
    names = [name for name, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "object"} & set(names)
    for _, attributes in page.tags:
        for key, value in attributes.items():
            assert not key.startswith("on")
            if key in ("href", "src"):
                assert value is not None
                assert value.startswith("#") or value in FILES
    assert "url(http" not in text
    assert "@import" not in text
    assert names.count("h1") == 1
    assert all("scope" in a for n, a in page.tags if n == "th")


def test_every_value_is_escaped() -> None:
    text = html.render(nasty_run())
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "$title" in "".join(Page(text).text)


def test_page_says_what_matters() -> None:
    text = html.render(sample(failing=True))
    plain_text = " ".join("".join(Page(text).text).split())
    for wanted in ("15 passed, 2 failed, 1 skipped", "Probable cause:", "What was mock / not tested here", "CUDA"):
        assert wanted in plain_text
    assert "storage.csi was skipped: its image needs a registry" in plain_text
    assert 'title="GPU-00c0ffee-0000-4000-8000-000000000000">GPU-00c0ffee<' in text
    assert "prefers-color-scheme" in text
    assert 'name="viewport"' in text


def test_long_figures_are_folded() -> None:
    text = html.render(sample())
    assert "<details><summary>9/0 tasks in gang unschedulable" in text
    assert console.render(sample(), width=100).count("0/4 nodes") <= 1


def test_mock_gpus_are_always_named() -> None:
    assert "CUDA" in html.render(run_of(passed()))
    real = run_of(passed())
    real.gpu = Gpu("real", "8 of H200")
    assert "Nothing: every part ran for real" in html.render(real)


def test_a_run_without_checks_does_not_look_passed() -> None:
    text = html.render(run_of())
    assert '<header class="failed">' in text
    assert "proved nothing" in text


def test_pictures_are_drawn_in_the_page_and_told_elsewhere(tmp_path: Path) -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><text>é</text></svg>'
    run = run_of(Check("a.b", "t", "passed", figures={"evidence": Picture(NASTY, svg), "runs": 3}), passed("c.d"))
    writer.write(run, tmp_path)
    page = Page((tmp_path / "report.html").read_text())
    [image] = [attributes for name, attributes in page.tags if name == "img"]
    head, _, body = str(image["src"]).partition(",")
    assert (head, base64.b64decode(body).decode()) == ("data:image/svg+xml;base64", svg), "as an image it runs nothing"
    assert image["alt"] == plain.clean(NASTY)
    assert "<script" not in (tmp_path / "report.html").read_text()
    for text in ((tmp_path / "summary.json").read_text(), (tmp_path / "junit.xml").read_text(), console.render(run)):
        assert "alert('x')" in text
        assert "<svg" not in text
    assert "Drawings" not in html.render(run_of(passed()))


# ---- JUnit


def test_junit_reads_back() -> None:
    run = sample(failing=True)
    root = ET.fromstring(junit.render(run))
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
    root = ET.fromstring(junit.render(nasty_run()))
    assert "<script>" in (root.findtext(".//failure") or "")
    ET.fromstring(junit.render(run_of()))


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


def test_each_training_shows_its_device_and_back_end() -> None:
    """On the page in columns of their own, on the terminal before other figures."""
    page = html.render(sample())
    for name in ("accuracy", "device", "backend", "devices"):
        assert f'role="columnheader">{name.capitalize()}<' in page, name
    lines = console.render(sample(), width=140).splitlines()
    for check, backend in (("train.pytorchjob", "gloo"), ("train.tfjob", "parameter-server"), ("train.cpu", "none")):
        assert f'data-label="Backend" class="devices"><div>{backend}</div>' in page, backend
        (line,) = [line for line in lines if line.startswith(check)]
        assert f"device cpu, backend {backend}, bar" in line
    assert page.count('data-label="Device" class="devices"><div>cpu</div>') == 5
