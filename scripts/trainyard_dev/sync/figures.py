"""Published figures against the tree: their configuration is one that was measured, in full or by the gate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainyard.errors import TrainyardError
from trainyard.paths import ROOT
from trainyard_dev.bench import configurations, gate, summary
from trainyard_dev.images.packages import Finding
from trainyard_dev.sync.pages import FIGURES


def differences(root: Path) -> Iterator[Finding]:
    """Columns whose configuration in the chart is neither what was measured nor what passed the gate."""
    if not (root / FIGURES).exists():
        return  # a tree that publishes no figures
    try:
        found = summary.read(root / FIGURES)
    except TrainyardError:
        return  # the page that is made of it says so
    for name in summary.unproved(found):
        yield FIGURES, f"{name} says no version or no overlay", "write with what it was measured, or take the row out"
    today, held = configurations.configurations(), gate.passed(root / gate.FILE.relative_to(ROOT))
    for name in summary.outdated(found):
        if held and name not in held:
            continue  # a variant of what the gate measures: the page says that it is stale
        if name not in today or held.get(name) != today[name].digest:
            what = f"{name} is neither the configuration that was measured nor one that passed the gate"
            yield FIGURES, what, "run `bin/trainyard bench gate`, then `bin/trainyard bench page`"
