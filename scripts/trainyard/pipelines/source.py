"""The type of a file to submit: a kfp pipeline, a workflow written with hera, or an Argo Workflow."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.yaml_lines import Document, documents

KFP, HERA, ARGO = "kfp", "hera", "argo"
CHILD = Path(__file__).with_name("hera_child.py")
LONGEST = 120  # seconds a workflow's file may take to import
HERA_IMPORT = re.compile(r"^\s*(?:from\s+hera[.\s]|import\s+hera\b)", re.MULTILINE)
# Kinds that contain a workflow to be run later, and the path to it.
HOLDERS = {
    "WorkflowTemplate": ("spec",),
    "ClusterWorkflowTemplate": ("spec",),
    "CronWorkflow": ("spec", "workflowSpec"),
}
KFP_IMPORT = re.compile(r"^\s*(?:from\s+kfp[.\s]|import\s+kfp\b)", re.MULTILINE)


def kind(path: Path) -> str:
    """The file's type. An unknown one is left to kfp's compiler, which reports what is wrong with it."""
    if path.is_dir() or not path.exists():
        return KFP
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return KFP
    if path.suffix == ".py":
        return HERA if HERA_IMPORT.search(text) and not KFP_IMPORT.search(text) else KFP
    return ARGO if re.search(r"""["']?apiVersion["']?\s*:\s*["']?argoproj\.io/""", text) else KFP


@dataclass(frozen=True)
class RawWorkflow:
    """A Workflow, the line of each of its parts in the file, and notes about how it was derived."""

    workflow: dict[str, Any]
    line: Callable[[tuple[str | int, ...]], int] = lambda path: 1
    note: str = ""


def workflow(path: Path, name: str = "") -> dict[str, Any]:
    """The Workflow object from a hera file or from Argo YAML or JSON. Raises UsageError."""
    return read(path, name).workflow


def read(path: Path, name: str = "") -> RawWorkflow:
    """The Workflow with its lines. From a template or a CronWorkflow, one run of its workflow. Raises UsageError."""
    raw = RawWorkflow(_of_hera(path, name)) if kind(path) == HERA else _of_yaml(path)
    document = raw.workflow
    if document.get("kind") != "Workflow":
        raise UsageError(
            f"it is a {document.get('kind') or 'document without kind'}, not a Workflow",
            where=str(path),
            hint="submit a Workflow, a WorkflowTemplate or a CronWorkflow: each is run once",
        )
    if not isinstance(document.get("spec"), dict):
        raise UsageError("the Workflow has no spec", where=str(path))
    meta = document.setdefault("metadata", {})
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
        raise UsageError("the Workflow has no name", where=str(path), hint="set metadata.generateName")
    return raw


def _of_yaml(path: Path) -> RawWorkflow:
    found = documents(path.read_text(encoding="utf-8"), str(path))
    if len(found) != 1 or not isinstance(found[0].data, dict):
        raise UsageError(f"the file holds {len(found)} documents, not one Workflow", where=str(path))
    [document] = found
    if document.data.get("kind") in HOLDERS:
        return _once(document)
    return RawWorkflow(document.data, lambda place: document.line(*place))


def _once(document: Document) -> RawWorkflow:
    """One run of a template's or CronWorkflow's workflow, as Argo's own command line would make it."""
    held: Any = document.data
    place = HOLDERS[held["kind"]]
    meta = held.get("metadata") if isinstance(held.get("metadata"), dict) else {}
    of = f"{held['kind']} {meta.get('name') or meta.get('generateName') or ''}".rstrip()
    more = (held.get("spec") or {}).get("workflowMetadata") if isinstance(held.get("spec"), dict) else None
    for key in place:
        held = held.get(key) if isinstance(held, dict) else None
    name = str(meta.get("name") or meta.get("generateName") or "").rstrip("-")
    given = {key: more[key] for key in ("labels", "annotations") if isinstance(more, dict) and more.get(key)}
    if meta.get("namespace"):
        given["namespace"] = meta["namespace"]
    made: dict[str, Any] = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": held}
    made["metadata"] = {**({"generateName": f"{name}-"} if name else {}), **given}

    def line(path: tuple[str | int, ...]) -> int:
        return document.line(*(place + path[1:] if path[:1] == ("spec",) else path))

    return RawWorkflow(made, line, f"one run is made of the {of}; nothing is kept for later")


def _of_hera(path: Path, name: str) -> dict[str, Any]:
    """Imports the author's file in a separate process."""
    with tempfile.TemporaryDirectory(prefix="trainyard-hera-") as folder:
        out, report = Path(folder) / "workflow.json", Path(folder) / "report.json"
        argv = [sys.executable, "-W", "ignore", str(CHILD), str(path.resolve()), name, str(out), str(report)]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"the file did not finish within {LONGEST} s", where=str(path)) from None
        if report.exists():
            problem = json.loads(report.read_text())
            where = f"{path}:{problem['line']}" if problem["line"] else str(path)
            raise UsageError(problem["what"], where=where, hint=problem["hint"])
        if done.returncode or not out.exists():
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise UsageError(f"the file gave no workflow: {lines[-1] if lines else done.returncode}", where=str(path))
        return json.loads(out.read_text())
