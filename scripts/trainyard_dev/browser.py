"""A real browser, headless, driven by its own DevTools protocol, to see and do on a page what a person would."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard.shell import run

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
START_S, WAIT_S = 60.0, 60.0
INSTALL_S = 600


def program() -> str | None:
    """The browser's path, or None where there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def missing() -> str:
    """Why no browser can run here; empty when one can. Installs it where the system's packages are available."""
    if not program():
        run([ROOT / "bin" / "bootstrap", "--browser"], check=False, timeout=INSTALL_S)
    return "" if program() else "Chromium is not installed (on Debian, bin/bootstrap --browser installs it)"


class Browser:
    """One window with one page. A wait that times out raises an error with the page's text."""

    def __init__(self, address: str) -> None:
        import websocket  # comes with the Kubernetes client

        self._socket = websocket.create_connection(address, timeout=WAIT_S, suppress_origin=True)
        self._count = 0
        self.errors: list[str] = []  # errors of the page's scripts
        for domain in ("Page", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends one command of the protocol; keeps errors among the events that come meanwhile."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("method") == "Page.javascriptDialogOpening":  # a page that asks before it is left: confirm
                accept = {"id": -1, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
                self._socket.send(json.dumps(accept))
            if said.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(said["params"]["exceptionDetails"].get("exception", {}).get("description")))
            if said.get("id") == self._count:
                if "error" in said:
                    raise TrainyardError(f"the browser rejected {method}: {said['error'].get('message')}")
                found: dict[str, Any] = said["result"]
                return found

    def run(self, script: str) -> Any:
        """Evaluates an expression in the page, promises awaited. Raises TrainyardError when it throws."""
        said = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            thrown = (
                said["exceptionDetails"].get("exception", {}).get("description") or said["exceptionDetails"]["text"]
            )
            raise TrainyardError(f"the page's script failed: {thrown}")
        return said["result"].get("value")

    @property
    def url(self) -> str:
        """URL of the page."""
        return str(self.run("location.href"))

    @property
    def text(self) -> str:
        """Visible text of the page."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def open(self, url: str) -> None:
        """Opens an address and waits until its page is loaded. Raises TrainyardError when it can't be."""
        said = self.call("Page.navigate", url=url)
        if said.get("errorText"):
            raise TrainyardError(f"the browser cannot open the page: {said['errorText']}", where=url)
        self.wait("document.readyState === 'complete'", f"the page {url}")

    def wait(self, condition: str, what: str = "", seconds: float = WAIT_S) -> None:
        """Waits until an expression of the page is true. Raises TrainyardError with what the page shows instead."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(TrainyardError):  # the page is being replaced by another
                if self.run(condition):
                    return
            time.sleep(0.1)
        shown = " ".join(self.text.split())[:600]
        raise TrainyardError(
            f"{what or condition} did not appear within {seconds:.0f} s; the page shows: {shown}", where=self.url
        )

    def wait_text(self, text: str, seconds: float = WAIT_S) -> None:
        """Waits until the page shows a text."""
        self.wait(f"document.body?.innerText.includes({json.dumps(text)})", f"the text {text!r}", seconds)

    def fill(self, selector: str, text: str) -> None:
        """Types a text into a field, key by key as far as the page can tell."""
        found = self._found(selector)
        self.run(f"(field => {{ field.focus(); field.select && field.select(); }})({found})")
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Clicks in the middle of what a selector finds, by the mouse."""
        x, y, width, height = self.box(selector)
        self.draw([(x + width / 2, y + height / 2)])

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Position of an element in the window: x, y, width and height in pixels."""
        place = self._found(selector)
        self.run(f"{place}.scrollIntoView({{block: 'center'}})")
        x, y, width, height = self.run(
            f"(box => [box.x, box.y, box.width, box.height])({place}.getBoundingClientRect())"
        )
        return x, y, width, height

    def _found(self, selector: str) -> str:
        """An expression for what a selector finds, once it is visible and the page is loaded, so it stays in place."""
        expression = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"document.readyState === 'complete' && {expression}?.checkVisibility()", selector)
        return expression

    def draw(self, points: Sequence[tuple[float, float]]) -> None:
        """Presses the mouse at the first point, moves through the others and lets go."""
        (x, y), *rest = points
        self._mouse("mouseMoved", x, y)
        self._mouse("mousePressed", x, y, button="left", clickCount=1)
        for x, y in rest:
            self._mouse("mouseMoved", x, y, button="left")
        self._mouse("mouseReleased", x, y, button="left", clickCount=1)

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name: str, code: int, modifiers: int = 0) -> None:
        """Presses one key, such as `Enter` (13); `modifiers`: 1 Alt, 2 Ctrl, 8 Shift, added up."""
        pressed = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        text = {"text": "\r"} if name == "Enter" and not modifiers & 2 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **pressed, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def picture(self, file: Path) -> Path:
        """Writes a screenshot as PNG."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
        return file

    def close(self) -> None:
        """Ends the connection; the browser ends with its owner."""
        with suppress(Exception):
            self._socket.close()


@contextmanager
def window(*, width: int = 1280, height: int = 900, trusted: str = "") -> Iterator[Browser]:
    """Runs a browser without cookies or history, removed afterwards with all its data.

    Args:
        trusted: SHA-256 of a public key, base64, whose certificates it accepts, as a person could confirm: for those
            of tests, whose authority no machine trusts. Others stay refused.

    Raises:
        TrainyardError: there is no browser, or it doesn't start.
    """
    found = program()
    if not found:
        raise TrainyardError("no browser found", hint="on Debian, install Chromium with bin/bootstrap --browser")
    folder = tempfile.mkdtemp(prefix="trainyard-browser-")
    argv = [
        found, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--no-first-run",
        f"--window-size={width},{height}", "--disable-gpu", "--disable-dev-shm-usage",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
        "--no-proxy-server",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),  # it refuses root otherwise
        *([f"--ignore-certificate-errors-spki-list={trusted}"] if trusted else []), "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": folder}
    )
    browser = None
    try:
        browser = Browser(_page(Path(folder) / "DevToolsActivePort", process))
        yield browser
    finally:
        if browser:
            browser.close()
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _page(file: Path, process: subprocess.Popen[bytes]) -> str:
    """The address of the socket of the browser's only page."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError, ValueError, StopIteration, IndexError):
            port = int(file.read_text().split()[0])
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
                pages = json.loads(answer.read())
            return str(next(one for one in pages if one["type"] == "page")["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise TrainyardError("the browser did not start", where=" ".join(map(str, process.args))[:200])  # type: ignore[arg-type]


def key_digest(certificate: bytes) -> str:
    """The public key's digest of a certificate (PEM), for `trusted` of `window`."""
    import hashlib

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = x509.load_pem_x509_certificate(certificate).public_key()
    return base64.b64encode(
        hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    ).decode()
