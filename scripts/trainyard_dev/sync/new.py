"""Writer of what a new component lacks: its chart's Chart.yaml and its place in the umbrella."""

from __future__ import annotations

import json
from typing import Any

import yaml

from trainyard.components import registry
from trainyard_dev.sync.tree import Tree
from trainyard_dev.versions import UMBRELLA

CHART = """\
apiVersion: v2
name: {name}
description: {about}
type: application
# The component's own version.
version: {version}
appVersion: v{version}
kubeVersion: "{kube}"
"""
DEPENDENCY = """\
  - name: {name}
    version: {version}
    condition: {name}.enabled
"""


def components(tree: Tree, raw: dict[str, Any]) -> None:
    """Chart.yaml of a component of ours that has none, and the umbrella's dependency on one that it does not name.

    Names what it can't tell: a component without a version.
    """
    if not tree.exists(UMBRELLA):
        return
    meta = yaml.safe_load(tree.read(UMBRELLA))
    known = {one["name"] for one in meta.get("dependencies") or ()}
    for entry in registry.load(tree.root / "components"):
        if entry.name == registry.UMBRELLA:
            continue
        version = raw["components"].get(entry.pin)
        chart = f"charts/{entry.name}/Chart.yaml"
        if entry.is_ours and not tree.exists(chart):
            if version is None:
                tree.leave("versions.yaml", f"components has no {entry.name}", "write its version there")
                continue
            about = json.dumps(entry.about, ensure_ascii=False)
            text = CHART.format(name=entry.name, about=about, version=version, kube=meta["kubeVersion"])
            tree.write(chart, text, f"the chart of {entry.name}")
        if entry.name not in known:
            wanted = version or yaml.safe_load(tree.read(chart))["version"]
            added = DEPENDENCY.format(name=entry.name, version=wanted)
            if "repository" in entry.chart:
                added = added.replace("    condition", f"    repository: {entry.chart['repository']}\n    condition")
            tree.write(UMBRELLA, tree.read(UMBRELLA).rstrip("\n") + "\n" + added, f"depends on {entry.name}")
