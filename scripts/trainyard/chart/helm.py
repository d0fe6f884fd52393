"""Helm and its output: the chart's default names, the program, and the objects of a rendered text."""

import functools
import pickle
import re
from pathlib import Path
from typing import Any

import yaml

from trainyard import programs
from trainyard.errors import TrainyardError
from trainyard.shell import CommandError, run

NAME = "trainyard"
RELEASE, NAMESPACE = "trainyard", "trainyard-system"


def call(*args: str | Path) -> str:
    """Runs helm and returns its output; on failure, the error has Helm's own message."""
    try:
        return run([programs.find("helm"), *args]).stdout
    except CommandError as error:
        raise TrainyardError(plain(error.output), hint="see the chart's values.yaml") from None


def parse(text: str) -> list[dict[str, Any]]:
    """The objects of a rendered text."""
    found: list[dict[str, Any]] = pickle.loads(pickle.dumps(shared(text)))
    return found


def shared(text: str) -> list[dict[str, Any]]:
    """Like `parse`, but read-only: documents that several texts share are parsed once, and are one object."""
    return [obj for one in re.split(r"^---$", text, flags=re.MULTILINE) for obj in _document(one)]


@functools.lru_cache(4096)
def _document(text: str) -> list[dict[str, Any]]:
    return [obj for obj in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if obj]


def pod_specs(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Pod specs in an object: none, or one."""
    spec = obj.get("spec") or {}
    if obj["kind"] == "Pod":
        return [spec]
    if obj["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    template_spec = spec.get("template") if isinstance(spec.get("template"), dict) else None
    if template_spec and "containers" in template_spec.get("spec", {}):
        return [template_spec["spec"]]
    return []


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All containers of a pod spec, init containers first."""
    return [*(spec.get("initContainers") or []), *spec["containers"]]


def plain(text: str) -> str:
    """Helm's message without the file names that Go templates wrap around it."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Use --debug")]
    return " ".join(lines).removeprefix("Error: ") or "helm failed and printed nothing"
