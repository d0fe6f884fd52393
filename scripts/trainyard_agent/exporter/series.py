"""Prometheus' text format, and every series with its type and help text.

The writer is our own: the platform's image has no client library, and the format needs only two things, escaped
labels and one block per name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Characters of a label's value, since members write some of them. Kubernetes' names are never longer, and must not be
# cut: two pods with the same name in a page would make the rules that join by it fail, for all teams.
LONGEST = 253
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

JOB = ("team", "queue", "job", "kind", "person")
# name -> (type, labels, help)
ALL: dict[str, tuple[str, tuple[str, ...], str]] = {
    "trainyard_job_info": (
        "gauge", (*JOB, "phase"),
        "A job: waiting, queued, starting, running, ending, stopped, succeeded or failed.",
    ),
    "trainyard_pod_job": (
        "gauge", ("namespace", "pod", *JOB), "The job that a pod belongs to; of pods that have not ended.",
    ),
    "trainyard_job_gpus_asked": ("gauge", JOB, "GPUs that a job which is not over asks for, at its full size."),
    "trainyard_job_gpus_held": ("gauge", JOB, "GPUs of the nodes that a job's pods are placed on."),
    "trainyard_job_wait_seconds": (
        "gauge", (*JOB, "reason"),
        "How long a job has been waiting: for quota, queue, gpus, nodes, gang, image or other. None while it runs.",
    ),
    "trainyard_job_deadline_timestamp_seconds": (
        "gauge", ("team", "job", "kind"), "When a job that has begun is ended if it is not over.",
    ),
    "trainyard_gang_members": (
        "gauge", ("team", "queue", "job", "state"),
        "Members of a job's gang: least and wanted as asked for, running and pending as they are.",
    ),
    "trainyard_gang_phase": ("gauge", ("team", "queue", "job", "phase"), "A gang's phase, as Volcano has it."),
    "trainyard_queue_resource": (
        "gauge", ("queue", "team", "resource", "what"),
        "Of a queue: guarantee, deserved, capability, and what is allocated. Cores, bytes, counts.",
    ),
    "trainyard_queue_state": (
        "gauge", ("queue", "parent", "state"), "The state of a queue, as Volcano has it, and the queue it is part of.",
    ),
    "trainyard_queue_waiting_jobs": ("gauge", ("queue",), "Gangs without a place, by queue."),
    "trainyard_quota": (
        "gauge", ("team", "quota", "resource", "what"), "A team's quotas: hard and used. Cores, bytes, counts.",
    ),
    "trainyard_runs_total": (
        "counter", ("team", "pipeline", "outcome"), "Runs that ended while this was looking, by how they ended.",
    ),
    "trainyard_run_seconds": ("gauge", ("team", "pipeline"), "How long a pipeline's last run took that ended."),
    "trainyard_claim_bytes": (
        "gauge", ("team", "claim", "what"), "A volume claim: asked, and used as measured by the file server.",
    ),
    "trainyard_node_gpus": (
        "gauge", ("node", "pool", "model", "what"), "GPUs of a node: capacity, allocatable, and held by pods.",
    ),
    "trainyard_backup_last_success_timestamp_seconds": (
        "gauge", (), "When a backup last succeeded; 0: it was tried, and never did. None where backups are off.",
    ),
    "trainyard_certificate_expiry_timestamp_seconds": (
        "gauge", ("name",), "When a certificate ends: what a server shows, or a webhook's authority.",
    ),
    "trainyard_key_age_seconds": ("gauge", ("name",), "How long a team has had its key of the object store."),
    "trainyard_exporter_objects": ("gauge", ("kind",), "Objects that are counted."),
    "trainyard_exporter_seen_timestamp_seconds": (
        "gauge", ("kind",), "When the API server last said something about objects of a kind; every minute or so.",
    ),
    "trainyard_exporter_look_seconds": ("gauge", (), "How long it took to make all of this out of the objects."),
}  # fmt: skip


@dataclass
class Page:
    """Lines by series, joined at the end in the order that the format requires."""

    lines: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, values: Iterable[str], number: float) -> None:
        """Adds one sample; `values` are the values of the series' labels, in their order."""
        labels = ",".join(
            [f'{label}="{escaped(value)}"' for label, value in zip(ALL[name][1], values, strict=True) if value]
        )
        self.lines.setdefault(name, []).append(
            f"{name}{{{labels}}} {plain(number)}" if labels else f"{name} {plain(number)}"
        )

    def text(self) -> str:
        """The whole page. A series without samples is left out."""
        found = []
        for name, (kind, _, about) in ALL.items():
            if name in self.lines:
                found += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *self.lines[name]]
        return "\n".join([*found, ""])


def escaped(value: str) -> str:
    """A label's value, escaped for use between quotes and cut to the maximum length."""
    short = value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
    return short.translate(_ESCAPED) if '"' in short or "\\" in short or "\n" in short else short


def plain(number: float) -> str:
    """A number as text, whole numbers without a decimal point."""
    return str(int(number)) if number == int(number) else repr(round(number, 3))
