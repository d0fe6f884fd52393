"""YAML that every reader takes for the same: names that YAML 1.1 means as truth values are quoted, texts stay texts."""

from __future__ import annotations

import re
from typing import Any

import yaml

AMBIGUOUS = re.compile(r"^(?:y|n|yes|no|on|off|true|false|null|~)$", re.IGNORECASE)


class _Dumper(yaml.SafeDumper):
    """Quotes what a reader of YAML 1.1 would not take for text; long texts are written as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if AMBIGUOUS.match(value) else "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(document: dict[str, Any]) -> str:
    """The document as YAML."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
