"""Builds runs from Workflow objects: one step for each task, whatever nodes Argo made of it."""

import base64
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from trainyard.errors import TrainyardError
from trainyard.pipelines.runs import memoization, sound
from trainyard.pipelines.runs.model import EXIT_CODE, OVER, Object, Run, Step
from trainyard.times import when

# Argo's phases in trainyard's terms; a pod's details of "pending" are shown separately.
STATES = {
    "": "waiting",
    "Pending": "pending",
    "Running": "running",
    "Succeeded": "done",
    "Skipped": "skipped",
    "Omitted": "omitted",
    "Failed": "failed",
    "Error": "error",
}
WORKERS = {"Pod", "Skipped", "Suspend", "HTTP", "Plugin"}  # types of nodes that do work, unlike groups
INSIDE = "run"  # the task in a memoization wrapper, see trainyard.pipelines.translate.memoization
EXIT = ".onExit"
# A team may write anything into its Workflows: at most so many bytes of nodes (etcd holds less), nested so deep.
LARGEST, DEEPEST = 32 << 20, 100
LONGEST = 2000  # characters of a loop's item
AT_EXIT = "at exit"
ATTEMPT = re.compile(r"\((\d+)\)$")
ARTIFACT = re.compile(r"at:(.*),sha:[0-9a-f]*")  # an item that is an artifact
AFTER = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++(?=\.|\s|\)|$|&|\|)")  # tasks in Argo's `depends`
TURN = re.compile(r"each\((\d+):(.*)\)", re.DOTALL)  # of a loop, with its item: the task that translate.loops makes


def run(workflow: Object) -> Run:
    """The run of a Workflow object. Raises TrainyardError if its nodes can't be read."""
    workflow = sound.workflow(workflow)
    meta, found = workflow["metadata"], of(workflow)
    steps = [*_begun(meta["name"], found), *_planned(workflow, found)]
    phase = str(workflow.get("status", {}).get("phase") or "Pending")
    if phase in OVER:  # a controller that was told to stop leaves steps as they were
        end = when(workflow["status"].get("finishedAt"))
        steps = [s if s.ended else replace(s, state="stopped", message="", finished=s.finished or end) for s in steps]
    return Run(meta["name"], meta.get("namespace", ""), phase, tuple(steps), workflow)


def of(workflow: Object) -> dict[str, Object]:
    """Argo's nodes by id, even if the controller compressed them because there are many."""
    status = workflow.get("status") or {}
    if status.get("nodes"):
        return memoization.unwrap(status["nodes"])
    if packed := status.get("compressedNodes"):
        try:
            with gzip.open(io.BytesIO(base64.b64decode(packed))) as unpacked:
                text = unpacked.read(LARGEST + 1)
            if len(text) > LARGEST:
                raise ValueError
            return memoization.unwrap(sound.nodes(json.loads(text)))
        except (ValueError, OSError, EOFError, zlib.error, RecursionError):
            raise TrainyardError(f"the nodes of run {workflow['metadata']['name']} can't be unpacked") from None
    if status.get("offloadNodeStatusVersion"):
        raise TrainyardError(
            f"the controller keeps the nodes of run {workflow['metadata']['name']} in a database",
            hint="ask your platform engineer; trainyard's own controller keeps them in the Workflow",
        )
    return {}


def _begun(run: str, found: dict[str, Object]) -> list[Step]:
    """Rows of the existing nodes, in the order in which they began."""
    retries = {node["name"]: node for node in found.values() if node["type"] == "Retry"}
    attempts: dict[str, list[Object]] = {}
    for node in found.values():
        if (name := ATTEMPT.sub("", node["name"])) != node["name"] and name in retries:
            attempts.setdefault(name, []).append(node)
    tried = {node["id"] for nodes in attempts.values() for node in nodes if node["type"] in WORKERS}
    full = {node.get("boundaryID") for node in found.values()}
    rows = []
    for node in found.values():
        if node["id"] in tried:
            continue
        tries = sorted(attempts.get(node["name"], []), key=_attempt)
        if node["type"] == "Retry":
            if not tries or tries[-1]["type"] in WORKERS:  # otherwise the retry is of a group: its tasks are the rows
                rows.append(_step(run, node, tries, found))
        elif node["type"] in WORKERS or _hit(node):
            rows.append(_step(run, node, [node] if node["type"] == "Pod" else [], found))
        elif _alone(node, full):
            rows.append(_step(run, node, [], found))
    return sorted(rows, key=lambda step: (step.started or datetime.max.replace(tzinfo=UTC), step.name))


