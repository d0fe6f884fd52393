"""Writes the first trainyard.yaml of a folder: settings detected from its code, all others as comments."""

import json
import textwrap
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.kinds import check
from trainyard.training import detect
from trainyard.training.ignore import ALWAYS
from trainyard.training.ignore import FILE as IGNORE
from trainyard.training.settings import FILE

FIRST = ("name", "framework", "command", "nodes", "gpus")
SAMPLES: dict[str, Any] = {
    "team": "vision",
    "image": "team/image:1.0",
    "minNodes": 2,
    "processes": 2,
    "pool": "gpu",
    "queue": "vision",
    "priority": "training-low",
    "env": {"LR": "0.1", "TOKEN": {"secret": "my-secret", "key": "token"}},
    "mounts": [{"claim": "shared", "path": "/shared", "readOnly": True}],
    "checkpoints": "checkpoints",
    "deadline": "24h",
    "keep": "1d",
    "requirements": "requirements.txt",
}
WIDTH = 116


def write(folder: Path, *, force: bool = False) -> list[str]:
    """Writes the settings, and an ignore file unless there is one; returns sentences on what was done.

    Raises:
        UsageError: the settings exist already.
    """
    target = folder / FILE
    if target.exists() and not force:
        raise UsageError(f"{FILE} already exists", where=str(folder), hint="use --force to overwrite it")
    kind, why = detect.framework(folder)
    script = detect.script(folder)
    command = ["python3", script or "train.py"]
    known = {"name": detect.job_name(folder), "framework": kind, "command": command, "nodes": 1, "gpus": 0}
    target.write_text(text(known))
    said = [f"wrote {target}: framework {kind} ({why}), command python3 {command[1]}"]
    if not script:
        said.append("no training script found: set `command`")
    if not (folder / IGNORE).exists():
        (folder / IGNORE).write_text(
            "# Files that are not sent with the code, as in .gitignore. Always excluded, unless included again by !:\n"
            f"# {' '.join(ALWAYS)}\n"
        )
        said.append(f"wrote {folder / IGNORE}")
    return said


def text(known: dict[str, Any]) -> str:
    """The file's text: known settings first, then all others as comments with their default or an example."""
    rules = check.schema()["properties"]
    lines = ["# Settings of `trainyard train` for this folder; flags of the same names override them.", ""]
    for key in FIRST:
        lines += [*_remarks(rules[key]["description"]), f"{key}: {json.dumps(known[key])}"]
    lines += ["", "# Other settings, with their defaults or a sample:"]
    for key, rule in rules.items():
        if key not in FIRST:
            value = SAMPLES.get(key, rule.get("default"))
            lines += ["#", *_remarks(rule["description"]), f"# {key}: {json.dumps(value)}"]
    return "\n".join(lines) + "\n"


def _remarks(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH)]
