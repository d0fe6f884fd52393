"""The whole way from a notebook: cells train, register and serve a model, and a digit is drawn on its page."""

from __future__ import annotations

import re
import time
from typing import Any

from trainyard_dev import browser
from trainyard_dev.e2e import asking, runs, served
from trainyard_dev.e2e.checks.serving_access import drawn
from trainyard_dev.e2e.context import NAMESPACE
from trainyard_dev.e2e.login_site import ADA, PREFIX
from trainyard_dev.e2e.notebook_page import Desk
from trainyard_dev.e2e.notebook_site import Site
from trainyard_dev.e2e.recorder import had, require

TITLE = "from a notebook's cells: train, register and serve; a digit drawn on the model's page is recognised"
PIPELINES = "/opt/trainyard/app/trainyard/tree/pipelines"
# No accuracy is 2: the first version is registered, and its member puts it into service.
TRAIN = f"!cp -r {PIPELINES} . && trainyard submit pipelines/serve.py {' '.join(served.SMALL)} -p epochs=4 -p minimum=2"
SERVE = "!trainyard serve digits --from outside --by nodePort --key --scale-by none --replicas 1 --cpu 100m"
BY = "trainyard.io/submitted-by"


def digit(there: Site, desk: Desk, figures: dict[str, Any]) -> None:
    """Three cells and a second window. Raises CheckError."""
    context = there.context
    desk.at_work()
    try:
        began = time.monotonic()
        desk.says(TRAIN, "succeeded", served.RUN_S)
        figures["trained and registered after s"] = round(time.monotonic() - began, 1)
        desk.says("!trainyard models list", served.MODEL, served.READY_S)
        began = time.monotonic()
        key = re.search(r"ty-[A-Za-z0-9_-]+", desk.cell(SERVE, served.READY_S))
        figures["in service after s"] = round(time.monotonic() - began, 1)
        key = had(key, "`trainyard serve` printed no key")
        desk.says("!trainyard serve list", served.MODEL)
        figures["cells"] = desk.seen("cells that train, register and serve", there.picture("serve"))
        by = (served.deployment(context)["metadata"].get("annotations") or {}).get(BY, f"{PREFIX}{ADA}")
        require(by == f"{PREFIX}{ADA}", f"the model in service in {NAMESPACE} is of {by}")
        url = f"http://{asking.node(context)}:{served.port(context)}/"
        with browser.window(width=760, height=560) as window:
            window.open(url)
            window.fill("#key", key[0])
            window.click("#lock button")
            window.wait_text("Version ", served.READY_S)
            wrong = drawn(window, figures, "a digit drawn on the page of the model", there.picture("digit"))
        require(not wrong, f"not recognised: {wrong}")
    finally:
        runs.trainyard(context, "serve", "stop", served.MODEL, check=False)
