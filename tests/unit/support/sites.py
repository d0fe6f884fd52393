"""Contracts of small sites, and a team of the chart's defaults."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from trainyard import contract
from trainyard.contract import Contract, Team

TEAM = Team("vision", ("vision",), ("training-low", "training-normal"), 8, "10Gi")


def of_values(given: dict[str, Any], **more: Any) -> Contract:
    """The contract of values: `given` stands in global.contract, `more` beside it."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"global": {**more, "contract": given}}, file)
        file.flush()
        return contract.load(Path(file.name))


def with_team(**raw: Any) -> Contract:
    """The contract of the chart's defaults with one team, which nobody has to render; `raw` are parts of it."""
    known = contract.defaults()
    return replace(known, teams={"vision": TEAM}, raw={**known.raw, **raw}, source="test")
