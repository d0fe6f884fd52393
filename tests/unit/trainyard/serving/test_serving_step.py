"""Which image a step of a pipeline gives to the version that it serves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainyard.pipelines.steps import models
from trainyard.serving import settings, versions

NOTES = {versions.VERSION: "v1", versions.SOURCE: "s3://runs/vision/models/digits/v1"}
NEXT = versions.Served("v2", "sha256:2", "s3://runs/vision/models/digits/v2", "server-torch:1")


class Jobs:
    """One Deployment, and what it is changed by."""

    namespace = "vision"

    def __init__(self, **noted: str) -> None:
        pod = {"initContainers": [{"name": "model", "args": []}], "containers": [{"name": "server", "image": "now:1"}]}
        self.found = {
            "metadata": {"name": "model-digits", "annotations": {settings.NOTE: json.dumps(noted)}},
            "spec": {"template": {"metadata": {"annotations": NOTES}, "spec": pod}},
        }
        self.patch: list[dict[str, Any]] = []

    def ask(self, method: str, path: str, body: Any = None, *_: Any) -> Any:
        if method == "PATCH":
            self.patch = body
        return self.found


@pytest.mark.parametrize(
    ("noted", "image"),
    [({}, "server-torch:1"), ({"runtime": "model-server"}, "server-torch:1"), ({"runtime": "triton"}, "now:1")],
)
def test_another_server_keeps_its_image(noted: dict[str, str], image: str) -> None:
    jobs: Any = Jobs(**noted)
    assert models._change(jobs, "digits", NEXT).version == "v1"
    [said] = [one["value"] for one in jobs.patch if one["path"].endswith("/image")]
    assert said == image
