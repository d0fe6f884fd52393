"""Writer of what a new component lacks: its chart's Chart.yaml and its place in the umbrella."""

from __future__ import annotations

import json
from typing import Any

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


def components(tree: Tree, raw: dict[str, Any]) -> None:
    """Chart.yaml of a component of ours that has none, and the umbrella's dependency on one that it does not name.

    Names what it can't tell: a component without a version.
    """
    if not tree.exists(UMBRELLA):
        return
    meta = tree.data(UMBRELLA)
    known = {one["name"] for one in meta["dependencies"]}
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
            part = {"name": entry.name, "version": str(version or tree.data(chart)["version"])}
            part |= {"repository": entry.chart["repository"]} if "repository" in entry.chart else {}
            meta["dependencies"].append(part | {"condition": f"{entry.name}.enabled"})
            tree.note(UMBRELLA, f"depends on {entry.name}")
    tree.put(UMBRELLA, meta)
