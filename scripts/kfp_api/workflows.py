"""Runs as Argo keeps them: many as their metadata alone, one whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kfp_api.call import Json
from kfp_api.errors import missing
from kfp_api.ids import Id
from trainyard.errors import TrainyardError
from trainyard.kube import Kube, KubeError
from trainyard.names import SUBMITTER
from trainyard.pipelines.runs import model, nodes
from trainyard.pipelines.runs.model import Run

NOTE = "trainyard.io/kfp"  # annotation: what a Workflow can't say of KFP's run
ARCHIVED = "trainyard.io/archived"  # label
PHASE = "workflows.argoproj.io/phase"
SCHEDULE = "workflows.argoproj.io/cron-workflow"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# Argo's phases in KFP's words. A stopped run has failed, as on KFP's own server: its client waits for no other state.
STATES = {"": "PENDING", "Pending": "PENDING", "Running": "RUNNING", "Succeeded": "SUCCEEDED", "Failed": "FAILED",
          "Error": "FAILED"}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """A run as lists show it, from its metadata."""

    team: str
    name: str
    created: str
    experiment: str
    phase: str
    archived: bool
    schedule: str
    pipeline: str
    submitter: str
    version: str = ""  # of the object: its uid and resourceVersion
    note: Json = field(default_factory=dict)

    @property
    def id(self) -> str:
        """KFP's id."""
        return str(Id(self.team, self.name))

    @property
    def title(self) -> str:
        """The name that its submitter gave it."""
        return str(self.note.get("name") or self.name)

    @property
    def state(self) -> str:
        """KFP's state."""
        return STATES.get(self.phase, "RUNNING")


def note(meta: Json) -> Json:
    """What the service noted on a Workflow; {} for others, and for a note that a member wrote."""
    try:
        found = json.loads((meta.get("annotations") or {}).get(NOTE) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def version(meta: Json) -> str:
    """What is the same only while the object is."""
    return f"{meta.get('uid')}/{meta.get('resourceVersion')}"


def header(meta: Json) -> Header:
    """The header of a Workflow's metadata."""
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    return Header(
        team=meta["namespace"],
        name=meta["name"],
        created=meta.get("creationTimestamp", ""),
        experiment=labels.get(model.EXPERIMENT, ""),
        phase=labels.get(PHASE, ""),
        archived=labels.get(ARCHIVED) == "true",
        schedule=labels.get(SCHEDULE, ""),
        pipeline=labels.get(model.PIPELINE, ""),
        submitter=notes.get(SUBMITTER, ""),
        version=version(meta),
        note=note(meta),
    )


def headers(kube: Kube, *, experiment: str = "", schedule: str = "") -> list[Header]:
    """The runs of a team, with one request and without their nodes; none where the cluster has no Argo."""
    chosen = {model.EXPERIMENT: experiment, SCHEDULE: schedule}
    selector = ",".join(f"{key}={value}" for key, value in chosen.items() if value)
    query = {"labelSelector": selector} if selector else {}
    try:
        # version 0: from the API server's memory
        answer = kube.get(kube.path(model.VERSION, model.RESOURCE), accept=METADATA, resourceVersion="0", **query)
    except KubeError as error:
        if error.status == 404:
            return []
        raise
    return [header(one["metadata"]) for one in answer.get("items") or []]


def find(kube: Kube, name: str) -> Run | None:
    """A run, whole; None if there is none."""
    obj = kube.find(kube.path(model.VERSION, model.RESOURCE, name))
    return read(obj) if obj else None


def read(obj: Json) -> Run:
    """A run of its object; without steps, and with the reason as its message, where they can't be read."""
    try:
        return nodes.run(obj)
    except TrainyardError as error:
        status = {"phase": obj["status"].get("phase", ""), "message": error.what}
        return nodes.run({**obj, "status": status})


def fetch(kube: Kube, name: str) -> Run:
    """A run, whole. Raises RefusalError if there is none."""
    found = find(kube, name)
    if found is None:
        raise missing("run", str(Id(kube.namespace, name)))
    return found


def archive(kube: Kube, name: str, on: bool) -> Any:
    """Marks a run as archived, or removes the mark."""
    change = {"metadata": {"labels": {ARCHIVED: "true" if on else None}}}
    return kube.patch(kube.path(model.VERSION, model.RESOURCE, name), change)
