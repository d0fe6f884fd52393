"""Series of queues, quotas, claims and nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from trainyard_agent.exporter.model import Queue, Quota, Snapshot
from trainyard_agent.exporter.series import Page
from trainyard_agent.usage import gpu_counts


def owners(contract: Mapping[str, Any]) -> dict[str, str]:
    """The owner of each queue: the team of that name, or the owner in the contract."""
    found = {one["name"]: str(one.get("owner") or "") for one in contract.get("queues") or []}
    return found | {team["name"]: team["name"] for team in contract.get("teams") or []}


def write(
    page: Page, seen: Snapshot, teams: set[str], whose: Mapping[str, str], waiting: Iterable[gpu_counts.Gang]
) -> None:
    """Writes all series of the platform; `whose`: the team of each queue."""
    _queues(page, seen.queues, whose, Counter(gang.queue for gang in waiting))
    _quotas(page, [quota for quota in seen.quotas if quota.team in teams])
    for claim in seen.claims:
        if claim.team in teams:
            page.add("trainyard_claim_bytes", (claim.team, claim.name, "asked"), claim.asked)
    _nodes(page, seen)


def _queues(page: Page, queues: Iterable[Queue], whose: Mapping[str, str], waiting: Mapping[str, int]) -> None:
    for queue in queues:
        page.add("trainyard_queue_state", (queue.name, queue.parent, queue.state), 1)
        page.add("trainyard_queue_waiting_jobs", (queue.name,), waiting.get(queue.name, 0))
        for what, amounts in queue.amounts.items():
            for resource, amount in amounts.items():
                page.add("trainyard_queue_resource", (queue.name, whose.get(queue.name, ""), resource, what), amount)


def _quotas(page: Page, quotas: Iterable[Quota]) -> None:
    for quota in quotas:
        for what, amounts in (("hard", quota.hard), ("used", quota.used)):
            for resource, amount in amounts.items():
                page.add("trainyard_quota", (quota.team, quota.name, resource, what), amount)


def _nodes(page: Page, seen: Snapshot) -> None:
    held = gpu_counts.held_by(gpu_counts.Cluster(seen.nodes, [pod.seen for pod in seen.pods], []))
    for name, parts in seen.nodes.items():
        sums: dict[tuple[str, str], Counter[str]] = {}
        for part in parts:
            pool, model, resource = part.place
            counts = sums.setdefault((pool, model), Counter())
            counts["capacity"] += part.capacity
            counts["allocatable"] += part.allocatable
            counts["held"] += held[name, resource]
        for (pool, model), counts in sums.items():
            for what, count in counts.items():
                page.add("trainyard_node_gpus", (name, pool, model, what), count)
