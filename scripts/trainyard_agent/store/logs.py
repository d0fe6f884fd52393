"""The bucket of the logs, where the contract has one: each namespace's pods below its name, for as long as it says."""

from __future__ import annotations

from typing import Any


def bucket(contract: dict[str, Any]) -> dict[str, Any] | None:
    """It, as the contract names its other buckets; None where logs are not kept."""
    logs = contract.get("logs")
    if not logs:
        return None
    return {
        "name": logs["bucket"],
        "access": "read",
        "teams": "logs",
        "versioning": False,
        "expireDays": logs["retentionDays"],
        "noncurrentDays": 0,
    }


def all_buckets(contract: dict[str, Any]) -> list[dict[str, Any]]:
    """The buckets of the contract, and that of the logs."""
    own = bucket(contract)
    return [*contract["storage"]["buckets"], *([own] if own else [])]
