"""`trainyard data` as a member uses it: a folder in the store and in the workspace, and forbidden targets."""

import json
import tempfile
import time
from pathlib import Path

from trainyard_dev.e2e import runs
from trainyard_dev.e2e.context import NAMESPACE, OTHER, Context
from trainyard_dev.e2e.entry import DATA, VOLUMES, check
from trainyard_dev.e2e.recorder import require

NAME = "e2e-folder"
PARTS = {"a.txt": b"one", "deep/b.bin": b"\0" * (3 << 20), "deep/empty": b""}
MANY = 300  # small files, which are sent in parallel


@check("data.put", "data.workspace", "data.refused", needs=(DATA,), shares={VOLUMES},
       inputs=("scripts/trainyard/data", "scripts/trainyard/training/transfer", "scripts/trainyard_agent",
               "scripts/trainyard/commands/data.py"))  # fmt: skip
def put(context: Context) -> None:
    """Sent, sent again, listed by both teams, deleted; then the same in the workspace."""
    with tempfile.TemporaryDirectory(prefix="trainyard-e2e-") as scratch:
        folder = Path(scratch) / NAME
        for name, data in PARTS.items() | {f"many/{number}": str(number).encode() for number in range(MANY)}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        due = len(PARTS) + MANY
        with context.recorder.check(
            "data.put", "a member's folder in the store: uploaded once, listed, deleted"
        ) as figures:
            try:
                began = time.monotonic()
                out, _ = _data(context, "put", folder)
                figures |= {"files": due, "seconds": round(time.monotonic() - began, 1)}
                require(out.strip() == f"s3://datasets/{NAMESPACE}/{NAME}", f"`data put` printed {out!r}")
                _, said = _data(context, "put", folder)
                require(f"0 files sent, {due} already stored" in said, f"the same folder again: {said[-300:]}")
                rows = {one["name"]: one for one in json.loads(_data(context, "list", "-o", "json")[0])}
                require(rows[NAME]["files"] == due, f"the list has {rows[NAME]}, not {due} files")
                require("shared/mnist" in rows, f"the list lacks shared/mnist: {sorted(rows)}")
                theirs = _data(context, "list", "-o", "name", team=OTHER)[0].split()
                require(NAME not in theirs and "shared/mnist" in theirs, f"team {OTHER} finds {theirs}")
            finally:
                _, said = _data(context, "delete", NAME, check=False)
            left = _data(context, "list", "-o", "name")[0].split()
            require(NAME not in left, f"still listed after `data delete`: {said[-300:]}")
        with context.recorder.check("data.workspace", "a member's folder in the team's workspace") as figures:
            name = f"workspace/{NAME}"
            try:
                out, _ = _data(context, "put", folder, name)
                require(out.strip() == f"workspace:/{NAME}", f"`data put` printed {out!r}")
                script = f"cd /workspace/{NAME}; cat a.txt; ls many | wc -l; touch added; rm added"
                pod = context.pod("data-seen", script, claims={"workspace": "/workspace"},
                                  user=1001)  # fmt: skip
                phase, log = context.run_pod(pod)
                require(
                    (phase, log.split()) == ("Succeeded", [f"one{MANY}"]), f"another user of the team: {phase}, {log}"
                )
                _, said = _data(context, "put", folder, name)
                require("0 files sent" in said, f"the same folder again: {said[-300:]}")
            finally:
                out, said = _data(context, "delete", name, check=False)
            require(f"{due} files" in out, f"`data delete` said {out} {said[-300:]}")
        with context.recorder.check("data.refused", "members can neither upload nor delete shared data") as figures:
            for words in (("put", folder, "shared/mnist"), ("delete", "shared/mnist"), ("put", folder, "raw-data/x")):
                code, out, said = runs.trainyard(context, "data", *words, check=False)
                require(code and not out, f"`data {words[0]} {words[-1]}` ended with {code}: {out}")
                figures[f"{words[0]} {words[-1]}"] = " ".join(said.strip().splitlines()[-2:])[:300]
            require("only the platform engineer can upload" in figures["put shared/mnist"], figures["put shared/mnist"])
            require("keys of the store itself" in figures["put raw-data/x"], figures["put raw-data/x"])


def _data(context: Context, *words: str | Path, team: str = NAMESPACE, check: bool = True) -> tuple[str, str]:
    """One command's output: standard output, standard error."""
    return runs.trainyard(context, "data", *words, team=team, check=check, timeout=180)[1:]
