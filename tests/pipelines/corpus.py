"""KFP's own samples of 2023: fetched by a pin from the Go module proxy, never kept here."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainyard.contract import Team, defaults
from trainyard.errors import TrainyardError, UsageError
from trainyard.pipelines import translate
from trainyard.pipelines.ir import load
from trainyard.pipelines.ir.model import Pipeline
from trainyard_dev import tools
from trainyard_dev.e2e.checks.kfp_samples import asked

MODULE = "github.com/kubeflow/pipelines@v0.0.0-20231208180049-c5658f09ec38"
MARKS = ("pipelineInfo:", '"pipelineInfo"')
VALUES: dict[str, Any] = {
    "STRING": "x", "NUMBER_INTEGER": 1, "NUMBER_DOUBLE": 1.5, "BOOLEAN": True, "LIST": [], "STRUCT": {}
}  # fmt: skip
SETTINGS = translate.Settings(defaults(), Team("vision", ("vision",)), priority="training-normal")
LINTED = 25  # files a call of `argo lint`


@dataclass
class Outcome:
    """One sample: `state` is translated, refused, or broken; `reason` says why it isn't translated."""

    name: str
    state: str
    reason: str = ""
    workflow: dict[str, Any] | None = None


@cache
def folder() -> Path:
    """Where the module lies. Raises TrainyardError where it can't be fetched."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, check=False, cwd="/"
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = {"Error": done.stderr.strip()}
    if "Dir" not in found:
        raise TrainyardError(f"KFP's samples can't be fetched: {found.get('Error', 'no reason given')}")
    return Path(found["Dir"])


def compiled() -> Iterator[Path]:
    """The compiled samples, in order."""
    for path in sorted([*folder().rglob("*.yaml"), *folder().rglob("*.json")]):
        if path.stat().st_size < 5_000_000:
            text = path.read_text(errors="replace")
            if any(line.startswith(MARKS[0]) or MARKS[1] in line for line in text.splitlines()):
                yield path


def arguments(pipeline: Pipeline) -> dict[str, Any]:
    """Something for every input that has no default."""
    return asked(pipeline, VALUES, "s3://datasets/shared/x")


def outcome(path: Path) -> Outcome:
    """One sample, translated or refused. A crash isn't caught: that is a bug of ours."""
    shown = str(path.relative_to(folder()))
    try:
        pipeline = load.file(path)
        return Outcome(shown, "translated", workflow=translate.workflow(pipeline, arguments(pipeline), SETTINGS))
    except translate.Unsupported as error:
        return Outcome(shown, "refused", error.what)
    except UsageError as error:
        return Outcome(shown, "broken", error.what)


def linted(outcomes: list[Outcome]) -> str:
    """What Argo finds wrong with the translated ones; "" for nothing."""
    argo, wrong = str(tools.binary("argo")), ""
    with tempfile.TemporaryDirectory() as place:
        paths = []
        for one in (o for o in outcomes if o.workflow):
            paths.append(Path(place) / f"{one.name.replace('/', '-')}.json")
            paths[-1].write_text(json.dumps(one.workflow))
        for start in range(0, len(paths), LINTED):
            argv = [argo, "lint", "--offline", "--no-color", *paths[start : start + LINTED]]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            wrong += done.stdout if done.returncode else ""
    return wrong
