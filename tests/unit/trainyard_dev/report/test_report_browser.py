"""The report in a real browser: nothing is wider than the window, and failures come first."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_runs import nasty_run

from trainyard_dev import browser
from trainyard_dev.report import Run, writer
from trainyard_dev.report.sample import sample

pytestmark = pytest.mark.skipif(browser.program() is None, reason="no Chromium: bin/bootstrap --browser installs it")
# What sticks out of its card to the right; what scrolls by itself, and what only programs read, may.
WIDER = """[...document.querySelectorAll('header, section')].flatMap(card => [...card.querySelectorAll('*')].filter(
  one => !one.closest('.scroll, .hidden, thead, pre')
    && one.getBoundingClientRect().right > card.getBoundingClientRect().right
).map(one => one.outerHTML.slice(0, 200)))"""


@pytest.fixture(scope="module")
def page() -> Iterator[browser.Browser]:
    with browser.window() as opened:
        yield opened


@pytest.mark.parametrize("width", [1280, 1000, 400])
@pytest.mark.parametrize("opened", [False, True], ids=["as it opens", "all unfolded"])
@pytest.mark.parametrize("run", [sample(failing=True), nasty_run()], ids=["sample", "odd texts"])
def test_nothing_is_wider_than_the_window(
    page: browser.Browser, tmp_path: Path, run: Run, opened: bool, width: int
) -> None:
    writer.write(run, tmp_path)
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    page.open((tmp_path / "report.html").as_uri())
    if opened:
        page.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.run(WIDER) == []
    assert page.run("document.documentElement.scrollWidth") <= width


def test_failed_checks_come_first_and_figures_are_folded(page: browser.Browser, tmp_path: Path) -> None:
    run = sample(failing=True)
    writer.write(run, tmp_path)
    page.open((tmp_path / "report.html").as_uri())
    first = page.run("['.attacks', '.checks:not(.attacks)'].map(one => document.querySelector(one + ' tr[id]').id)")
    failed = {check.id for check in run.checks if check.status == "failed"}
    assert len(set(first)) == 2 and set(first) <= failed
    assert page.run("[...document.querySelectorAll('details')].filter(one => one.open).length") == 0
