"""KFP's own published samples: fetched by a pin from the Go module proxy, never kept here. Run it for the table:

python tests/pipelines/corpus.py [--sources]

Each compiled sample is loaded, translated and linted by Argo; `--sources` compiles the Python samples with the
installed kfp first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainyard.errors import TrainyardError, UsageError
from trainyard.pipelines import translate
from trainyard.pipelines.ir import compile, load
from trainyard.pipelines.ir.model import Pipeline
from trainyard_dev import tools

MODULE = "github.com/kubeflow/pipelines@v0.0.0-20231208180049-c5658f09ec38"
MARKS = ("pipelineInfo:", '"pipelineInfo"')
VALUES: dict[str, Any] = {
    "STRING": "x", "NUMBER_INTEGER": 1, "NUMBER_DOUBLE": 1.5, "BOOLEAN": True, "LIST": [], "STRUCT": {}
}  # fmt: skip
SETTINGS = translate.Settings(team="vision", priority="training-normal")
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


def sources() -> Iterator[tuple[Path, str | None]]:
    """The Python samples, each with the name of its pipeline as KFP's own tests take it."""
    import yaml

    base = folder() / "sdk/python/test_data"
    for group in yaml.safe_load((base / "test_data_config.yaml").read_text()).values():
        for case in group["test_cases"]:
            path = folder() / group["test_data_dir"] / f"{case['module']}.py"
            if path.exists():
                yield path, case.get("name")


def arguments(pipeline: Pipeline) -> dict[str, Any]:
    """Something for every input that has no default."""
    inputs = pipeline.inputs
    found = {
        one.name: VALUES[one.type]
        for one in inputs.parameters.values()
        if one.required and one.name not in pipeline.arguments
    }
    return found | {one.name: "s3://datasets/shared/x" for one in inputs.artifacts.values() if not one.optional}


def outcome(path: Path, name: str | None = None) -> Outcome:
    """One sample, translated or refused. A crash isn't caught: that is a bug of ours."""
    shown = str(path.relative_to(folder()))
    try:
        pipeline = compile.pipeline(path, name) if path.suffix == ".py" else load.file(path)
        return Outcome(shown, "translated", workflow=translate.workflow(pipeline, arguments(pipeline), SETTINGS))
    except translate.Unsupported as error:
        return Outcome(shown, "refused", error.what)
    except UsageError as error:
        return Outcome(shown, "broken", error.what)


def linted(outcomes: list[Outcome]) -> dict[str, str]:
    """What Argo finds wrong with the translated ones, by name."""
    argo, wrong = str(tools.binary("argo")), {}
    with tempfile.TemporaryDirectory() as place:
        files = {}
        for number, one in enumerate(o for o in outcomes if o.workflow):
            path = Path(place) / f"{number}.json"
            path.write_text(json.dumps(one.workflow))
            files[path] = one.name
        paths = list(files)
        for start in range(0, len(paths), LINTED):
            some = paths[start : start + LINTED]
            done = subprocess.run(
                [argo, "lint", "--offline", "--no-color", *some], capture_output=True, text=True, check=False
            )
            if done.returncode:
                wrong |= {files[path]: reason for path in some if (reason := _alone(argo, path))}
    return wrong


def _alone(argo: str, path: Path) -> str:
    done = subprocess.run([argo, "lint", "--offline", "--no-color", path], capture_output=True, text=True, check=False)
    return next((line.strip() for line in done.stdout.splitlines() if "✖" in line), "") if done.returncode else ""


def main(words: list[str]) -> int:
    """Prints the table. The code is 1 where fewer than 90 % are translated and clean."""
    found = (
        [outcome(path, name) for path, name in sources()] if "--sources" in words else list(map(outcome, compiled()))
    )
    wrong = linted(found)
    for one in found:
        if one.state != "translated" or one.name in wrong:
            print(f"{one.state:<11} {one.name}: {wrong.get(one.name) or one.reason}")
    counts = Counter("lint" if one.name in wrong else one.state for one in found)
    good = counts["translated"]
    others = {"refused": "refused by name", "broken": "no valid pipelines", "lint": "with findings of argo lint"}
    words = [f"{counts[state]} {word}" for state, word in others.items()]
    print(f"{len(found)} samples: {good} translated and clean ({good / len(found):.1%}), {', '.join(words)}")
    return 0 if good >= 0.9 * len(found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
