"""An upstream chart in a version other than the pinned one, on request: marked as untested."""

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from trainyard.components import Component
from trainyard.errors import TrainyardError, UsageError
from trainyard_dev.chart import parts
from trainyard_dev.tools import golang
from trainyard_dev.versions import load

NOT_RUN = "trainyard.io/not-run"  # annotation in Chart.yaml: parts in versions that were not run with this one


def asked(words: Iterable[str]) -> dict[str, str]:
    """Versions by part, from `part=version`. Raises UsageError for anything but an upstream chart in a Go module."""
    known, found = {one.name: one for one in parts.upstream()}, {}
    for word in words:
        name, _, version = word.partition("=")
        if name not in known or not version:
            hint = f"write PART=VERSION with one of: {', '.join(sorted(known))}"
            raise UsageError(f"{word!r} is not PART=VERSION of an upstream chart", hint=hint)
        if version.removeprefix("v") != pinned(known[name]):
            found[name] = version.removeprefix("v")
    return found


def pinned(part: Component) -> str:
    """The version of a part with which this tree is tested."""
    return str(load().raw["components"][part.pin])


def folder(part: Component, version: str) -> Path:
    """The unchanged chart of a part in a version, from its Go module, whose checksum Go verifies.

    Raises:
        TrainyardError: Go can't fetch it.
    """
    module = load().tools[part.chart["module"]].module
    with tempfile.TemporaryDirectory() as empty:
        argv = ["mod", "download", "-json", f"{module}@v{version}"]
        done = golang.go(*argv, cwd=Path(empty), env={"GOFLAGS": "-mod=mod", **golang.env()}, check=False)
    told = json.loads(done.stdout or "{}")
    if "Dir" not in told:
        why = str(told.get("Error") or done.stderr).strip().splitlines() or ["no reason given"]
        hint = "check `go env GOPROXY`, or use a version that the proxy has"
        raise TrainyardError(f"Go cannot download {module} v{version}: {why[-1]}", hint=hint)
    return Path(told["Dir"]) / part.chart["path"]


def retag(values: Path, others: Mapping[str, str]) -> None:
    """Set the images of these parts to their version's tag in the umbrella's values. Raises TrainyardError."""
    text = values.read_text()
    for part in parts.upstream():
        if part.name in others:
            tag = f"v{pinned(part)}"
            if tag not in text:
                raise TrainyardError(f"no image of {part.name} has tag {tag}", where=values.name)
            text = text.replace(tag, f"v{others[part.name]}")
    values.write_text(text)


def warning(others: Mapping[str, str]) -> str:
    """The warning that packaging them prints, in one sentence."""
    named = ", ".join(f"{name} {version}" for name, version in sorted(others.items()))
    return f"not run here: {named}. The upgrade to it counts as blocked: run `make e2e ONLY=upgrade`"
