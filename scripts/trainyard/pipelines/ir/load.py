"""Loads compiled kfp text as a `Pipeline`: finds the documents, checks them, builds the model."""

from pathlib import Path
from typing import Any

from trainyard.errors import UsageError
from trainyard.pipelines.ir import proto
from trainyard.pipelines.ir.build import Builder
from trainyard.pipelines.ir.model import Pipeline
from trainyard.yaml_lines import Document, documents


def file(path: Path) -> Pipeline:
    """The compiled pipeline in a file."""
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the file can't be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise UsageError("not a text file", where=str(path)) from None
    return text(content, str(path))


def text(content: str, file: str) -> Pipeline:
    """The compiled pipeline in `content`; `file` is only used in messages.

    Accepts kfp's YAML (one document, a second one for the platform), a PipelineJob in JSON, and the manifest that
    `kfp dsl compile --kubernetes-manifest-format` writes.
    """
    found = documents(content, file)
    main: tuple[Document, tuple[str, ...], dict[str, Any]] | None = None
    platforms: list[tuple[Document, tuple[str, ...], dict[str, Any]]] = []
    arguments: dict[str, Any] = {}
    for document in found:
        data = document.data
        if not isinstance(data, dict):
            raise UsageError("a compiled pipeline is a mapping", where=f"{file}:{document.line()}", hint=_HINT)
        if data.get("kind") in ("PipelineVersion", "Pipeline") and "apiVersion" in data:
            spec = data.get("spec")
            body: dict[str, Any] = spec if isinstance(spec, dict) else {}
            if "pipelineSpec" in body:
                main = (document, ("spec", "pipelineSpec"), body["pipelineSpec"])
            if "platformSpec" in body:
                platforms.append((document, ("spec", "platformSpec"), body["platformSpec"]))
        elif "platforms" in data:
            platforms.append((document, (), data))
        elif "pipelineSpec" in data:
            main = (document, ("pipelineSpec",), data["pipelineSpec"])
            arguments = _arguments(data.get("runtimeConfig") or {})
        elif main is None:
            _refuse_others(document, file)
            main = (document, (), data)
        else:
            raise UsageError("a second pipeline in one file", where=f"{file}:{document.line()}", hint=_HINT)
    if main is None:
        raise UsageError("no pipeline in this file", where=file, hint=_HINT)
    document, prefix, data = main
    checked_spec = proto.spec(document, prefix, data, file)
    platform: dict[str, Any] = {}
    builder = Builder(file, content, document, prefix)
    for place, at, one in platforms:
        checked = proto.platform(place, at, one, file)
        platform.setdefault("platforms", {}).update(checked.get("platforms", {}))
        builder.platform_at(place, at)
    return builder.pipeline(checked_spec, platform, arguments)


_HINT = "give a kfp Python file, or what `kfp dsl compile` writes"


def _refuse_others(document: Document, file: str) -> None:
    """Refuses common mix-ups: a manifest, or a component in kfp 1's format."""
    data = document.data
    if "root" in data or "pipelineInfo" in data or "schemaVersion" in data:
        return
    if "apiVersion" in data and "kind" in data:
        what = f"this is a {data['kind']}, not a compiled pipeline"
    elif "implementation" in data:
        what = "this is a component in the format of kfp 1, not a pipeline"
    else:
        what = "not a compiled pipeline: pipelineInfo, root and components are missing"
    raise UsageError(what, where=f"{file}:{document.line()}", hint=_HINT)


def _arguments(runtime: Any) -> dict[str, Any]:
    """The values of a PipelineJob, in either of its forms."""
    if not isinstance(runtime, dict):
        return {}
    found = {name: _primitive(value) for name, value in (runtime.get("parameters") or {}).items()}
    return {**found, **(runtime.get("parameterValues") or {})}


def _primitive(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        return next(iter(value.values()))
    return value
