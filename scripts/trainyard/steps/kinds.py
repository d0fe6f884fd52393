"""The four kinds of job: where they live in the API, and what their status says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.errors import TrainyardError

PATHS = {
    ("kubeflow.org/v1", "PyTorchJob"): "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs",
    ("kubeflow.org/v1", "TFJob"): "/apis/kubeflow.org/v1/namespaces/{}/tfjobs",
    ("kubeflow.org/v1", "MPIJob"): "/apis/kubeflow.org/v1/namespaces/{}/mpijobs",
    ("batch.volcano.sh/v1alpha1", "Job"): "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs",
}
SUCCEEDED, FAILED, RUNNING, WAITING = "Succeeded", "Failed", "Running", "Waiting"
OF_VOLCANO = {"Completed": SUCCEEDED, "Failed": FAILED, "Aborted": FAILED, "Terminated": FAILED, "Running": RUNNING}
# A pod's place in its job, as its operator labels it; the first of these roles speaks for the job.
ROLES = ("master", "chief", "launcher", "main", "worker", "ps")
ROLE_LABELS = ("training.kubeflow.org/replica-type", "volcano.sh/task-spec")
INDEX_LABELS = ("training.kubeflow.org/replica-index", "volcano.sh/task-index")


@dataclass(frozen=True)
class State:
    """How a job stands, and what its controller says about it."""

    phase: str
    message: str = ""

    @property
    def ended(self) -> bool:
        """Is it over, one way or the other?"""
        return self.phase in (SUCCEEDED, FAILED)


def path_of(manifest: Mapping[str, Any]) -> str:
    """Where jobs of this kind are. Raises TrainyardError for another kind."""
    kind = (manifest.get("apiVersion", ""), manifest.get("kind", ""))
    if kind not in PATHS:
        raise TrainyardError(f"a step can't follow a {kind[1]} of {kind[0]}")
    return PATHS[kind].format(manifest["metadata"]["namespace"])


def state_of(job: Mapping[str, Any]) -> State:
    """The state that a job's status describes."""
    status = job.get("status") or {}
    if job.get("kind") == "Job":
        found = status.get("state") or {}
        phase = OF_VOLCANO.get(str(found.get("phase", "")), WAITING)
        return State(phase, str(found.get("message") or found.get("reason") or ""))
    true = {entry["type"]: entry for entry in status.get("conditions") or [] if entry.get("status") == "True"}
    for phase in (SUCCEEDED, FAILED, RUNNING):
        if phase in true:
            return State(phase, str(true[phase].get("message", "")))
    return State(WAITING)


def place_of(pod: Mapping[str, Any]) -> tuple[int, int, str]:
    """A pod's order in its job, and its name there, such as worker-1; sorts the one that speaks for the job first."""
    labels = pod["metadata"].get("labels") or {}
    role = next((labels[name] for name in ROLE_LABELS if labels.get(name)), "pod")
    index = next((labels[name] for name in INDEX_LABELS if labels.get(name, "").isdigit()), "0")
    order = ROLES.index(role) if role in ROLES else len(ROLES)
    return order, int(index), f"{role}-{index}"
