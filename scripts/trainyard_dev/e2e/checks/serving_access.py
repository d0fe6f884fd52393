"""Access to a model in service: from outside with a key, from another team never, and for a person with a browser."""

import math
import tempfile
import time
from pathlib import Path
from typing import Any

from trainyard_dev import browser
from trainyard_dev.e2e import asking, runs
from trainyard_dev.e2e.context import NAMESPACE, OTHER, SETTLE, Context, way
from trainyard_dev.e2e.recorder import require
from trainyard_dev.e2e.sites import served
from trainyard_dev.e2e.sites.served import MODEL
from trainyard_dev.report.photo import photo

ELSEWHERE = "shop"  # a namespace of no team; no policy in it limits its pods
REVOKED_S = 150.0  # the kubelet updates a changed ConfigMap within about a minute
Stroke = list[tuple[float, float]]  # points of a square with side 1


def keys(context: Context, figures: dict[str, Any]) -> None:
    """Requests from this machine, which is not a cluster node, to a node's port."""
    first, _ = served.begin(context)
    key, url = _opened(context, first)
    asked = {"no key": "", "a wrong key": "ty-wrong", "the key": key}
    figures |= {name: asking.post(url, key=value)[0] for name, value in asked.items()}
    require([figures[name] for name in asked] == [401, 401, 200], f"asked from outside: {figures}")
    began = time.monotonic()
    other = served.serve(context, first, "--key", "--revoke-keys")
    while asking.post(url, key=key)[0] != 401:
        require(time.monotonic() - began < REVOKED_S, f"a revoked key is still accepted after {REVOKED_S:.0f} s")
        time.sleep(2)
    figures["revoked after s"] = round(time.monotonic() - began)
    status, said = _patiently(url, other)
    require(status == 200, f"the new key gets status {status}: {said}")
    _closed(context)


def strangers(context: Context, figures: dict[str, Any]) -> None:
    """Access by network, and by permissions."""
    served.begin(context)
    figures["from another team"] = reached(context, OTHER)
    figures["from the team"] = reached(context, NAMESPACE)
    require(figures["from another team"] == "closed", f"another team's pod reaches the server: {figures}")
    require(figures["from the team"] == "open", f"the team's own pod does not reach it: {figures}")
    before = served.deployment(context)["metadata"]["generation"]
    for words in (("list",), ("rollback", MODEL), ("stop", MODEL)):
        code, out, said = runs.trainyard(context, "serve", *words, of=OTHER, check=False)
        require(
            code != 0 and "forbidden" in (out + said).lower(), f"a member of {OTHER} ran `serve {words[0]}`: {said}"
        )
    require(served.deployment(context)["metadata"]["generation"] == before, "another team's member changed the server")


def reached(context: Context, namespace: str) -> str:
    """open or closed: the connection from a new pod of a namespace to the model."""
    pod = context.pod("serving-way", f"{SETTLE}; {way(f'{served.NAME}.{NAMESPACE}.svc', 80)}")
    return context.run_pod(pod, namespace=namespace)[1].split()[-1]


def page(context: Context, figures: dict[str, Any]) -> None:
    """Drawn as a person would: with the mouse, and a key typed in, on the page at a node's port."""
    _, second = served.begin(context)
    key, url = _opened(context, second)
    _patiently(url, key)
    with browser.window(width=760, height=560) as window:
        window.open(url.removesuffix("predict"))
        window.fill("#key", "ty-wrong")
        window.click("#lock button")
        window.wait_text("This key is not taken.")
        window.fill("#key", key)
        window.click("#lock button")
        window.wait_text(f"Version {second}")
        with tempfile.TemporaryDirectory(prefix="page-") as folder:
            picture = Path(folder) / "page.png"
            wrong = drawn(window, figures, "the page of the model after a digit was drawn on it", picture)
        require(not window.errors, f"the page's scripts report errors: {window.errors}")
    require(not wrong, f"not recognized: {figures}")
    _closed(context)


def drawn(window: browser.Browser, figures: dict[str, Any], text: str, file: Path) -> list[int]:
    """Draws each digit on the page of a model that has its key, with a photo of one; returns the misread ones."""
    for digit, strokes in DIGITS.items():
        x, y, width, height = window.box("#pad")
        for stroke in strokes:
            window.draw([(x + width * across, y + height * down) for across, down in stroke])
        window.wait("document.querySelectorAll('#bars li').length === 10", "shares of ten digits")
        time.sleep(0.5)  # for the answer to the last stroke
        figures[f"drawn: {digit}"] = window.run("document.getElementById('digit').textContent")
        if digit == SHOWN:
            figures["page"] = photo(text, window.picture(file))
        window.click("#clear")
        window.wait("document.querySelectorAll('#bars li').length === 0", "an empty page")
    return [digit for digit in DIGITS if figures[f"drawn: {digit}"] != f"It is a {digit}."]


def _opened(context: Context, version: str) -> tuple[str, str]:
    """A new key, and the address for predictions at a node's port."""
    key = served.serve(context, version, "--from", "outside", "--by", "nodePort", "--key", "--revoke-keys")
    require(key.startswith("ty-"), f"`serve --key` printed {key[:3]}…, which is not a key")
    return key, f"http://{asking.node(context)}:{served.port(context)}/predict"


def _closed(context: Context) -> None:
    """Stops serving, so that the next check begins without keys."""
    runs.trainyard(context, "serve", "stop", MODEL, timeout=120)
    require(not served.now(context), "the stopped server is still in service")


def _patiently(url: str, key: str) -> tuple[int, Any]:
    """The answer once the pod accepts a new key."""
    end = time.monotonic() + REVOKED_S
    while (said := asking.post(url, key=key))[0] != 200 and time.monotonic() < end:
        time.sleep(2)
    return said


def _arc(x: float, y: float, across: float, down: float, begin: float, end: float) -> Stroke:
    """Part of an ellipse, in degrees from the right, clockwise."""
    turns = [math.radians(begin + (end - begin) * at / 24) for at in range(25)]
    return [(x + across * math.cos(turn), y + down * math.sin(turn)) for turn in turns]


DIGITS: dict[int, list[Stroke]] = {
    0: [_arc(0.5, 0.5, 0.2, 0.32, 0, 360)],
    1: [[(0.52, 0.15 + 0.07 * at) for at in range(11)]],
    3: [[*_arc(0.48, 0.33, 0.18, 0.17, -150, 90), *_arc(0.48, 0.68, 0.2, 0.18, -90, 150)]],
    7: [[(0.25, 0.2), (0.4, 0.2), (0.55, 0.2), (0.72, 0.2), (0.66, 0.36), (0.58, 0.54), (0.5, 0.7), (0.44, 0.86)]],
}
SHOWN = 3
