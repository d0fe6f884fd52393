"""The report's page: balanced, self-contained, escaped, and complete."""

import base64
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from report_runs import FILES, NASTY, Page, nasty_run, passed, run_of

from trainyard_dev.report import Check, Gpu, Picture, Run, console, html, plain, writer
from trainyard_dev.report.sample import sample


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
    assert "<details><summary>9/0 tasks in gang unschedulable" in html.render(sample())
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
    outputs = "".join(ET.parse(tmp_path / "junit.xml").getroot().itertext())
    for text in ((tmp_path / "summary.json").read_text(), outputs, console.render(run)):
        assert "alert('x')" in text
        assert "<svg" not in text
    assert "Drawings" not in html.render(run_of(passed()))


def test_each_training_shows_its_device_and_back_end() -> None:
    """On the page among the folded figures, on the terminal before other figures."""
    page = html.render(sample())
    lines = console.render(sample(), width=140).splitlines()
    for check, backend in (("train.pytorchjob", "gloo"), ("train.tfjob", "parameter-server"), ("train.cpu", "none")):
        assert re.search(rf"<dt>backend</dt><dd>\s*{backend}\s*</dd>", page), backend
        (line,) = [line for line in lines if line.startswith(check)]
        assert f"device cpu, backend {backend}, bar" in line
    assert len(re.findall(r"<dt>device</dt><dd>\s*cpu\s*</dd>", page)) == 5