def _step(run: str, node: Object, tries: list[Object], found: dict[str, Object]) -> Step:
    last = tries[-1] if tries else node
    path, item = _turns(_path(run, node, found))
    state = STATES.get(node.get("phase", ""), "pending")
    message = last.get("message") or node.get("message") or ""
    if state == "running" and last.get("phase") == "Pending":
        state = "pending"
    elif state == "running" and last.get("phase") in ("Failed", "Error"):
        message = f"to be retried: {EXIT_CODE.sub('', message)}"
    elif _hit(last):
        state, tries, message = "cached", [], ""
    elif state == "done":
        message = ""
    return Step(
        id=node["id"],
        path=path,
        state=state,
        message=message,
        nodes=tuple(each["id"] for each in tries),
        started=when(node.get("startedAt")),
        finished=when(node.get("finishedAt")),
        outputs=last.get("outputs") or {},
        template=node.get("templateName", ""),
        item=item,
    )


def _planned(workflow: Object, found: dict[str, Object]) -> Iterator[Step]:
    """Rows for the outermost graph's tasks that haven't begun."""
    status = workflow.get("status", {})
    if status.get("finishedAt"):
        return
    spec = status.get("storedWorkflowTemplateSpec") or workflow.get("spec", {})
    templates = {template.get("name"): template for template in spec.get("templates") or []}
    begun = {node.get("displayName", "") for node in found.values()}
    begun |= {shown.partition("(0:")[0] for shown in begun if "(0:" in shown}
    tasks = ((templates.get(spec.get("entrypoint")) or {}).get("dag") or {}).get("tasks", [])
    others = {other["name"] for other in tasks}
    for task in tasks:
        name = task["name"]
        if name not in begun and f"{name}(0)" not in begun:
            after = task.get("dependencies") or AFTER.findall(task.get("depends", ""))
            yield Step(name, (name,), "waiting", after=tuple(dict.fromkeys(a for a in after if a in others)))
    for group in (templates.get(spec.get("onExit")) or {}).get("steps") or []:
        for step in group:
            if step["name"] not in begun:
                yield Step(step["name"], (AT_EXIT, step["name"]), "waiting")


def _path(run: str, node: Object, found: dict[str, Object]) -> tuple[str, ...]:
    """Names from the outermost graph inwards, without the workflow itself and without wrappers of caches."""
    parts: list[str] = []
    for _ in range(DEEPEST):
        if node["name"] == run and parts:
            break
        around = found.get(node.get("boundaryID", ""))
        inside = node.get("displayName") == INSIDE
        if not (inside and around and around["type"] == "DAG" and "memoizationStatus" in around):  # a cache's wrapper
            parts.append(_label(run, node))
        if not around:
            break
        node = around
    return tuple(reversed(parts))


def _turns(path: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """A path with iteration numbers in place of loops, `loop.0/step`, as in local runs, and the iterations' items."""
    parts: list[str] = []
    items: list[str] = []
    for part in path:
        if parts and (turn := TURN.fullmatch(part)):
            parts[-1] += f".{turn[1]}"
            items.append(ARTIFACT.sub(r"\1", turn[2][:LONGEST].replace('\\"', '"')))
        else:
            parts.append(part)
    return tuple(parts), ", ".join(items)


def _hit(node: Object) -> bool:
    """Whether the node was served from the cache."""
    return bool((node.get("memoizationStatus") or {}).get("hit"))


def _label(run: str, node: Object) -> str:
    shown = node.get("displayName") or node["name"]
    if node["name"] == run:
        return node.get("templateName") or shown
    return AT_EXIT if shown == run + EXIT else shown


def _attempt(node: Object) -> int:
    number = ATTEMPT.search(node["name"])
    return int(number[1]) if number else 0


def _alone(node: Object, full: set[str | None]) -> bool:
    """Whether a group has a row of its own: it failed, or is running, and no step within it can show that."""
    if node["type"] == "StepGroup" or node.get("phase") not in ("Failed", "Error", "Pending", "Running"):
        return False
    return bool(node.get("boundaryID")) and node["id"] not in full and not node.get("children")
