"""Writes the data for understanding a failed run to ``<out>/diagnosis``, and returns what the rules need.

Nothing here may make the run fail again: a command that fails or hangs leaves a note in its file and in
``problems.txt``. The total time is limited to ``seconds``, and each file to its last ``MOST`` bytes.
Secrets are never read, and values of variables with secret-looking names are hidden.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from trainyard.chart.diagnose import objects
from trainyard.chart.diagnose.cause import probable_cause
from trainyard.chart.diagnose.objects import Collected, Object
from trainyard.components import all_components
from trainyard.kinds import registry

Kubectl = Callable[[list[str]], str]
NodeExec = Callable[[str, list[str]], str]

MOST = 512 * 1024  # bytes of a file
MOST_LOGS = 80  # log files
LINES = 400  # lines of a log
ONE = 20.0  # seconds for a command
CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
ALWAYS = (
    *(part for one in all_components() for part in one.diagnosis.get("pods") or ()), "kube-scheduler", "provision",
)  # fmt: skip
# Volcano jobs by their short name in kubectl.
JOB_KINDS = {"vcjobs" if kind.part == registry.VOLCANO else kind.plural: kind for kind in registry.KINDS}
KINDS = {
    **{name: kind for one in all_components() for name, kind in (one.diagnosis.get("kinds") or {}).items()},
    **{name: kind.resource for name, kind in JOB_KINDS.items()},
    "claims": "persistentvolumeclaims",
    "quotas": "resourcequotas",
    "policy-bindings": "validatingadmissionpolicybindings.admissionregistration.k8s.io",
}
SECRET = re.compile(r"KEY|SECRET|TOKEN|PASSW|CREDENTIAL", re.IGNORECASE)
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def collect(
    kubectl: Kubectl,
    out: Path,
    namespaces: Sequence[str],
    *,
    node_exec: NodeExec | None = None,
    helm: Kubectl | None = None,
    release: tuple[str, str] = ("trainyard", "trainyard-system"),
    checks: Sequence[Any] = (),
    expected: Sequence[str] = (),
    seconds: float = 90.0,
) -> Collected:
    """Collects into ``out/diagnosis`` and returns the collected data.

    ``kubectl`` and ``helm`` accept arguments, return standard output and raise on failure; ``node_exec`` runs a command
    on a node. All pods of ``namespaces`` are included. ``checks`` are the run's checks so far;
    ``expected`` are prefixes of names of objects made to be rejected. Collecting ends after about ``seconds``.
    """
    work = _Work(out / "diagnosis", time.monotonic() + seconds, Collected(expected=tuple(expected)))
    work.found.checks = [c if isinstance(c, dict) else dict(vars(c)) for c in checks]
    _objects(work, kubectl)
    _logs(work, kubectl, set(namespaces) | {release[1]})
    if node_exec:
        for node in work.found.nodes:
            node_name = objects.name(node)
            devices = ["sh", "-c", f"cat {CHECKPOINT} 2>/dev/null || echo 'no device was ever allocated here'"]
            kubelet = ["journalctl", "-u", "kubelet", "--no-pager", "-n", str(LINES)]
            work.command(f"nodes/{node_name}-devices.json", partial(node_exec, node_name, devices))
            work.command(f"nodes/{node_name}-kubelet.txt", partial(node_exec, node_name, kubelet))
    if helm:
        work.command("helm-status.txt", lambda: helm(["status", release[0], "-n", release[1]]))
        work.command("helm-history.txt", lambda: helm(["history", release[0], "-n", release[1]]))
    work.save("problems.txt", "\n".join(work.found.problems) or "none")
    work.save("cause.txt", probable_cause(work.found) or "Nothing wrong was found.")
    return work.found


class _Work:
    """Output folder, deadline, and the data collected so far."""

    def __init__(self, folder: Path, deadline: float, found: Collected) -> None:
        self.folder, self.deadline, self.found = folder, deadline, found

    def ask(self, title: str, question: Callable[[], str]) -> str | None:
        """Output of one command, or None with a note if it failed, hung, or came too late."""
        left = min(ONE, self.deadline - time.monotonic())
        if left <= 0:
            self.found.problems.append(f"{title}: skipped, the diagnosis ran out of time")
            return None
        box: list[str | Exception] = []

        def call() -> None:
            try:
                box.append(question())
            except Exception as error:  # the diagnosis continues after any error
                box.append(error)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(left)
        answer = box[0] if box else TimeoutError(f"no answer within {left:.0f} s")
        if isinstance(answer, Exception):
            self.found.problems.append(f"{title}: {objects.shorten(str(answer) or repr(answer), 400)}")
            return None
        return answer

    def command(self, file: str, question: Callable[[], str]) -> str:
        """Runs a command and saves its output, or a note if there is none."""
        answer = self.ask(file, question)
        self.save(file, answer if answer is not None else f"not collected: {self.found.problems[-1]}")
        return answer or ""

    def save(self, file: str, text: str) -> None:
        raw = text.encode("utf-8", "replace")
        if len(raw) > MOST:
            raw = f"[the first {len(raw) - MOST} bytes were omitted]\n".encode() + raw[-MOST:]
        path = self.folder / file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw.rstrip(b"\n") + b"\n")
        except OSError as error:
            self.found.problems.append(f"{file}: can't be written: {error}")

    def items(self, file: str, question: Callable[[], str]) -> list[Object]:
        """``items`` of a JSON list; empty with a note if the output isn't a list."""
        answer = self.ask(file, question)
        if answer is None:
            return []
        try:
            found = json.loads(answer or "{}").get("items") or []
        except (ValueError, AttributeError):
            self.found.problems.append(f"{file}: the answer is not a JSON list")
            return []
        return [item for item in found if isinstance(item, dict)]


