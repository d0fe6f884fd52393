"""Renders charts/model-server: the objects of one model in service."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainyard.chart import helm
from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import ROOT
from trainyard.serving import settings

Object = dict[str, Any]
CHART = ROOT / "charts" / "model-server"
KUBERNETES = "1.34.0"  # version to render for; the chart does not query the cluster
TOLD = "The values don't fit together:"


def objects(values: Mapping[str, Any], namespace: str) -> list[Object]:
    """The objects; the Deployment is annotated with the values from which it was rendered.

    Raises:
        UsageError: the values contradict each other, or the schema rejects one.
        TrainyardError: Helm is missing.
    """
    with tempfile.TemporaryDirectory(prefix="serve-") as folder:
        file = Path(folder) / "values.json"
        file.write_text(json.dumps(values))
        try:
            text = helm.call(
                "template", "model", CHART, "--namespace", namespace, "--kube-version", KUBERNETES, "--values", file
            )
        except TrainyardError as error:
            if not error.where and "is not installed" in error.what:
                raise
            raise UsageError(_plain(error.what), hint="correct the option, or the file of --values") from None
    found = helm.parse(text)
    for obj in found:
        if obj["kind"] in ("Deployment", "InferenceService") and not obj["metadata"]["name"].endswith("-canary"):
            obj["metadata"].setdefault("annotations", {})[settings.NOTE] = settings.text(values)
    return found


def _plain(text: str) -> str:
    """The chart's own message, without Helm's prefix."""
    said = text.partition(TOLD)[2]
    return said.strip().removeprefix("- ").replace(" - ", " ") if said else text
