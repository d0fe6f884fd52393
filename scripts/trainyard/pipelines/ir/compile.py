"""A pipeline from any source: Python for kfp, a package, or a compiled file."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from trainyard.errors import UsageError
from trainyard.pipelines.ir import load
from trainyard.pipelines.ir.model import Pipeline

CHILD = Path(__file__).with_name("child.py")
LONGEST = 300  # seconds a pipeline's file may take to import and compile


def pipeline(path: Path, name: str | None = None) -> Pipeline:
    """The pipeline in `path`: a kfp Python file, a Python package's folder, or compiled YAML or JSON.

    Args:
        name: which pipeline, when Python defines several: its function's name or the pipeline's own.

    Raises:
        UsageError: no pipeline, several without a name, or the file's own error, with its line.
    """
    if not path.exists():
        raise UsageError("no such file", where=str(path), hint="pass the path of a pipeline")
    if path.is_dir() or path.suffix == ".py":
        return _python(path, name)
    return load.file(path)


def _python(path: Path, name: str | None) -> Pipeline:
    """Runs kfp's compiler in a separate process, so that the author's code can't disturb this one."""
    with tempfile.TemporaryDirectory(prefix="trainyard-compile-") as folder:
        out = Path(folder) / "pipeline.yaml"
        report = Path(folder) / "report.json"
        argv = [sys.executable, "-W", "ignore", str(CHILD), str(path.resolve()), name or "", str(out), str(report)]
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LONGEST,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"compiling did not finish within {LONGEST} s",
                where=str(path),
                hint="keep slow work out of the pipeline's file; it belongs into a component",
            ) from None
        if report.exists():
            _raise(path, json.loads(report.read_text()))
        if done.returncode or not out.exists():
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"it ended with code {done.returncode}"
            raise UsageError(f"the file did not compile: {reason}", where=str(path))
        return load.text(out.read_text(), str(path))


def _raise(path: Path, report: dict) -> None:
    where = f"{path}:{report['line']}" if report.get("line") else str(path)
    raise UsageError(report["what"], where=where, hint=report.get("hint", ""))
