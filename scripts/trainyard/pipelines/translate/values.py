"""Values in Argo, where everything is text: literals, references to inputs and outputs, expressions.

A `Value` can be written into a field (`text`) and used inside an expression (`code`). Text of a parameter: a STRING
unchanged, everything else as JSON, and ABSENT for an optional one without a value.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

ABSENT = "absent.trainyard.io"  # a name that no Secret or ConfigMap has: an optional one may be absent, too
LARGEST = 100_000  # bytes of a parameter: it reaches its step in a variable, and Linux allows 128 KiB


@dataclass(frozen=True)
class Value:
    """`text` is written into the workflow; `code` is an expression for the same value."""

    code: str
    text: str


def tag(name: str) -> str:
    """A reference in Argo's syntax."""
    return "{{" + name + "}}"


def literal(text: str) -> Value:
    return Value(quoted(text), text)


def calculated(code: str) -> Value:
    """The result of an expression."""
    return Value(f"({code})", "{{=" + code.replace("}}", "} }") + "}}")


def input_parameter(name: str) -> Value:
    """An input of the enclosing template."""
    return Value(f"inputs.parameters[{quoted(name)}]", tag(f"inputs.parameters.{name}"))


def output_parameter(task: str, name: str) -> Value:
    """An output of a task that has succeeded."""
    code = f"tasks[{quoted(task)}].outputs.parameters[{quoted(name)}]"
    return Value(code, tag(f"tasks.{task}.outputs.parameters.{name}"))


def output_or(task: str, name: str, default: str) -> Value:
    """An output of a task that may not have run, else `default`."""
    return calculated(f"{maybe_output(task, name)} ?? {quoted(default)}")


def maybe_output(task: str, name: str) -> str:
    """Code: an output of a task, or nil."""
    return f"tasks[{quoted(task)}]?.outputs?.parameters?.[{quoted(name)}]"


def variable(name: str) -> Value:
    """One of Argo's own variables, such as workflow.name."""
    return Value(name, tag(name))


def joined(parts: list[Value]) -> Value:
    """Parts joined one after the other."""
    if len(parts) == 1:
        return parts[0]
    if any(part.text.startswith("{{=") for part in parts):
        return calculated(" + ".join(part.code for part in parts))
    return Value("(" + " + ".join(part.code for part in parts) + ")", "".join(part.text for part in parts))


def quoted(text: str) -> str:
    """A string in an expression, without what Argo (`{{`, `}}`) or the rule workflow-size finds even in strings."""
    code = json.dumps(text, ensure_ascii=False).replace("..", r".\u002e").replace("sprig", r"s\u0070rig")
    return re.sub(r"[{}$(]", lambda found: f"\\u{ord(found[0]):04x}", code)


def to_text(value: Any) -> str:
    """A constant as the text of a parameter. In JSON, `{{` (only in strings) is escaped so that Argo ignores it."""
    if isinstance(value, str):
        return value
    if value is None:
        return ABSENT
    return to_json(value)


def to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("{{", "{\\u007b")
