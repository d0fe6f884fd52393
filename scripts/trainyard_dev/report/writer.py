"""Writes the report: every form is made in memory first, then each file is replaced atomically."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError
from trainyard_dev.report import dashboards, html, timeline
from trainyard_dev.report.model import Run
from trainyard_dev.report.plain import plain

SCHEMA = 1


def summary(run: Run) -> dict[str, Any]:
    """The run as plain data, in the form of ``summary.json``."""
    verdict = run.verdict
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": verdict.word,
        "passed": verdict.passed,
        "failed": verdict.failed,
        "skipped": verdict.skipped,
        "started": run.started,
        "ended": run.ended,
        "seconds": round(run.seconds, 3),
        "versions": run.versions,
        "images": run.images,
        "image_source": run.image_source,
        "gpu": run.gpu,
        "mocks": run.mocks,
        "checks": run.checks,
        "spans": run.spans,
        "environment": run.environment,
        "cause": run.cause,
    }
    cleaned: dict[str, Any] = plain(data)
    return cleaned


def write(run: Run, out: Path) -> list[Path]:
    """Write ``report.html``, ``timeline.svg``, ``junit.xml`` and ``summary.json`` into ``out``; returns their paths.

    A run that queried dashboards gets a page for each, ``dashboard-<name>.html``.

    ``summary.json`` comes last, so if it exists, the others do, too. No file is left half written: on an error
    this raises ``TrainyardError`` and the files of an earlier run stay whole.
    """
    run.validate()
    texts = {
        "report.html": html.render(run),
        **dashboards.render(run),
        "timeline.svg": timeline.document(run.spans, run.started, run.ended),
        "junit.xml": html.junit(run),
        "summary.json": json.dumps(summary(run), indent=2, ensure_ascii=False, allow_nan=False) + "\n",
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".report-", dir=out) as folder:
            for name, text in texts.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            for name in texts:
                os.replace(Path(folder) / name, out / name)
    except OSError as error:
        raise TrainyardError(
            f"cannot write the report: {error.strerror or error}",
            where=str(out),
            hint="free some space, or make the folder writable, then run again",
        ) from error
    return [out / name for name in texts]
