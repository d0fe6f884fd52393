"""What looks at the version in service, or changes it, is never remembered from an earlier run."""

from __future__ import annotations

from trainyard.paths import ROOT
from trainyard.pipelines.ir import compile


def test_gate_and_serving_are_done_anew_in_every_run() -> None:
    pipeline = compile.pipeline(ROOT / "pipelines" / "serve.py")
    cached = {place.task.name: place.task.cache for place in pipeline.tasks()}
    assert cached["gate-model"] is cached["serve-model"] is False
    assert cached["prepare"] is cached["pytorch-job"] is cached["register-model"] is True
