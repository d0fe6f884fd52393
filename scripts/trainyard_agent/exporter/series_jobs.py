"""Series of jobs, their pods and gangs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainyard_agent.exporter.model import JobKey, Quota
from trainyard_agent.exporter.read_pods import of_run
from trainyard_agent.exporter.series import Page
from trainyard_agent.exporter.standing import QUEUED, STARTING, WAITING, JobState

WAITS = (QUEUED, WAITING, STARTING)


def write(page: Page, found: Mapping[JobKey, JobState], quotas: Iterable[Quota], now: float) -> None:
    """Writes all series of jobs; `now` in seconds since 1970."""
    by_team: dict[str, list[Quota]] = {}
    for quota in quotas:
        by_team.setdefault(quota.team, []).append(quota)
    gangs: set[tuple[str, str, str]] = set()
    for one in found.values():
        labels, phase = one.labels, one.phase()
        page.add("trainyard_job_info", (*labels, phase), 1)
        for pod in one.pods:
            if not pod.seen.over:
                page.add("trainyard_pod_job", (pod.seen.namespace, pod.name, *labels), 1)
        if held := one.held:
            page.add("trainyard_job_gpus_held", labels, held)
        if one.over:
            continue
        page.add("trainyard_job_gpus_asked", labels, one.asked)
        if not held:
            page.add("trainyard_job_gpus_held", labels, 0)
        if deadline := one.deadline:
            page.add("trainyard_job_deadline_timestamp_seconds", (labels[0], labels[2], labels[3]), deadline)
        since = one.since()
        if phase in WAITS and since:
            why = one.why(by_team.get(one.key.namespace, []))
            page.add("trainyard_job_wait_seconds", (*labels, why), max(0.0, now - since))
        _gang(page, one, gangs)


def _gang(page: Page, one: JobState, written: set[tuple[str, str, str]]) -> None:
    """Writes a gang's series. Volcano keeps a gang's status when its pods have gone: skips one without pods or wait.

    Jobs of two kinds may share a name, and these series have no kind: only the first one is written.
    """
    place = (one.key.namespace, one.queue, one.key.name)
    if not one.gang or not (one.live or one.gang_waits) or place in written:
        return
    written.add(place)
    page.add("trainyard_gang_phase", (*place, one.gang.phase), 1)
    wanted = one.job.wanted if one.job and one.job.wanted else len(one.live)
    members = {
        "wanted": max(wanted, one.gang.least) if not of_run(one.gang) else len(one.live),
        "running": sum(pod.phase == "Running" for pod in one.live),
        "pending": sum(pod.phase in ("Pending", "") for pod in one.live),
    }
    for state, count in {"least": one.gang.least, **members}.items():
        page.add("trainyard_gang_members", (*place, state), count)
