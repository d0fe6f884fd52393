"""The bucket of the logs, if the contract has one: each namespace's pods below its name, for as long as it states."""

from __future__ import annotations

from typing import Any


def bucket(contract: dict[str, Any]) -> dict[str, Any] | None:
    """The logs' bucket, in the form of the contract's other buckets; None if logs are not kept."""
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
    """The buckets of the contract, including the logs' bucket."""
    own = bucket(contract)
    return [*contract["storage"]["buckets"], *([own] if own else [])]