def _objects(work: _Work, kubectl: Kubectl) -> None:
    found = work.found

    def listed(kind: str) -> list[Object]:
        return work.items(kind, lambda: kubectl(["get", kind, "-A", "-o", "json"]))

    found.nodes = work.items("nodes", lambda: kubectl(["get", "nodes", "-o", "json"]))
    found.pods = listed("pods")
    found.events = objects.in_order(listed("events"))
    work.save("events.txt", "\n".join(_event_line(event) for event in found.events) or "no events")
    work.command("pods.txt", lambda: kubectl(["get", "pods", "-A", "-o", "wide"]))
    work.command("nodes.txt", lambda: kubectl(["describe", "nodes"]))
    sick = [_hide(pod) for pod in found.sick_pods()]
    work.save("objects/sick-pods.yaml", yaml.safe_dump_all(sick, sort_keys=False, allow_unicode=True))
    for label, kind in KINDS.items():
        items = listed(kind)
        if items:
            safe = [_hide(item) for item in items]
            work.save(f"objects/{label}.yaml", yaml.safe_dump_all(safe, sort_keys=False, allow_unicode=True))
        if label in JOB_KINDS:
            found.jobs += items
        elif label in ("podgroups", "queues", "claims"):
            setattr(found, label, items)


def _logs(work: _Work, kubectl: Kubectl, namespaces: set[str]) -> None:
    """Saves logs of every container that is not ready, failed or restarted, and of the platform's own parts."""
    wanted: list[tuple[int, str, str, str, bool]] = []
    for pod in work.found.pods:
        space, item = objects.namespace(pod), objects.name(pod)
        well = objects.is_well(pod)
        platform = space in namespaces or any(part in item for part in ALWAYS)
        for container in objects.containers(pod):
            label = str(container.get("name", ""))
            restarted = int(container.get("restartCount") or 0) > 0
            started = not objects.state(container, "waiting") or restarted
            if started and (not well or restarted or platform):
                wanted.append((0 if not well else 1 if restarted else 2, space, item, label, False))
            if restarted:
                wanted.append((0 if not well else 1, space, item, label, True))
    wanted.sort()
    for _, space, item, label, previous in wanted[:MOST_LOGS]:
        arguments = ["logs", "-n", space, item, "-c", label, f"--tail={LINES}", *(["--previous"] if previous else [])]
        key = f"{space}/{item}/{label}" + ("/previous" if previous else "")
        file = f"logs/{space}/{item}.{label}{'.previous' if previous else ''}.log"
        work.found.logs[key] = work.command(file, partial(kubectl, arguments))
    if len(wanted) > MOST_LOGS:
        work.found.problems.append(f"logs: {len(wanted) - MOST_LOGS} of {len(wanted)} were left out")


def _event_line(event: Object) -> str:
    count = event.get("count") or (event.get("series") or {}).get("count") or 1
    times = f" (x{count})" if count > 1 else ""
    head = f"{objects.event_time(event):<19}  {event.get('type', ''):<7}  {event.get('reason', ''):<22}"
    return f"{head}  {objects.target(event)}: {objects.message(event)}{times}"


def _hide(item: Any) -> Any:
    """A copy without managed fields, in which the values of secret-looking variables are hidden."""
    if isinstance(item, list):
        return [_hide(entry) for entry in item]
    if not isinstance(item, dict):
        return item
    if SECRET.search(str(item.get("name", ""))) and isinstance(item.get("value"), str):
        return {**item, "value": "(hidden)"}
    return {name: _hide(value) for name, value in item.items() if name not in ("managedFields", LAST_APPLIED)}
