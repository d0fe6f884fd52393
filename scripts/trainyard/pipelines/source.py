"""What a file to submit is: a kfp pipeline, a workflow written with hera, or an Argo Workflow."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from trainyard.errors import UsageError
from trainyard.yaml_lines import documents

KFP, HERA, ARGO = "kfp", "hera", "argo"
CHILD = Path(__file__).with_name("hera_child.py")
LONGEST = 120  # seconds a workflow's file may take to import
HERA_IMPORT = re.compile(r"^\s*(?:from\s+hera[.\s]|import\s+hera\b)", re.MULTILINE)
KFP_IMPORT = re.compile(r"^\s*(?:from\s+kfp[.\s]|import\s+kfp\b)", re.MULTILINE)


def kind(path: Path) -> str:
    """Which of the three. A file of no known kind is left to kfp's compiler, which says what is wrong with it."""
    if path.is_dir() or not path.exists():
        return KFP
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return KFP
    if path.suffix == ".py":
        return HERA if HERA_IMPORT.search(text) and not KFP_IMPORT.search(text) else KFP
    return ARGO if re.search(r"""["']?apiVersion["']?\s*:\s*["']?argoproj\.io/""", text) else KFP


def workflow(path: Path, name: str = "") -> dict[str, Any]:
    """The Workflow object of a hera file or of Argo YAML or JSON. Raises UsageError."""
    document = _of_hera(path, name) if kind(path) == HERA else _of_yaml(path)
    if document.get("kind") != "Workflow":
        raise UsageError(
            f"it is a {document.get('kind') or 'document without kind'}, not a Workflow",
            where=str(path),
            hint="submit a Workflow; members may not create others, ask the platform engineer",
        )
    if not isinstance(document.get("spec"), dict):
        raise UsageError("the Workflow has no spec", where=str(path))
    meta = document.setdefault("metadata", {})
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
        raise UsageError("the Workflow has no name", where=str(path), hint="set metadata.generateName")
    return document


def lines(path: Path) -> Callable[[tuple[str | int, ...]], int] | None:
    """Tells the line of a path in a workflow of YAML or JSON; None for a file whose lines say nothing about it."""
    if kind(path) != ARGO:
        return None
    found = documents(path.read_text(encoding="utf-8"), str(path))
    return lambda place: found[0].line(*place)


def _of_yaml(path: Path) -> dict[str, Any]:
    try:
        documents = [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = str(path) if line is None else f"{path}:{line + 1}"
        raise UsageError("this is no YAML", where=where, hint="correct that line") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UsageError(f"the file holds {len(documents)} documents, not one Workflow", where=str(path))
    return documents[0]


def _of_hera(path: Path, name: str) -> dict[str, Any]:
    """Imports the author's file in a process of its own."""
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
