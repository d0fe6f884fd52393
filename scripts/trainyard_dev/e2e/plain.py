"""A member's plain manifests: applied, awaited, and removed; and the report of a job's first rank."""

import json
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from trainyard.paths import ROOT
from trainyard.policy import fill
from trainyard.shell import run
from trainyard_dev.e2e import jobs
from trainyard_dev.e2e.context import NAMESPACE, Context, member
from trainyard_dev.e2e.recorder import CheckError, require

RUN_S, WAIT_S, POLL_S = 480, 60, 2.0  # a job may wait until others leave its GPUs
RESULT = "result "  # begins the line in which a stand-in's first rank reports its results
ENDS_WELL = ("Complete", "Completed", "Succeeded")
ENDS = (*ENDS_WELL, "Failed", "Error", "Aborted", "Terminated")
Object = dict[str, Any]
Objects = list[Object]


def served(context: Context) -> bool:
    """Whether the API server fills in manifests; elsewhere, `trainyard adopt` does.

    Raises:
        CheckError: it could, but the chart has no policies for it.
    """
    kind = "mutatingadmissionpolicies.v1.admissionregistration.k8s.io"
    if context.kubectl("get", kind, check=False).returncode:
        return False
    made = context.kubectl("get", kind, f"{fill.PREFIX}pods", check=False).returncode == 0
    require(made, f"the API server serves {fill.KIND}, and the release has none")
    return True


def send(
    context: Context, objects: Objects, *, fills: bool, files: Iterable[Path] = (), verb: str = "apply"
) -> list[str]:
    """`kubectl apply` as a member, of unchanged files or of objects; returns the created objects' names from kubectl.

    Args:
        fills: the API server fills in; else the output of `trainyard adopt` is sent.
    """
    flags = [word for file in files for word in ("-f", str(file))]
    text = ""
    if not flags or not fills:
        flags, text = ["-f", "-"], json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        text = text if fills else adopted(context, text)
    said = context.kubectl(
        *member(NAMESPACE), verb, "-n", NAMESPACE, *flags, "-o", "name", check=False, input=text or None
    )
    require(said.returncode == 0, f"it was refused: {' '.join(said.stderr.split())[:500]}")
    return said.stdout.split()


def adopted(context: Context, text: str) -> str:
    """The output of `trainyard adopt` for manifests, with the cluster's contract. CheckError: it failed."""
    with tempfile.TemporaryDirectory() as folder:
        site, file = Path(folder) / "contract.json", Path(folder) / "manifests.json"
        site.write_text(json.dumps(context.contract))
        file.write_text(text)
        argv = [
            str(ROOT / "bin" / "trainyard"),
            "adopt",
            str(file),
            "--contract",
            str(site),
            "--team",
            NAMESPACE,
            "-o",
            "-",
        ]
        done = run(argv, check=False, timeout=WAIT_S)
    require(done.returncode == 0, f"trainyard adopt exited with {done.returncode}: {(done.stderr or '')[-500:]}")
    return done.stdout


def apply(context: Context, objects: Objects, figures: dict[str, Any]) -> None:
    """Sends the objects, and records what was filled in."""
    fills = served(context)
    figures["filled_in_by"] = filled_by(fills)
    send(context, objects, fills=fills)
    if fills:
        for one in objects:
            name = one["metadata"]["name"]
            figures[f"filled_{name}"] = filled_in(context, _resource(one), name)


def filled_by(fills: bool) -> str:
    """The component that fills in, for the report."""
    return "API server" if fills else "trainyard adopt"


def filled_in(context: Context, resource: str, name: str) -> str:
    """The API server's note on what it filled into an object. CheckError if there is none."""
    meta = context.kubectl.get(resource, name, "-n", NAMESPACE)[0]["metadata"]
    words: str = meta.get("annotations", {}).get(fill.TOLD, "")
    require(words, f"{resource} {name} does not show what was filled in")
    return words


def _resource(obj: dict[str, Any]) -> str:
    return f"{obj['kind'].lower()}.{obj['apiVersion'].partition('/')[0]}" if "/" in obj["apiVersion"] else obj["kind"]


def remove(context: Context, objects: Objects) -> None:
    """Removes the objects, with their children."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    flags = ("--ignore-not-found", "--timeout=60s", "--cascade=foreground")
    context.kubectl("delete", "-n", NAMESPACE, "-f", "-", *flags, check=False, input=listed)


def wait_for(
    context: Context,
    name: str,
    state: Callable[[dict[str, Any]], str | None],
    seen: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """The object once it has succeeded; `seen` is called at each poll. CheckError: it failed, or is late."""
    end = time.monotonic() + RUN_S
    while True:
        found = context.kubectl.get(*name.split("/"), "-n", NAMESPACE)[0]
        now = state(found) or ""
        seen()
        if now in ENDS_WELL:
            return found
        if now in ENDS:
            own = [pod for pod in context.kubectl.get("pods", "-n", NAMESPACE)
                   if pod["metadata"]["name"].startswith(found["metadata"]["name"])]  # fmt: skip
            words = jobs.last_words(context, own, NAMESPACE)
            raise CheckError(f"{name} ended {now}: {words}; {json.dumps(found.get('status'))[:400]}")
        if time.monotonic() > end:
            reasons = [reason for pod in context.kubectl.get("pods", "-n", NAMESPACE) if (reason := waits(pod))]
            why = "; ".join(reasons[:2]) or "no pod waits"
            raise CheckError(f"{name} is {now or 'not begun'} after {RUN_S} s; {why}")
        time.sleep(POLL_S)


def complete(job: Object) -> str | None:
    """The outcome of a job, by its conditions."""
    conditions = job.get("status", {}).get("conditions") or []
    held = {one.get("type") for one in conditions if one["status"] == "True"}
    return next((one for one in ("Failed", "Complete", "Succeeded") if one in held), None)


def pods(context: Context, selector: str) -> Objects:
    """The team's pods with a label."""
    return context.kubectl.get("pods", "-n", NAMESPACE, "-l", selector)


def waits(pod: dict[str, Any]) -> str:
    """The scheduler's reason why a pod has no node."""
    conditions = pod["status"].get("conditions") or []
    return next(
        (c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), ""
    )


def log(context: Context, name: str) -> str:
    """The log of an object's pod."""
    return context.kubectl("logs", "-n", NAMESPACE, name).stdout.strip()


def first_rank(context: Context, found: Objects) -> Object:
    """The report of a stand-in job's first rank: from its termination message, else from a log."""
    for pod in found:
        for status in pod["status"].get("containerStatuses") or []:
            message = (status.get("state", {}).get("terminated") or {}).get("message", "")
            if message.startswith(RESULT):
                return json.loads(message.removeprefix(RESULT))
    for pod in found:
        said = context.kubectl("logs", "-n", NAMESPACE, pod["metadata"]["name"], check=False).stdout
        for line in said.splitlines():
            if line.startswith(RESULT):
                return json.loads(line.removeprefix(RESULT))
    raise CheckError(f"none of {', '.join(one['metadata']['name'] for one in found) or 'no pods'} reports a result")
