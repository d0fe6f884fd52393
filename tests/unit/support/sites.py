"""Contracts of small sites, and a team of the chart's defaults."""

from dataclasses import replace
from typing import Any

from trainyard import contract
from trainyard.contract import Contract, Team

FILL = contract.defaults().raw["teamDefaults"]["fill"]
TEAM = Team("vision", ("vision",), ("training-low", "training-normal"), 8, "10Gi", fill=FILL)


def of_values(given: dict[str, Any], **more: Any) -> Contract:
    """The contract of values: `given` is global.contract, `more` is set in addition."""
    made = contract.render.of_values({"global": {**more, "contract": given}}, "test")
    return contract.read.contract(made, "test")


def with_team(**raw: Any) -> Contract:
    """The contract of the chart's defaults with one team, made without rendering; `raw` are parts of it."""
    known = contract.defaults()
    return replace(known, teams={"vision": replace(TEAM, pools=known.pools)}, raw={**known.raw, **raw}, source="test")
