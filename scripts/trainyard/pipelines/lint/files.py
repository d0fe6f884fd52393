"""Determines a file's type and runs its checks."""

import re
from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.policy.lint import objects, shapes
from trainyard.policy.lint.finding import Finding
from trainyard.policy.lint.report import Report, Site
from trainyard.yaml_lines import Document, documents

SETTINGS = "trainyard.yaml"
PIPELINE = re.compile(r"^\s*@(?:kfp\.)?(?:dsl\.)?pipeline\b|^\s*(?:from|import)\s+hera\b", re.MULTILINE)
SUFFIXES = (".yaml", ".yml", ".json")
IR_KEYS = ("pipelineInfo", "pipelineSpec", "deploymentSpec", "schemaVersion", "root")


def known(path: Path) -> bool:
    """Whether lint seems to support a file: judged by its name and by words in it."""
    if path.name == SETTINGS or path.is_dir():
        return True
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if path.suffix == ".py":
        return bool(PIPELINE.search(text))
    kinds = {kind.partition(".")[0] for kind in shapes.known()}
    named = re.findall(r"""(?:^|[{,])[ \t"']*kind["']?\s*:\s*["']?(\w+)""", text, re.MULTILINE)
    return path.suffix in SUFFIXES and (bool(kinds & set(named)) or "deploymentSpec" in text)


def check(path: Path, site: Site) -> list[Finding]:
    """All findings of a file: a Python file or folder with a pipeline, or any YAML and JSON that lint supports."""
    if path.is_dir() or path.suffix == ".py":
        from trainyard.pipelines.lint import pipelines

        return pipelines.check_source(path, site)
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"can't be read: {error.strerror}", where=str(path), hint="name a file") from None
    except UnicodeDecodeError:
        report = Report(site, str(path))
        report.add("TY101", 1, "the file is not text", "give a Python file, YAML or JSON")
        return report.sorted()
    return check_text(content, str(path), site)


def check_text(content: str, file: str, site: Site) -> list[Finding]:
    """All findings of YAML or JSON text; `file` is its name."""
    report = Report(site, file, one_line="\n" not in content.strip())
    try:
        found = documents(content, file)
    except UsageError as error:
        report.error("TY101", error)
        return report.sorted()
    if any(isinstance(one.data, dict) and _pipeline(one.data) for one in found):
        from trainyard.pipelines.lint import pipelines

        return pipelines.check_text(content, file, site)
    if not found:
        report.add("TY101", 1, "the file is empty", "give a pipeline, a manifest or settings of a job")
    for one in found:
        _document(one, report)
    return report.sorted()


def _pipeline(data: dict[str, Any]) -> bool:
    kfp = data.get("kind") in ("Pipeline", "PipelineVersion") and "pipelines.kubeflow.org" in str(
        data.get("apiVersion")
    )
    return kfp or ("apiVersion" not in data and any(key in data for key in IR_KEYS)) or "platforms" in data


def _document(one: Document, report: Report) -> None:
    data = one.data
    if not isinstance(data, dict):
        report.add("TY101", one.line(), "not an object", "write apiVersion, kind, metadata and spec")
    elif "apiVersion" not in data and "kind" not in data:
        from trainyard.policy.lint import settings

        settings.check(one, report)
    elif str(data.get("kind", "")).endswith("List") and isinstance(data.get("items"), list):
        for index, item in enumerate(data["items"]):
            _object(item, one, report, ("items", index))
    else:
        _object(data, one, report, ())


def _object(obj: Any, document: Document, report: Report, prefix: tuple[str | int, ...]) -> None:
    line = document.line(*prefix)
    if not isinstance(obj, dict):
        report.add("TY105", line, "an item of the list is not an object", "write apiVersion, kind, metadata and spec")
        return
    for key in ("apiVersion", "kind"):
        if not isinstance(obj.get(key), str):
            report.add("TY105", line, f"the object has no {key}", f"add {key}", at=key)
            return
    objects.check(obj, lambda path: document.line(*prefix, *path), report)
