"""kfp's protos: strict checks, and the canonical form that later modules use."""

import math
import re
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import Message
from kfp.kubernetes import kubernetes_executor_config_pb2 as k8s_pb
from kfp.pipeline_spec import pipeline_spec_pb2 as pb

from trainyard.errors import UsageError
from trainyard.yaml_lines import Document

Prefix = tuple[str | int, ...]


def spec(document: Document, prefix: Prefix, data: Any, file: str) -> dict[str, Any]:
    """A PipelineSpec, checked with its deployment, in canonical names and without default values."""
    found = _checked(data, pb.PipelineSpec(), document, prefix, file)
    deployment = data.get("deploymentSpec", data.get("deployment_spec"))
    if deployment is not None:
        at = (*prefix, "deploymentSpec")
        found["deploymentSpec"] = _checked(deployment, pb.PipelineDeploymentConfig(), document, at, file)
    return found


def platform(document: Document, prefix: Prefix, data: Any, file: str) -> dict[str, Any]:
    """A PlatformSpec; executors of the platform `kubernetes` are checked against kfp-kubernetes' own proto."""
    found = _checked(data, pb.PlatformSpec(), document, prefix, file)
    for name, one in found.get("platforms", {}).items():
        if name != "kubernetes":
            continue
        at = (*prefix, "platforms", name, "deploymentSpec", "executors")
        executors = one.get("deploymentSpec", {}).get("executors", {})
        for label, config in executors.items():
            checked = _checked(config, k8s_pb.KubernetesExecutorConfig(), document, (*at, label), file)
            executors[label] = checked
    return found


def _checked(data: Any, message: Message, document: Document, prefix: Prefix, file: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        kind = message.DESCRIPTOR.name
        raise UsageError(f"a {kind} is a mapping, this is {_kind(data)}", where=f"{file}:{document.line(*prefix)}")
    try:
        json_format.ParseDict(data, message)
    except json_format.ParseError as error:
        what, path = _explained(str(error))
        line = document.line(*prefix, *path)
        if not re.search(r'at "', str(error)):
            line = _found(document, prefix, path, str(error)) or line
        raise UsageError(what, where=f"{file}:{line}", hint="compile the pipeline again with kfp") from None
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"invalid {message.DESCRIPTOR.name}: {error}", where=f"{file}:{document.line(*prefix)}"
        ) from None
    return _ordered(whole_numbers(json_format.MessageToDict(message)), data)


def _ordered(value: Any, written: Any) -> Any:
    """The value in the author's order, which protobuf's maps don't keep."""
    if isinstance(value, dict):
        raw = written if isinstance(written, dict) else {}
        names = [key for key in raw if key in value] + sorted(key for key in value if key not in raw)
        return {key: _ordered(value[key], raw.get(key)) for key in names}
    if isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        return [_ordered(one, other) for one, other in zip(value, written, strict=True)]
    return value


def _found(document: Document, prefix: Prefix, fields: list[str | int], text: str) -> int:
    """The line of the value in protobuf's error: the message names the fields on the way, but no keys of maps."""
    for path, line in document.lines.items():
        rest = iter(path[len(prefix) :])
        if path[: len(prefix)] != prefix or not path or not fields or path[-1] != fields[-1]:
            continue
        if all(field in rest for field in fields) and repr(_at(document.data, path)) in text:
            return line
    return 0


def _at(data: Any, path: Prefix) -> Any:
    for part in path:
        data = data[int(part)] if isinstance(data, list) else data.get(part) if isinstance(data, dict) else None
    return data


def whole_numbers(value: Any) -> Any:
    """The value with whole numbers as integers, as KFP's own backend writes them: Structs have only floats."""
    if isinstance(value, dict):
        return {key: whole_numbers(one) for key, one in value.items()}
    if isinstance(value, list):
        return [whole_numbers(one) for one in value]
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    return value


def _kind(value: Any) -> str:
    names = {str: "text", list: "a list", bool: "a boolean", int: "a number", float: "a number", type(None): "empty"}
    return names.get(type(value), type(value).__name__)


def _explained(text: str) -> tuple[str, list[str | int]]:
    """protobuf's message as one sentence, and the path of the value."""
    path: list[str | int] = []
    if at := re.search(r'at "[A-Za-z]+\.?(.*?)"', text):
        for name, key in re.findall(r"([A-Za-z_]\w*)|\[([^\]]*)\]", at[1]):
            path.append(name or (int(key) if key.isdigit() else key))
    if unknown := re.search(r'Message type "\w+\.(.+?)" has no field named "(.+?)"', text):
        kind = unknown[1].split(".")[-1]
        return f"{kind} has no field {unknown[2]}", [*path, unknown[2]]
    inner = text
    fields = re.findall(r"Failed to parse (\w+) field: ", text)
    if fields:
        inner = text.rsplit("field: ", 1)[-1]
    inner = inner.strip().rstrip(".").splitlines()[0]
    place = ".".join(fields)
    return (f"{place}: {inner}" if place else inner), path or list(fields)
