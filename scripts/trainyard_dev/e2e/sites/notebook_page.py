"""A person at the notebooks' hub, in a real browser: logs in, chooses a size, opens JupyterLab, and runs cells."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard_dev.browser import Browser
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.sites.person import fill_in
from trainyard_dev.report.model import Picture
from trainyard_dev.report.photo import photo

START_S, CELL_S = 300.0, 120.0
AGAIN_S = 15.0
SHIFT = 8
NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
CELLS = f"[...document.querySelectorAll({json.dumps(f'{NOTEBOOK} .jp-CodeCell')})]"


@dataclass
class NotebookWindow:
    """One window of one person.

    Args:
        hub: its public address.
    """

    page: Browser
    hub: str
    email: str
    password: str

    def log_in(self) -> None:
        """Goes from the hub's address through the issuer to the choice of a notebook, or to the running one."""
        self.page.open(self.hub)
        fill_in(self.page, self.email, self.password)
        self.page.wait(f"location.href.startsWith({json.dumps(self.hub)}) && document.readyState === 'complete'",
                       "the way back to the hub", START_S)  # fmt: skip

    def start(self, profile: str = "small") -> float:
        """Chooses a size and waits for JupyterLab; returns the seconds."""
        began = time.monotonic()
        self.choose(profile)
        self.wait_lab()
        return round(time.monotonic() - began, 1)

    def choose(self, profile: str) -> None:
        """Requests a notebook of this size; while another is ending the hub offers no choice."""
        spawn = f"{self.hub}/hub/spawn"
        self._until(
            "document.querySelector('#profile') !== null", "the choice of a size", lambda: self.page.open(spawn)
        )
        self.page.run(f"document.querySelector('#profile').value = {json.dumps(profile)}")
        self.page.click("form[action*=spawn] [type=submit]")

    def stop(self) -> None:
        """Ends the notebook on the hub's page, if one runs."""
        self.page.open(f"{self.hub}/hub/home")
        self.page.wait("document.querySelector('#start') !== null", "the hub's page")
        runs = "!!(document.querySelector('#stop') || {}).offsetParent"
        # A click before the page's scripts are loaded does nothing.
        self._until(f"!{runs}", "the end of the notebook", lambda: self.page.click("#stop"))

    def wait_lab(self) -> None:
        """Waits until JupyterLab is loaded, with its launcher or what was open."""
        shown = "document.querySelector('.jp-LauncherCard, .jp-Notebook') !== null"
        gone = "document.querySelector('#jupyterlab-splash') === null"
        self.page.wait(f"location.pathname.includes('/lab') && {shown} && {gone}", "JupyterLab", START_S)

    def at_work(self) -> None:
        """Ensures a running notebook with its cells in front, even after a check that ended it or failed."""
        if not (self.page.run(f"{CELLS}.length") and self.answers()):
            self.stop()
            self.start()
            self.new_notebook()

    def answers(self) -> bool:
        """Whether the notebook accepts this window; the page stays the same when its content is gone."""
        status = json.dumps(f"/user/{self.email}/api/status")
        return bool(self.page.run(f"fetch({status}).then(said => said.ok).catch(() => false)"))

    def new_notebook(self) -> None:
        """Opens an empty JupyterLab, and a new notebook by its card in the launcher."""
        self.page.open(f"{self.hub}/user/{self.email}/lab?reset")
        self.wait_lab()
        card = '.jp-LauncherCard[data-category="Notebook"]'  # a launcher that is still being drawn ignores a click
        self._until(f"{CELLS}.length > 0", "a notebook with a cell", lambda: self.page.click(card))
        self.page.wait_text("| Idle", START_S)  # a cell that is run before its kernel is ready is lost

    def _until(self, there: str, what: str, act: Callable[[], None]) -> None:
        """Calls `act`, repeatedly every AGAIN_S, until an expression of the page is true. Raises CheckError."""
        end = time.monotonic() + START_S
        while not self.page.run(there):
            require(time.monotonic() < end, f"{what} does not come, the page shows: {self.page.text[:300]}")
            act()
            with suppress(TrainyardError):
                self.page.wait(there, what, AGAIN_S)

    def cell(self, code: str, seconds: float = CELL_S) -> str:
        """Types code into the last cell, runs it with Shift+Enter, and returns its output when it has ended."""
        at = int(self.page.run(f"{CELLS}.length")) - 1
        selector = f"{NOTEBOOK} .jp-CodeCell[data-next] .cm-content"
        self.page.run(f"{CELLS}.forEach((one, at) => one.toggleAttribute('data-next', at === {at}))")
        self.page.click(selector)
        self.page.fill(selector, code)
        self.page.key("Enter", 13, SHIFT)
        prompt = f"({CELLS}[{at}].querySelector('.jp-InputPrompt') || {{}}).innerText || ''"
        self.page.wait(f"/^\\[\\d+\\]/.test(({prompt}).trim())", f"the end of the cell {code[:60]!r}", seconds)
        return str(self.page.run(f"{CELLS}[{at}].querySelector('.jp-OutputArea').innerText"))

    def says(self, code: str, due: str, seconds: float = CELL_S) -> str:
        """Like `cell`. Raises CheckError if the output lacks a text."""
        said = self.cell(code, seconds)
        require(due in said, f"the cell {code[:80]!r} lacks {due!r}, and says: {said[-600:]}")
        return said

    def seen(self, text: str, file: Path) -> Picture:
        """A picture of the window, for the report."""
        return photo(text, self.page.picture(file))
