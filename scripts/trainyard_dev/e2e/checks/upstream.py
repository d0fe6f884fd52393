"""Upstream's own examples by plain `kubectl` as a member: read from the pinned modules, adapted, run to their end."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trainyard.kinds.registry import KINDS
from trainyard_dev import tools
from trainyard_dev.corpus import picked
from trainyard_dev.corpus.picked import Picked
from trainyard_dev.corpus.sources import GROUPS
from trainyard_dev.e2e import plain
from trainyard_dev.e2e.checks import computed
from trainyard_dev.e2e.context import NAMESPACE, Context
from trainyard_dev.e2e.entry import GPUS, VOLUMES, check
from trainyard_dev.e2e.recorder import Figures, possible, require
from trainyard_dev.e2e.sites import stand_in

WORKFLOW = "workflow"
CODE = ("policies", "scripts/trainyard/policy/fill", "scripts/trainyard_dev/corpus/stand-in", "images/trainer",
        "manifests/cluster")  # fmt: skip
BESIDE = {WORKFLOW: ("pipeline", "argoexec"), "mpijob": ("kubectl-delivery",)}
OURS = "/trainyard/"
LABELS = {picked.OPERATOR: "training.kubeflow.org/job-name", picked.VOLCANO: "volcano.sh/job-name",
          picked.ARGO: "workflows.argoproj.io/workflow"}  # fmt: skip
RESOURCES = {"vcjob": "jobs.batch.volcano.sh", WORKFLOW: "workflows.argoproj.io"}


def title(kind: str) -> str:
    """The title of the check."""
    words = {"vcjob": "Volcano Job", WORKFLOW: "Workflow"}
    name = words.get(kind) or next(one.kind for one in KINDS if one.kind.lower() == kind)
    return f"{len(picked.of_kind(kind))} of upstream's examples of a {name} run unchanged"


def arrive(context: Context, figures: Figures, kind: str) -> None:
    """Every selected example of a kind, one after the other; its objects are removed, even after a failure."""
    mine = picked.of_kind(kind)
    due, has = max(one.gpus for one in mine), sum(context.gpus.values())
    possible(has >= due, f"it needs {due} GPUs, the cluster has {has}")
    for trainer in sorted({one.trainer for one in mine} - {""}):
        stand_in.make(context, trainer)
    fills = plain.served(context)
    figures["filled_in_by"] = plain.filled_by(fills)
    for one in mine:
        figures[one.name] = _example(context, one, fills)


for one in picked.kinds():
    check(
        f"arrivals.upstream-{one}",
        title=title(one),
        shares={GPUS, VOLUMES},
        images=(*sorted({example.trainer for example in picked.of_kind(one)} - {""}), *BESIDE.get(one, ())),
        inputs=(*CODE, "scripts/trainyard_dev/corpus/picked.py", "versions.yaml"),
    )(lambda context, figures, kind=one: arrive(context, figures, kind))


@dataclass
class _Seen:
    """When a job's first pod ran, in seconds since its submission, and the images of all of its pods."""

    context: Context
    selector: str
    since: float
    started: float | None = None
    images: set[str] = field(default_factory=set)

    def look(self) -> None:
        """Updates both."""
        for pod in plain.pods(self.context, self.selector):
            self.images |= {container["image"] for container in pod["spec"]["containers"]}
            if self.started is None and pod["status"].get("phase") in ("Running", "Succeeded"):
                self.started = time.monotonic() - self.since


def _example(context: Context, one: Picked, fills: bool) -> dict[str, Any]:
    """Submits it and waits for its end; returns its entry for the report."""
    tool, folder = GROUPS[one.group]
    files = [tools.module_dir(tool) / folder / name for name in one.files]
    objects = picked.edited(_objects(files), one.by_hand)
    said: dict[str, Any] = {"file": one.files[-1], "by_hand": [picked.EDITS[name][0] for name in one.by_hand]}
    # A generated name can't be applied.
    verb = "create" if any("generateName" in obj["metadata"] for obj in objects) else "apply"
    since = time.monotonic()
    try:
        made = plain.send(context, objects, fills=fills, files=() if one.by_hand else files, verb=verb)
        resource, _, name = next(word for word in made if word.partition("/")[2].startswith(one.name)).partition("/")
        seen = _Seen(context, f"{LABELS[one.group]}={name}", since)
        if fills:
            said["filled"] = plain.filled_in(context, resource, name)
        found = plain.wait_for(context, f"{resource}/{name}", _state, seen.look)
        seen.look()
        require(seen.started is not None, f"{one.name} has ended, and none of its pods was seen")
        said |= {"started_s": round(seen.started or 0.0), "seconds": round(time.monotonic() - since)}
        strange = {image for image in seen.images if OURS not in image}
        require(not strange, f"{one.name} ran images that the table lacks: {', '.join(sorted(strange))}")
        if one.trainer:
            _computed(context, one, seen.selector, said)
        else:
            said["steps"] = len([node for node in found["status"].get("nodes", {}).values() if node["type"] == "Pod"])
            require(said["steps"], f"{one.name} has ended without a step")
        return said
    finally:
        _remove(context, one, objects)


def _computed(context: Context, one: Picked, selector: str, said: dict[str, Any]) -> None:
    result = plain.first_rank(context, plain.pods(context, selector))
    computed.check(context, result, one.backend, said)
    said |= {"ranks": result["world_size"], "loss": result["loss"]}
    require(said["ranks"] == one.world, f"{one.name}: {said['ranks']} ranks trained together, not {one.world}")


def _objects(files: list[Path]) -> list[dict[str, Any]]:
    found = [obj for file in files for obj in yaml.safe_load_all(file.read_text()) if obj]
    return [json.loads(json.dumps(obj)) for obj in found]  # parts that YAML shares become separate copies


def _state(obj: dict[str, Any]) -> str | None:
    """The end state: from conditions for an operator's job, the state for a Volcano Job, the phase for a Workflow."""
    status = obj.get("status") or {}
    return plain.complete(obj) or (status.get("state") or {}).get("phase") or status.get("phase")


def _remove(context: Context, one: Picked, objects: list[dict[str, Any]]) -> None:
    named = [obj for obj in objects if "name" in obj["metadata"]]
    for obj in named:
        obj["metadata"].pop("namespace", None)
    if named:
        plain.remove(context, named)
        return
    resource = RESOURCES[one.kind]
    for found in context.kubectl.get(resource, "-n", NAMESPACE):
        if found["metadata"]["name"].startswith(one.name):
            context.kubectl("delete", resource, found["metadata"]["name"], "-n", NAMESPACE, "--wait=false", check=False)
