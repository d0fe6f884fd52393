"""Rendering of values to the contract that the chart publishes; the chart's own templates define the defaults.

Without values nothing is rendered: `defaults.yaml` in this folder is that rendering, and `make verify` compares it.
"""

import functools
import json
import shutil
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import yaml

from trainyard import programs
from trainyard.contract import renamed
from trainyard.errors import TrainyardError, UsageError
from trainyard.paths import CHART
from trainyard.shell import CommandError, run

DEFAULTS = Path(__file__).with_name("defaults.yaml")
TEMPLATE = "templates/contract.yaml"
PARTS = ("serving", "notebooks")  # parts whose own values are in the contract
RELEASE, NAMESPACE = "trainyard", "trainyard-system"
Raw = dict[str, Any]


def defaults() -> Raw:
    """The contract that the chart publishes without values; it has no team."""
    found: Raw = yaml.safe_load(DEFAULTS.read_text())
    return found


def text() -> str:
    """Expected text of `defaults.yaml`: the chart's defaults, rendered now. Raises UsageError."""
    head = "# The contract of the chart's defaults, as it publishes it. Written by `bin/trainyard chart contract`.\n"
    return head + yaml.safe_dump(of_values({}, str(CHART)), sort_keys=False, width=120)


def of_values(values: Raw, where: str) -> Raw:
    """The contract that the chart publishes with these values on top of its own.

    Raises:
        UsageError: Helm is missing, the chart can't be rendered with them, or they use an old name.
    """
    for rename, old in renamed.used(values):
        hint = "let `trainyard values migrate FILE` rewrite your values"
        raise UsageError(rename.sentence(old), where=where, hint=hint)
    found: Raw = yaml.safe_load(_rendered(json.dumps(values, sort_keys=True, default=str), where))
    return found


@functools.lru_cache(maxsize=16)
def _rendered(values: str, where: str) -> str:
    """Renders the published text with Helm, from a chart that has one template, its helpers, and its parts' values."""
    try:
        helm = programs.find("helm")
    except TrainyardError as error:
        hint = "pass the rendered contract: kubectl get configmap trainyard-contract -n trainyard-system -o yaml"
        raise UsageError(f"rendering a contract from values needs Helm: {error.what}", where=where, hint=hint) from None
    with tempfile.TemporaryDirectory(prefix="contract-") as folder:
        chart = Path(folder) / RELEASE
        (chart / "templates").mkdir(parents=True)
        meta = yaml.safe_load((CHART / "Chart.yaml").read_text())
        (chart / "Chart.yaml").write_text(yaml.safe_dump({key: meta[key] for key in ("apiVersion", "name", "version")}))
        own_values = (CHART / "values.yaml").read_text()
        for part in PARTS:
            defaults_of = (CHART.parent / part / "values.yaml").read_text()
            own_values += f"\n{part}:\n{textwrap.indent(defaults_of, '  ')}"
        (chart / "values.yaml").write_text(own_values)
        for file in [*CHART.glob("templates/_*.tpl"), *CHART.parent.glob("*/umbrella/_*.tpl"), CHART / TEMPLATE]:
            shutil.copy(file, chart / "templates")
        own = Path(folder) / "values.json"
        own.write_text(values)
        try:
            done = run([helm, "template", RELEASE, chart, "--namespace", NAMESPACE, "-s", TEMPLATE, "-f", own])
        except CommandError as error:
            said = next((line for line in error.output.splitlines() if line.startswith("Error")), error.what)
            raise UsageError(
                f"the chart can't be rendered with these values: {said}", where=where, hint="correct the values"
            ) from None
    published: str = yaml.safe_load(done.stdout)["data"]["contract.yaml"]
    return published
