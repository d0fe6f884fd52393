"""Train, register, gate and serve as one pipeline: what is worse stays out, what does not get ready goes back."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from trainyard_dev.e2e import asking, runs, served
from trainyard_dev.e2e.context import Context
from trainyard_dev.e2e.recorder import patience, require
from trainyard_dev.e2e.served import MODEL, PIPELINE, SMALL

FLOW = runs.FLOWS / "served" / "put.py"
BACK_S = 120.0


def gate(context: Context, figures: dict[str, Any]) -> None:
    """Three runs: a better version, a worse one, and one whose file no server can load."""
    served.begin(context)
    run = runs.succeed(context, PIPELINE, *SMALL, "-p", "epochs=5", "-p", "minimum=0.5", timeout=900)
    version = run.output("register-model", "version")
    figures |= {"served by the pipeline": version, "pipeline_seconds": round(run.seconds)}
    require(served.now(context) == version, f"in service is {served.now(context)}, the pipeline registered {version}")
    worse = runs.succeed(context, PIPELINE, *SMALL, "-p", "epochs=1", "-p", "lr=0.0001", timeout=900)
    figures["held back"] = held = worse.output("register-model", "version")
    require(held and held != version, "the worse version was not registered")
    require("serve-model" not in worse.ran, f"the run served a version past the gate: {worse.ran}")
    require(served.now(context) == version, "a version that the gate held back is in service")
    broken = _broken(context)
    failing = runs.end(context, runs.submit(context, FLOW, "-p", f"version={broken}"), timeout=400)
    require(failing.phase == "Failed", f"a version that can't be loaded ended {failing.phase}")
    figures["why it went back"] = failing.why_failed
    require(f"{MODEL}@{version} is back" in failing.why_failed, f"the run says {failing.why_failed!r}")
    wait = patience(BACK_S)
    while (now := served.now(context)) != version:
        wait(f"in service is {now}, not {version}")
    seen = asking.load(context, MODEL, 100, 50)
    require(asking.failed(seen) == 0 and set(asking.versions(seen)) == {version}, f"after it went back: {seen}")
    runs.forget(context, run, worse, failing)


def _broken(context: Context) -> str:
    """A registered version whose file is no model; a member registers it."""
    with tempfile.TemporaryDirectory(prefix="broken-") as folder:
        (Path(folder) / "model.pt").write_bytes(b"no model at all")
        words = ("--framework", "pytorch", "--file", "model.pt", "--input", "image:FP32:-1,784",
                 "--output-tensor", "logits:FP32:-1,10", "--metric", "accuracy=0.99")  # fmt: skip
        _, out, _ = runs.trainyard(context, "models", "register", folder, MODEL, *words, "-o", "json", timeout=180)
    return str(json.loads(out)["version"])
