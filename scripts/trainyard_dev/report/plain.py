"""Small conversions to text and to plain JSON, shared by every form of the report."""

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from trainyard_dev.report.model import Picture

# Characters that XML 1.0 or a terminal refuses: controls except tab and newline, surrogates, non-characters.
_ILLEGAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def clean(text: object) -> str:
    """``text`` without terminal escapes and without characters that XML refuses."""
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", _ANSI.sub("", str(text).replace("\r\n", "\n")))


def plain(value: Any) -> Any:
    """``value`` as strict JSON: no NaN, no objects, string keys, sorted sets, the text of a picture."""
    if isinstance(value, Picture):
        return clean(value.text)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    if isinstance(value, Mapping):
        return {clean(k): plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v) for v in value), key=str)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return value.as_posix() if isinstance(value, PurePath) else clean(value)


def duration(seconds: float) -> str:
    """``0.42 s``, ``8.3 s``, ``47 s``, ``12 min 04 s``, ``1 h 02 min``."""
    if seconds < 0.995:
        return f"{seconds:.2f} s" if seconds else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def words(key: str) -> str:
    """A key of a figures map as words: ``devices_per_pod`` reads ``devices per pod``."""
    return key.replace("_", " ").strip()


def figure(value: Any) -> str:
    """One figure as readable text: three decimals, lists joined, maps as ``key: value; …``."""
    if isinstance(value, Picture):
        return clean(value.text)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        return f"{value:.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{clean(k)}: {figure(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return ", ".join(figure(v) for v in items) or "none"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return "none" if value is None else clean(value)
